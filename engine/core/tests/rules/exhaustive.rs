//! Every sequence of commands in a small world, and after each of them every question of a larger
//! list. Core and oracle must agree on everything, in both directions.

use highwater_core::{Admission, Availability, DomainState, GuardRule, HolderBinding};

use crate::oracle::{Model, Rules};
use crate::raw::{Auths, Change, Cond, Request, advance, auth, delete, label, put, request};
use crate::twin::{HERE, MARK, START, Twin};

/// How many commands follow each other before the last question.
const DEPTH: usize = 3;
/// The mark of every epoch after the first.
const NEXT_MARK: u64 = 0x22;

/// What happens between questions.
#[derive(Clone)]
enum Command {
    Commit(Box<Request>),
    NewEpoch,
    Forget,
}

/// An authority of the world's current epoch.
fn current(model: &Model, sequence: u64, holder: &str) -> crate::raw::Auth {
    let (epoch, mark) = *model.epochs.last().unwrap();
    auth(epoch, mark, sequence, holder)
}

/// The condition that every domain of admission `versioned` demands on these changes.
fn pinned(model: &Model, mut request: Request) -> Request {
    if model.rules.admission == Admission::Versioned {
        for key in request.changes.iter().filter_map(Change::key) {
            let generation = model.rows.get(key).map_or(0, |row| row.generation);
            let cond = Cond::GenerationIs(key.clone(), generation);
            request.conds.push(cond);
        }
    }
    request.called_by("w")
}

/// The commands that make the world: two keys under one guard of depth 1, a third beside them.
fn commands(model: &Model) -> Vec<Command> {
    let by = |changes: Vec<Change>, sequence, holder: &str| {
        let request = request(changes).under(current(model, sequence, holder));
        Command::Commit(Box::new(pinned(model, request)))
    };
    vec![
        by(vec![put("j", "1")], 2, "w/a"),
        by(vec![put("j/x", "2"), put("k", "3")], 2, "w/b"),
        by(vec![put("j", "1"), put("j/x", "")], 4, "w/a"),
        by(vec![delete("j"), delete("k")], 3, "w/a"),
        by(vec![label("j", "t")], 2, "w/a"),
        Command::Commit(Box::new(pinned(model, request(vec![put("j/x", "9")])))),
        Command::NewEpoch,
        Command::Forget,
    ]
}

fn take(twin: &mut Twin, command: &Command) {
    match command {
        Command::Commit(request) => {
            twin.step(request);
        }
        Command::NewEpoch => twin.new_epoch(NEXT_MARK),
        Command::Forget => twin.forget(),
    }
}

/// Every authority of a small world, on every kind of change.
fn authority_questions(model: &Model) -> Vec<Request> {
    let mut all = vec![Auths::None];
    for (epoch, mark) in [(1, MARK), (2, NEXT_MARK), (1, 0x33), (2, MARK), (9, MARK)] {
        for sequence in [1, 2, 3, 4, 6, 7, u64::MAX - 1] {
            for holder in ["w/a", "w/b"] {
                all.push(Auths::One(auth(epoch, mark, sequence, holder)));
            }
        }
    }
    let (old, new) = (current(model, 1, "w/a"), current(model, 5, "w/c"));
    let guards = [b"j".to_vec(), b"k".to_vec(), b"".to_vec(), b"j/x".to_vec()];
    for first in &guards {
        all.push(Auths::PerGuard(vec![(first.clone(), new.clone())]));
        for second in &guards {
            let pair = vec![(first.clone(), new.clone()), (second.clone(), old.clone())];
            all.push(Auths::PerGuard(pair));
        }
    }
    let changes = [
        vec![put("j", "5")],
        vec![delete("k"), put("j/x", "5")],
        vec![label("j", "u")],
        vec![advance("j")],
        vec![advance("k"), put("j", "6")],
        vec![advance("")],
    ];
    let mut questions = Vec::new();
    for auth in all {
        for changes in &changes {
            let mut request = request(changes.clone());
            request.auth = auth.clone();
            questions.push(pinned(model, request));
        }
    }
    questions
}

/// Every kind of condition, on keys that exist, never existed and were deleted.
fn condition_questions(model: &Model) -> Vec<Request> {
    let mut conds = Vec::new();
    let moments = [
        (1 << 48) + 5,
        START,
        START + 1,
        START + 2,
        START + 3,
        model.revision,
        model.revision + 1,
    ];
    for name in ["j", "j/x", "k", "z"] {
        let key = || name.as_bytes().to_vec();
        for number in [0, START + 2, START + 3, START + 4] {
            conds.push(Cond::GenerationIs(key(), number));
            conds.push(Cond::GenerationIsNot(key(), number));
        }
        for number in [0, 1, 2] {
            conds.push(Cond::MetagenerationIs(key(), number));
            conds.push(Cond::MetagenerationIsNot(key(), number));
        }
        for term in [(1, MARK, 2), (1, 0x33, 2), (1, MARK, 3), (2, NEXT_MARK, 2)] {
            conds.push(Cond::WrittenUnder(key(), term));
        }
        for value in ["", "1", "2"] {
            conds.push(Cond::DigestOf(key(), value.into()));
        }
        conds.extend(moments.map(|since| Cond::KeySince(key(), since)));
    }
    for prefix in ["", "j", "j/", "k", "y"] {
        conds.extend(moments.map(|since| Cond::PrefixSince(prefix.into(), since)));
    }
    let ask = |cond| {
        let request = request(vec![put("q", "7")]).under(current(model, 9, "w/a"));
        pinned(model, request).when(cond)
    };
    conds.into_iter().map(ask).collect()
}

