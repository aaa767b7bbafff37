//! What happens to one key: the table of conditions, and races for it.

use std::sync::Barrier;
use std::thread;

use highwater::{Error, Store};
use highwater_tests::disk::SimDisk;
use highwater_tests::raw::{Bytes, Change, Cond, Request};

use super::put;
use crate::support::{commit_in_both, domain, key, open, open_domain, scale, tight};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Never,
    Exists,
    Deleted,
    Recreated,
}

const STATES: [State; 4] = [
    State::Never,
    State::Exists,
    State::Deleted,
    State::Recreated,
];
const CONDITIONS: usize = 7;
const CHANGES: usize = 4;

/// Brings a key into a state; its first and its present generation.
fn bring(store: &Store, name: &str, state: State) -> (u64, u64) {
    let write = |request: Request| {
        let receipt = store.commit(request.typed().unwrap()).unwrap();
        receipt.revision.get()
    };
    if state == State::Never {
        return (0, 0);
    }
    let first = write(put(name, b"v"));
    if state == State::Exists {
        return (first, first);
    }
    write(Request::of("d", vec![Change::Delete(name.into())]));
    match state {
        State::Recreated => (first, write(put(name, b"v"))),
        _ => (first, 0),
    }
}

/// A condition, and whether it holds.
fn condition(number: usize, key: &Bytes, first: u64, now: u64) -> (Option<Cond>, bool) {
    let key = key.clone();
    match number {
        0 => (None, true),
        1 => (Some(Cond::GenerationIs(key, 0)), now == 0),
        2 => (Some(Cond::GenerationIsNot(key, 0)), now != 0),
        3 => (Some(Cond::GenerationIs(key, now)), true),
        4 => (Some(Cond::GenerationIsNot(key, now)), false),
        5 => (Some(Cond::GenerationIs(key, first)), first == now),
        _ => (Some(Cond::GenerationIs(key, (1 << 48) + 1)), false),
    }
}

/// What is tried on a key, and whether that needs the key to exist.
fn change(number: usize, key: &Bytes) -> (Vec<Change>, bool) {
    let key = key.clone();
    let write = |key: Bytes| Change::Put(key, b"w".into(), String::new());
    match number {
        0 => (vec![write(key)], false),
        1 => (vec![Change::Delete(key)], false),
        2 => (vec![Change::Label(key, "text".into())], true),
        _ => {
            let other = [&key[..], b"+"].concat();
            (vec![Change::Delete(key), write(other)], false)
        }
    }
}

#[test]
fn every_state_of_a_key_meets_every_condition() {
    let disk = SimDisk::default();
    let store = open(&disk, &tight());
    open_domain(&store);
    let mut cases = Vec::new();
    for state in STATES {
        for case in 0..CONDITIONS * CHANGES {
            let name = format!("{state:?}/{case}");
            cases.push((name.clone(), case, bring(&store, &name, state)));
        }
    }
    store.close().unwrap();
    let store = open(&disk, &tight());
    for (name, case, (first, now)) in cases {
        let name = name.into_bytes();
        let (cond, holds) = condition(case / CHANGES, &name, first, now);
        let (changes, needs_key) = change(case % CHANGES, &name);
        let mut request = Request::of("d", changes);
        request.conds.extend(cond);
        let verdict = store.commit(request.typed().unwrap());
        let expected = holds && (now != 0 || !needs_key);
        assert_eq!(verdict.is_ok(), expected, "{request:?} {verdict:?}");
        if let Err(error) = verdict {
            assert_eq!(error.rejection().unwrap().reason.code(), "ConditionFailed");
        }
    }
}

#[test]
fn a_generation_is_never_used_again() {
    let disk = SimDisk::default();
    let mut store = open(&disk, &tight());
    let mut model = open_domain(&store);
    let mut seen: Vec<u64> = Vec::new();
    for round in 0..30 {
        assert_eq!(
            commit_in_both(&store, &mut model, &put("k", b"same")),
            "Accepted"
        );
        let now = model.worlds["d"].rows[&b"k"[..]].generation;
        for old in &seen {
            assert!(*old < now);
            let request = put("k", b"late").when(Cond::GenerationIs(b"k".into(), *old));
            assert_eq!(
                commit_in_both(&store, &mut model, &request),
                "ConditionFailed"
            );
        }
        seen.push(now);
        let absent = put("k", b"late").when(Cond::GenerationIs(b"k".into(), 0));
        assert_eq!(
            commit_in_both(&store, &mut model, &absent),
            "ConditionFailed"
        );
        let delete = Request::of("d", vec![Change::Delete(b"k".into())]);
        assert_eq!(commit_in_both(&store, &mut model, &delete), "Accepted");
        if round % 7 == 0 {
            store.close().unwrap();
            store = open(&disk, &tight());
        }
    }
}

/// One attempt to create a key; true if it won. Who loses can read at once what it lost to.
fn try_to_create(store: &Store, name: &str, mine: &str) -> bool {
    let request = put(name, mine.as_bytes()).when(Cond::GenerationIs(name.into(), 0));
    let verdict = store.commit(request.typed().unwrap());
    let record = store.get(&domain("d"), &key(name)).unwrap().unwrap();
    match verdict {
        Ok(receipt) => {
            assert_eq!(record.value.as_bytes(), mine.as_bytes());
            assert_eq!(record.generation.revision(), receipt.revision);
            true
        }
        Err(Error::Rejected(rejection)) => {
            assert_eq!(rejection.reason.code(), "ConditionFailed");
            assert_eq!(rejection.observed.generation, Some(record.generation));
            false
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn of_many_creators_exactly_one_wins() {
    const CREATORS: usize = 64;
    let rounds = usize::try_from(scale("HIGHWATER_CREATE_ROUNDS", 60)).unwrap();
    let store = open(&SimDisk::default(), &tight());
    open_domain(&store);
    let barrier = Barrier::new(CREATORS);
    let create_all = |me: usize| -> Vec<bool> {
        let create = |round: usize| {
            barrier.wait();
            try_to_create(&store, &format!("round/{round}"), &me.to_string())
        };
        (0..rounds).map(create).collect()
    };
    let create_all = &create_all;
    let won: Vec<Vec<bool>> = thread::scope(|scope| {
        let creators: Vec<_> = (0..CREATORS)
            .map(|me| scope.spawn(move || create_all(me)))
            .collect();
        creators.into_iter().map(|c| c.join().unwrap()).collect()
    });
    for round in 0..rounds {
        assert_eq!(
            won.iter().filter(|won| won[round]).count(),
            1,
            "round {round}"
        );
    }
}
