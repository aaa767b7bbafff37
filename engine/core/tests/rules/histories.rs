//! Long random histories over a larger world. Every accepted effect goes through its bytes into a
//! second state, which must end as the first.

use std::collections::BTreeMap;

use highwater_core::codec::{decode_effect, encode_effect};
use highwater_core::{
    Admission, Availability, CreateDomain, DestinationId, DomainState, EpochMark, GuardRule,
    HolderBinding, Limits, State, Verdict,
};

use crate::generate::Chance;
use crate::oracle::{Model, Rules};
use crate::raw::{self, Auth, Auths, Bytes, Change, Cond, Request, Task, auth};
use crate::twin::{HERE, MARK, START, Twin, VALUE_MAX, name, policy};

/// How many histories, unless `HIGHWATER_HISTORIES` says another number.
const HISTORIES: u64 = 150;
const STEPS: usize = 80;

const KEYS: [&str; 10] = [
    "a", "a/", "a/b", "a/b/c", "a/b/d", "a/c", "b", "b/a", "/", "ab",
];
/// As many as there are, so that some have ended and some haven't.
const INTENTS: [&str; 6] = ["i", "j", "k", "l", "m", "n"];
const HOLDERS: [&str; 4] = ["w", "w/1", "w/2", "x"];

pub(crate) struct World {
    pub(crate) twin: Twin,
    /// The same history, folded from bytes.
    folded: State,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let depth = |depth| GuardRule::Prefix {
            delimiter: b'/',
            depth,
        };
        let guards = [GuardRule::Key, depth(1), depth(2), GuardRule::Domain];
        let admissions = [Admission::Fenced, Admission::Versioned, Admission::Open];
        let bindings = [
            HolderBinding::None,
            HolderBinding::Prefix,
            HolderBinding::Exact,
        ];
        let rules = Rules {
            guard: chance.pick(&guards),
            admission: chance.pick(&admissions),
            binding: chance.pick(&bindings),
            step: chance.pick(&[None, Some(1), Some(3)]),
        };
        let limits = Limits {
            value_bytes: VALUE_MAX,
        };
        let incarnation = raw::incarnation(HERE.1, HERE.2);
        let mut folded = State::new(DestinationId::new(HERE.0), incarnation, limits);
        let create = CreateDomain::new(name(), policy(rules), EpochMark::new(MARK));
        folded.create_domain(&create).unwrap();
        Self {
            twin: Twin::new(rules),
            folded: folded.with_digest(raw::digest),
        }
    }

    fn step(&mut self, chance: &mut Chance) -> &'static str {
        match chance.below(60) {
            0 => {
                let mark = chance.next();
                self.twin.new_epoch(mark);
            }
            1 => {
                self.twin.forget();
                self.folded.forget_deletions();
            }
            2 => self.twin.set_availability(chance.pick(&[
                Availability::Overloaded,
                Availability::DiskFull,
                Availability::Poisoned,
            ])),
            3 => self.twin.set_state(DomainState::Frozen),
            4..16 => {
                self.twin.set_availability(Availability::Ready);
                self.twin.set_state(DomainState::Active);
            }
            _ => return self.request(chance),
        }
        let availability = self.twin.state.destination().availability;
        self.folded.set_availability(availability);
        self.folded.replace_domain(self.twin.domain());
        "moved"
    }

    fn request(&mut self, chance: &mut Chance) -> &'static str {
        let request = random_request(chance, &self.twin.model);
        let verdict = self.twin.judge(&request);
        assert_eq!(
            self.twin.step(&request),
            matches!(verdict, Verdict::Accepted(_))
        );
        match verdict {
            Verdict::Rejected(rejection) => rejection.reason.code(),
            Verdict::Replayed(_) => "Replayed",
            Verdict::Accepted(accepted) => {
                let mut bytes = Vec::new();
                encode_effect(&accepted.effect, &mut bytes);
                let read = decode_effect(&bytes).unwrap();
                assert_eq!(read, accepted.effect);
                self.folded.apply(&read);
                assert_eq!(
                    format!("{:?}", self.folded),
                    format!("{:?}", self.twin.state)
                );
                "Accepted"
            }
        }
    }
}

