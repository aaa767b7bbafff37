//! What the rungs share: small stores, the model beside them, and the comparison of both.

use std::num::NonZeroU64;
use std::sync::Arc;

use highwater::{
    Admission, Config, DomainName, Error, GuardRule, HolderBinding, IntentId, Key, KeyRange,
    Policy, SaltSource, Snapshot, Store,
};
use highwater_core::{check_domain, check_fence, check_intent, check_record};
use highwater_tests::disk::SimDisk;
use highwater_tests::history::Answer;
use highwater_tests::model::{Model, Row};
use highwater_tests::plans::Told;
use highwater_tests::raw::{Auth, Bytes, Request};
use highwater_tests::seen;

/// A number from the environment, for the rungs that can be made longer.
pub(crate) fn scale(name: &str, usual: u64) -> u64 {
    let wanted = std::env::var(name).ok();
    wanted.map_or(usual, |number| number.parse().expect("a number"))
}

/// Settings as tight as they can be, so that segments, checkpoints and recycling happen often.
pub(crate) fn tight() -> Config {
    Config {
        segment_bytes: 64 << 10,
        log_bytes: 128 << 10,
        memory_bytes: 64 << 10,
        hot_bytes: 4 << 10,
        index_cache_bytes: 1 << 20,
        history_bytes: 16 << 10,
        snapshot_age: std::time::Duration::from_secs(3_600),
        salts: SaltSource::Seeded(7),
        ..Config::default()
    }
}

pub(crate) fn open(disk: &SimDisk, config: &Config) -> Store {
    Store::open_on(Arc::new(disk.clone()), config.clone()).expect("the store opens")
}

pub(crate) fn domain(name: &str) -> DomainName {
    DomainName::new(name).unwrap()
}

pub(crate) fn key(bytes: impl AsRef<[u8]>) -> Key {
    Key::new(bytes).unwrap()
}

pub(crate) fn by_component(depth: u8) -> GuardRule {
    let delimiter = b'/';
    GuardRule::Prefix { delimiter, depth }
}

pub(crate) fn policy(guard: GuardRule, admission: Admission) -> Policy {
    let policy = Policy::default().with_guard(guard).unwrap();
    policy.with_admission(admission)
}

/// Policies that differ in every setting.
pub(crate) fn policies() -> [(&'static str, Policy); 4] {
    let step = NonZeroU64::new(3);
    [
        ("jobs", policy(by_component(1), Admission::Fenced)),
        (
            "deep",
            policy(by_component(2), Admission::Versioned)
                .with_holder_binding(HolderBinding::Prefix),
        ),
        (
            "leader",
            policy(GuardRule::Domain, Admission::Open).with_max_sequence_step(step),
        ),
        (
            "locks",
            policy(GuardRule::Key, Admission::Fenced)
                .with_holder_binding(HolderBinding::Exact)
                .with_max_sequence_step(step),
        ),
    ]
}

/// A model of a store that has just been made.
pub(crate) fn model_of(store: &Store) -> Model {
    let status = store.status();
    Model {
        place: place_of(store),
        revision: status.revision.get(),
        floor: status.remembers_since.get(),
        value_max: status.limits.value_bytes,
        worlds: std::collections::BTreeMap::new(),
    }
}

pub(crate) fn place_of(store: &Store) -> highwater_tests::raw::Place {
    let status = store.status();
    let incarnation = status.incarnation;
    (
        status.destination.bytes(),
        incarnation.number().get(),
        incarnation.mark().get(),
    )
}

/// Makes a domain in both.
pub(crate) fn create(store: &Store, model: &mut Model, name: &str, policy: Policy) {
    let made = store.create_domain(domain(name), policy, None).unwrap();
    let epoch = made.epochs.current().epoch;
    assert!(model.create(name, policy, (epoch.number().get(), epoch.mark().get())));
    assert_eq!(made.created_at.get(), model.revision);
}

/// Makes the domain "d" in a new store, where each key has its own guard and nothing is demanded.
/// The model of the store.
pub(crate) fn open_domain(store: &Store) -> Model {
    let mut model = model_of(store);
    let open = policy(GuardRule::Key, Admission::Open);
    create(store, &mut model, "d", open);
    model
}

/// What a verdict says, in bare numbers. Any other error fails the test.
pub(crate) fn answer(verdict: Result<highwater::Receipt, Error>) -> Answer {
    match verdict {
        Ok(receipt) => Answer::Accepted(seen::statement(&receipt)),
        Err(Error::Rejected(rejection)) => {
            let revision = rejection.observed.revision.get();
            Answer::Refused(revision, seen::refusal(&rejection))
        }
        Err(error) => panic!("no verdict: {error}"),
    }
}

/// What the model says to a request on its state.
pub(crate) fn opinion(model: &Model, request: &Request) -> Answer {
    match model.judge(request) {
        Ok(_) => Answer::Accepted(model.clone().apply(request)),
        Err(refusal) => Answer::Refused(model.revision, *refusal),
    }
}

/// Commits in both, and compares verdict and evidence. How far deletions are remembered is the
/// store's choice, so the model takes that from it, before or after.
pub(crate) fn commit_in_both(store: &Store, model: &mut Model, request: &Request) -> &'static str {
    let floor = || store.status().remembers_since.get();
    let before = floor();
    let judged = answer(store.judge(&request.typed().unwrap()));
    let got = answer(store.commit(request.typed().unwrap()));
    let after = floor();
    let mut expected = Vec::new();
    for floor in [before, after] {
        model.floor = floor;
        expected.push(opinion(model, request));
    }
    assert!(
        expected.contains(&got),
        "{request:?}\n     got {got:?}\nexpected {expected:?}"
    );
    assert!(before != after || judged == got, "{judged:?} then {got:?}");
    match got {
        Answer::Accepted(statement) if statement.replayed => "Replayed",
        Answer::Accepted(_) => {
            model.apply(request);
            "Accepted"
        }
        Answer::Refused(_, refusal) => refusal.code,
    }
}

