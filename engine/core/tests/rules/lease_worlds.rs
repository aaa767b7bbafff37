//! Leases against the oracle: every short sequence of what can be asked and can happen, and long
//! random ones.

use std::collections::{BTreeMap, BTreeSet};

use crate::generate::Chance;
use crate::lease_oracle::{Ask, Claim, Terms};
use crate::lease_twin::Leased;

/// A time to live; the worlds wait in parts of it.
const TTL: u64 = 100;

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    Ask(Ask),
    Wait(u64),
    Note,
    Reopen,
    Epoch,
}

fn terms(issued: bool, strict: bool, grace: u64, step: Option<u64>) -> Terms {
    Terms {
        issued,
        strict,
        grace,
        step,
    }
}

/// What can happen to one guard in this state: the lease that was granted last and the one before
/// are what everybody talks about.
fn events(world: &Leased, on: &'static str) -> Vec<Event> {
    let side = world.court.side(on);
    let ended = side.ended.as_ref().map(|end| &end.held);
    let held = side.held.as_ref().or(ended);
    let (lease, claim) = held.map_or((world.court.revision, (1, "a")), |h| (h.id, h.claim));
    let first = side.issued.first().copied().unwrap_or((2, "b"));
    let other: Claim = (claim.0, if claim.1 == "a" { "b" } else { "a" });
    vec![
        Event::Ask(Ask::Acquire(on, "a", TTL, false, false)),
        Event::Ask(Ask::Acquire(on, "b", TTL, true, false)),
        Event::Ask(Ask::Acquire(on, "a", 2 * TTL, true, true)),
        Event::Ask(Ask::Renew(on, lease, claim, None)),
        Event::Ask(Ask::Renew(on, lease, first, Some(3 * TTL))),
        Event::Ask(Ask::Release(on, lease, claim)),
        Event::Ask(Ask::Release(on, lease, other)),
        Event::Ask(Ask::Revoke(on, None, "ops")),
        Event::Ask(Ask::Revoke(on, Some(lease), "ops")),
        Event::Ask(Ask::Expire(on, lease)),
        Event::Ask(Ask::Write(on, claim)),
        Event::Ask(Ask::Write(on, first)),
        Event::Ask(Ask::Write(on, other)),
        Event::Ask(Ask::Write(on, (claim.0 + 2, "b"))),
        Event::Wait(TTL / 2),
        Event::Wait(TTL),
        Event::Note,
        Event::Reopen,
        Event::Epoch,
    ]
}

fn happen(world: &mut Leased, event: &Event) -> bool {
    match event {
        Event::Ask(ask) => return world.ask(ask).is_ok(),
        Event::Wait(milliseconds) => world.wait(*milliseconds),
        Event::Note => world.note(),
        Event::Reopen => world.reopen(),
        Event::Epoch => world.new_epoch(),
    }
    true
}

fn explore(world: &Leased, depth: usize, answers: &mut BTreeSet<String>) {
    if depth == 0 {
        return;
    }
    for event in events(world, "g") {
        let mut next = world.clone();
        if let Event::Ask(ask) = &event {
            let answer = next.ask(ask);
            let seen = match &answer {
                Ok(_) => "accepted",
                Err((code, ..)) => code,
            };
            answers.insert(seen.into());
            if answer.is_err() {
                continue;
            }
        } else {
            happen(&mut next, &event);
        }
        explore(&next, depth - 1, answers);
    }
}

fn every_sequence_under(terms: Terms, depth: usize, expected: &[&str]) {
    let mut answers = BTreeSet::new();
    explore(&Leased::new(terms), depth, &mut answers);
    let expected: BTreeSet<String> = expected.iter().map(|code| (*code).to_owned()).collect();
    assert!(answers.is_superset(&expected), "{answers:?}");
}

const ALWAYS: [&str; 5] = [
    "accepted",
    "LeaseHeld",
    "LeaseGone",
    "StaleTerm",
    "HolderConflict",
];

#[test]
fn every_sequence_with_external_terms_gets_what_the_oracle_says() {
    every_sequence_under(terms(false, false, 0, Some(2)), 4, &ALWAYS);
}

#[test]
fn every_sequence_with_issued_terms_gets_what_the_oracle_says() {
    let wanted = [&ALWAYS[..4], &["UnknownTerm"]].concat();
    every_sequence_under(terms(true, false, 0, None), 4, &wanted);
}

#[test]
fn every_sequence_under_a_strict_policy_gets_what_the_oracle_says() {
    let wanted = [&ALWAYS[..4], &["NotLeased"]].concat();
    every_sequence_under(terms(false, true, 0, None), 4, &wanted);
}

#[test]
fn every_sequence_with_a_grace_gets_what_the_oracle_says() {
    let wanted = [&ALWAYS[..4], &["LeaseDelayed"]].concat();
    every_sequence_under(terms(false, false, TTL / 2 + 10, None), 4, &wanted);
}

/// What must be true of a whole history, whatever the oracle says.
#[derive(Default)]
struct Chronicle {
    epoch: usize,
    /// The highest term issued for each guard in the current epoch, and the highest written under.
    issued: BTreeMap<&'static str, u64>,
    written: BTreeMap<&'static str, u64>,
}

impl Chronicle {
    fn note(&mut self, world: &Leased, event: &Event) {
        if world.court.epoch != self.epoch {
            *self = Self {
                epoch: world.court.epoch,
                ..Self::default()
            };
        }
        match event {
            Event::Ask(Ask::Acquire(on, ..)) => {
                let guard = crate::raw::guard(on.as_bytes());
                let record = world.state.lease(world.domain().id, &guard).unwrap();
                let sequence = record.current.as_ref().unwrap().term.sequence.get();
                let before = self.issued.insert(on, sequence).unwrap_or(0);
                assert!(before < sequence, "no term is granted twice");
                let written = self.written.get(on).copied().unwrap_or(0);
                assert!(written < sequence, "nobody wrote under it before");
            }
            Event::Ask(Ask::Write(on, claim)) => {
                let before = self.written.insert(on, claim.0).unwrap_or(0);
                assert!(before <= claim.0, "no effect behind one of a later term");
            }
            _ => {}
        }
    }
}

#[test]
fn random_histories_get_what_the_oracle_says_and_never_go_back() {
    let mut chance = Chance::new(17);
    let mut answers = BTreeMap::<&str, u64>::new();
    for run in 0..60 {
        let step = chance.one_in(3).then_some(3);
        let grace = chance.pick(&[0, 0, 40, 250]);
        let mut world = Leased::new(terms(run % 2 == 0, run % 3 == 0, grace, step));
        let mut chronicle = Chronicle::default();
        for _ in 0..300 {
            let on = chance.pick(&crate::lease_twin::GUARDS);
            let event = match chance.below(40) {
                0 => Event::Epoch,
                1..6 => Event::Wait(1 + chance.next() % (2 * TTL)),
                _ => chance.pick(&events(&world, on)[..18]),
            };
            let before = world.state.destination().revision;
            let accepted = happen(&mut world, &event);
            if accepted {
                chronicle.note(&world, &event);
            } else {
                assert_eq!(before, world.state.destination().revision, "{event:?}");
            }
            *answers
                .entry(if accepted { "yes" } else { "no" })
                .or_default() += 1;
        }
    }
    assert!(answers.values().all(|count| *count > 2_000), "{answers:?}");
}