fn random_authority(chance: &mut Chance, model: &Model) -> Auth {
    let (epoch, mark) = match chance.below(12) {
        0 => chance.pick(&model.epochs),
        1 => (model.epochs.len() as u64 + 1, MARK),
        _ => *model.epochs.last().unwrap(),
    };
    let highest = model.fences.values().map(|fence| fence.sequence).max();
    let below = chance.pick(&[0, 0, 0, 0, 0, 1, 2]);
    let sequence =
        (highest.unwrap_or(1) + chance.pick(&[0, 0, 0, 0, 1, 2, 4])).max(below + 1) - below;
    let mut auth = auth(epoch, mark, sequence, chance.pick(&HOLDERS));
    let same = model.fences.values().find(|f| f.sequence == sequence);
    if let Some(fence) = same.filter(|_| !chance.one_in(4)) {
        auth.holder.clone_from(&fence.holder);
    }
    auth
}

fn random_change(chance: &mut Chance, model: &Model) -> Change {
    let key: Bytes = chance.pick(&KEYS).into();
    let text = chance.pick(&["", "text", "json"]).to_owned();
    let id = chance.pick(&INTENTS).into();
    let bound = match model.intents.get(&id) {
        Some(plan) if !chance.one_in(4) => plan.told.binding.as_ref().map(|b| b.0.guard.clone()),
        _ => chance.pick(&[None, Some(crate::oracle::guard_of(model.rules.guard, &key))]),
    };
    match chance.below(13) {
        10 => Change::Bind(
            id,
            Task {
                guard: crate::oracle::guard_of(model.rules.guard, &key),
                inputs: vec![(key, model.revision)],
                configuration: chance.pick(&[None, Some(b"v1".to_vec())]),
            },
        ),
        11 if chance.one_in(2) => Change::Close(
            id,
            bound,
            chance.pick(&["completed", "superseded", "rejected"]),
        ),
        12 if chance.one_in(2) => Change::Suspend(id, bound, b"ops".to_vec(), chance.next() % 3),
        0 | 1 => Change::Delete(key),
        2 => Change::Label(key, text),
        3 => Change::Advance(crate::oracle::guard_of(model.rules.guard, &key)),
        4 if chance.one_in(4) => Change::Advance(key),
        _ => Change::Put(key, chance.bytes(6), text),
    }
}

fn random_condition(chance: &mut Chance, model: &Model) -> Cond {
    let key: Bytes = chance.pick(&KEYS).into();
    let row = model.rows.get(&key).cloned();
    let moment = chance.pick(&[
        model.floor - 1,
        model.floor,
        model.revision - 2,
        model.revision,
        model.revision,
        model.revision,
        model.revision + 1,
    ]);
    let generation = row.as_ref().map_or(0, |row| row.generation);
    let other = chance.pick(&[0, START + 2, model.revision]);
    let metageneration = row.as_ref().map_or(0, |row| row.metageneration);
    let prefixes: [&str; 5] = ["", "a/", "a/b", "b", "zz"];
    match chance.below(9) {
        0 | 1 => Cond::GenerationIs(key, chance.pick(&[generation, generation, other])),
        2 => Cond::GenerationIsNot(key, chance.pick(&[other, generation])),
        3 => Cond::MetagenerationIs(key, chance.pick(&[metageneration, 1])),
        4 => Cond::MetagenerationIsNot(key, chance.pick(&[metageneration, 7, 7])),
        5 => {
            let last = *model.epochs.last().unwrap();
            let term = row.and_then(|row| row.under);
            Cond::WrittenUnder(key, term.unwrap_or((last.0, last.1, 1)))
        }
        6 => Cond::DigestOf(key, row.map_or(Vec::new(), |row| row.value)),
        7 => Cond::KeySince(key, moment),
        _ => Cond::PrefixSince(chance.pick(&prefixes).into(), moment),
    }
}