/// All rows of a range, by pages of so many.
pub(crate) fn rows(
    snapshot: &Snapshot,
    name: &str,
    range: &KeyRange,
    limit: usize,
) -> Vec<(Bytes, Row)> {
    let mut found = Vec::new();
    let mut range = range.clone();
    loop {
        let page = snapshot.scan(&domain(name), &range, limit).unwrap();
        assert!(page.records.len() <= limit && page.revision == snapshot.revision());
        let raw = |(key, record): &(Key, Arc<highwater::Record>)| {
            (key.as_bytes().to_vec(), seen::row(record))
        };
        found.extend(page.records.iter().map(raw));
        match page.next {
            Some(next) => range.start = next.as_bytes().to_vec(),
            None => return found,
        }
    }
}

/// All intents, by pages of so many.
pub(crate) fn intents(snapshot: &Snapshot, name: &str, limit: usize) -> Vec<(Bytes, Told)> {
    let mut found: Vec<(IntentId, Told)> = Vec::new();
    loop {
        let after = found.last().map(|(id, _)| id.clone());
        let page = snapshot.intents(&domain(name), after.as_ref(), limit);
        let page = page.unwrap();
        assert!(page.intents.len() <= limit && page.revision == snapshot.revision());
        let told = page.intents.iter();
        found.extend(told.map(|(id, record)| (id.clone(), seen::plan(record))));
        if !page.more {
            let raw = |(id, told): (IntentId, Told)| (id.as_bytes().to_vec(), told);
            return found.into_iter().map(raw).collect();
        }
    }
}

/// The fence of a guard.
pub(crate) fn fence(snapshot: &Snapshot, name: &str, guard: &[u8]) -> Option<Auth> {
    let guard = highwater::Guard::new(guard).unwrap();
    let fence = snapshot.fence(&domain(name), &guard).unwrap();
    fence.as_ref().map(seen::fence)
}

/// Compares everything that there is: revision, domains, records, fences. And the invariants.
#[track_caller]
pub(crate) fn compare(snapshot: &Snapshot, model: &Model) {
    assert_eq!(snapshot.revision().get(), model.revision);
    let names: Vec<_> = snapshot
        .domains()
        .iter()
        .map(|domain| domain.name.to_string())
        .collect();
    assert_eq!(names, model.worlds.keys().cloned().collect::<Vec<_>>());
    for (name, world) in &model.worlds {
        let typed = snapshot.domain(&domain(name)).unwrap();
        check_domain(&typed).unwrap();
        let epoch = typed.epochs.current().epoch;
        assert_eq!(typed.policy, world.policy);
        assert_eq!((epoch.number().get(), epoch.mark().get()), world.epoch);
        let found = rows(snapshot, name, &KeyRange::all(), 1_000);
        let expected: Vec<_> = world.rows.clone().into_iter().collect();
        assert_eq!(found, expected, "the records of {name}");
        for (row, _) in &expected {
            let record = snapshot.get(&domain(name), &key(row)).unwrap().unwrap();
            check_record(&typed, &record, snapshot.revision()).unwrap();
            assert_eq!(seen::row(&record), world.rows[row]);
        }
        for (guard, expected) in &world.fences {
            assert_eq!(fence(snapshot, name, guard).as_ref(), Some(expected));
            let guard = highwater::Guard::new(guard).unwrap();
            let fence = snapshot.fence(&domain(name), &guard).unwrap().unwrap();
            check_fence(&typed, &fence).unwrap();
        }
        let expected = world.plans.iter();
        let expected: Vec<_> = expected
            .map(|(id, plan)| (id.clone(), plan.told.clone()))
            .collect();
        for limit in [1, 5, 1_000] {
            let found = intents(snapshot, name, limit);
            assert_eq!(found, expected, "the intents of {name}");
        }
        for (id, told) in &expected {
            let id = IntentId::new(id).unwrap();
            let record = snapshot.intent(&domain(name), &id).unwrap().unwrap();
            check_intent(&record, snapshot.revision()).unwrap();
            assert_eq!(seen::plan(&record), *told);
        }
    }
}