fn explore(twin: &Twin, depth: usize, judged: &mut usize) {
    let model = &twin.model;
    for question in authority_questions(model)
        .iter()
        .chain(&condition_questions(model))
    {
        let _ = twin.judge(question);
        *judged += 1;
    }
    if depth == 0 {
        return;
    }
    for command in commands(model) {
        let mut next = twin.clone();
        take(&mut next, &command);
        explore(&next, depth - 1, judged);
    }
}

fn rules(guard: GuardRule, admission: Admission, step: Option<u64>) -> Rules {
    Rules {
        guard,
        admission,
        binding: HolderBinding::Prefix,
        step,
    }
}

const BY_JOB: GuardRule = GuardRule::Prefix {
    delimiter: b'/',
    depth: 1,
};

fn explore_all(rules: Rules) {
    let mut judged = 0;
    explore(&Twin::new(rules), DEPTH, &mut judged);
    assert!(
        judged > 100_000,
        "the world is as small as {judged} questions"
    );
}

#[test]
fn every_sequence_under_one_fence_per_key() {
    explore_all(rules(GuardRule::Key, Admission::Fenced, Some(2)));
}

#[test]
fn every_sequence_under_one_fence_per_prefix() {
    explore_all(rules(BY_JOB, Admission::Versioned, None));
}

#[test]
fn every_sequence_under_one_fence() {
    explore_all(rules(GuardRule::Domain, Admission::Open, Some(2)));
}

/// Every way in which destination and domain can be closed, for every kind of change.
#[test]
fn every_state_of_destination_and_domain() {
    let mut twin = Twin::new(rules(BY_JOB, Admission::Fenced, None));
    let by = |changes| request(changes).under(auth(1, MARK, 2, "w")).called_by("w");
    assert!(twin.step(&by(vec![put("j", "1")])));
    for availability in [
        Availability::Ready,
        Availability::Poisoned,
        Availability::Overloaded,
        Availability::DiskFull,
        Availability::RecoveryRequired,
    ] {
        twin.set_availability(availability);
        for state in [
            DomainState::Active,
            DomainState::Frozen,
            DomainState::RecoveryRequired,
        ] {
            twin.set_state(state);
            let open = state == DomainState::Active
                && matches!(availability, Availability::Ready | Availability::DiskFull);
            let adds = open && availability == Availability::Ready;
            assert_eq!(twin.step(&by(vec![advance("j")])), open);
            assert_eq!(twin.step(&by(vec![delete("k"), advance("j")])), open);
            assert_eq!(twin.step(&by(vec![label("j", "t")])), adds);
            assert_eq!(twin.step(&by(vec![delete("k"), put("j", "2")])), adds);
        }
    }
}

/// Every way in which a holder can relate to a caller.
#[test]
fn every_binding_of_holders_to_callers() {
    let bound = |binding, holder, caller: Option<&str>| {
        let mut rules = rules(GuardRule::Key, Admission::Fenced, None);
        rules.binding = binding;
        let mut request = request(vec![put("j", "1")]).under(auth(1, MARK, 1, holder));
        request.caller = caller.map(|caller| caller.as_bytes().to_vec());
        Twin::new(rules).step(&request)
    };
    use HolderBinding::{Exact, None as Unbound, Prefix};
    assert!(bound(Unbound, "x", None) && bound(Unbound, "x", Some("w")));
    assert!(!bound(Exact, "w", None) && !bound(Prefix, "w", None));
    for (holder, prefix, exact) in [
        ("w", true, true),
        ("w/a", true, false),
        ("w/", true, false),
        ("wa", false, false),
        ("wa/", false, false),
        ("a/w", false, false),
        ("W", false, false),
        ("/w", false, false),
    ] {
        assert_eq!(bound(Prefix, holder, Some("w")), prefix, "{holder}");
        assert_eq!(bound(Exact, holder, Some("w")), exact, "{holder}");
    }
}

/// Another destination, incarnation number or mark is another destination.
#[test]
fn every_wrong_destination() {
    let mut twin = Twin::new(rules(GuardRule::Key, Admission::Open, None));
    let (id, number, mark) = HERE;
    for (named, right) in [
        ((id, number, mark), true),
        (([id[0] ^ 1; 16], number, mark), false),
        ((id, number + 1, mark), false),
        ((id, number - 1, mark), false),
        ((id, number, mark ^ 1), false),
    ] {
        let mut request = request(vec![put("j", "1")]);
        request.destination = Some(named);
        assert_eq!(twin.step(&request), right);
    }
}