/// A request that has a fair chance in this world.
pub(crate) fn random_request(chance: &mut Chance, model: &Model) -> Request {
    let changes = (0..1 + chance.below(3)).map(|_| random_change(chance, model));
    let mut request = raw::request(changes.collect());
    let conditions = chance.pick(&[0, 0, 0, 1, 2]);
    request.conds = (0..conditions)
        .map(|_| random_condition(chance, model))
        .collect();
    if !chance.one_in(8) {
        for key in request.changes.iter().filter_map(Change::key) {
            let generation = model.rows.get(key).map_or(0, |row| row.generation);
            request
                .conds
                .push(Cond::GenerationIs(key.clone(), generation));
        }
    }
    let auth = random_authority(chance, model);
    request.caller = match chance.below(12) {
        0 => None,
        1 => Some(b"w".to_vec()),
        _ => Some(auth.holder.clone()),
    };
    request.auth = match chance.below(12) {
        0 => Auths::None,
        1..=3 => {
            let mut list = Vec::new();
            for change in &request.changes {
                let Some(guard) = crate::oracle::touches(model.rules.guard, change) else {
                    continue;
                };
                if list.iter().all(|(named, _)| *named != guard) {
                    list.push((guard, random_authority(chance, model)));
                }
            }
            Auths::PerGuard(list)
        }
        _ => Auths::One(auth),
    };
    if chance.one_in(5) {
        let id: Bytes = chance.pick(&INTENTS).into();
        let steps = model.intents.get(&id).map_or(0, |plan| plan.asked.len());
        let next = u32::try_from(steps).unwrap() + 1;
        let step = chance.pick(&[next, next, next, next.saturating_sub(1).max(1), next + 1]);
        request.intent = Some((id, step.min(64), chance.one_in(12)));
    }
    let before = model.intents.values();
    let before = before.flat_map(|plan| plan.asked.iter().zip(&plan.told.steps));
    if chance.one_in(16)
        && let Some((asked, statement)) = before.last()
    {
        let (id, step) = statement.intent.clone().unwrap();
        (request.changes, request.conds) = (asked.0.clone(), asked.1.clone());
        request.intent = Some((id, step, asked.2));
        if chance.one_in(4) {
            request.conds.pop();
        }
    }
    if chance.one_in(40) {
        request.destination = Some((HERE.0, HERE.1, chance.pick(&[HERE.2, 1])));
    }
    request
}

#[test]
fn random_histories_go_as_the_oracle_says() {
    let wanted = std::env::var("HIGHWATER_HISTORIES").ok();
    let histories = wanted.map_or(HISTORIES, |number| number.parse().unwrap());
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..histories {
        let mut world = World::new(seed);
        let mut chance = Chance::new(!seed);
        for _ in 0..STEPS {
            *outcomes.entry(world.step(&mut chance)).or_default() += 1;
        }
    }
    // Histories that are refused throughout, or accepted throughout, would prove little.
    let requests = outcomes.values().sum::<usize>() - outcomes["moved"];
    assert!(outcomes["Accepted"] * 5 > requests, "{outcomes:?}");
    for code in [
        "Malformed",
        "WrongDestination",
        "Poisoned",
        "Frozen",
        "Overloaded",
        "DiskFull",
        "AuthorityRequired",
        "PreconditionRequired",
        "StaleEpoch",
        "UnknownEpoch",
        "StaleTerm",
        "HolderConflict",
        "SequenceJump",
        "WrongHolder",
        "ConditionFailed",
        "TooOld",
        "Replayed",
        "IntentConflict",
        "IntentClosed",
        "UnknownIntent",
    ] {
        assert!(outcomes.contains_key(code), "no {code} in {outcomes:?}");
    }
}
