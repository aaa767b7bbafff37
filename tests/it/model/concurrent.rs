//! Many callers at once: what they saw must be one order that agrees with time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use highwater::{Admission, Store};
use highwater_tests::chance::Chance;
use highwater_tests::disk::SimDisk;
use highwater_tests::history::{Call, check};
use highwater_tests::raw::{Auth, Change, Cond, Request};

use crate::support::{
    answer, by_component, compare, create, domain, fence, key, model_of, open, policy, scale, tight,
};

const CALLERS: u64 = 8;

/// A request on what this caller sees just now, which may be over by the time that it is judged.
fn request(chance: &mut Chance, store: &Store, epoch: (u64, u64), caller: u64) -> Request {
    let name = chance.pick(&["a/1", "a/2", "b/1", "c"]);
    let guard = name.split('/').next().unwrap();
    let snapshot = store.snapshot().unwrap();
    let highest = fence(&snapshot, "d", guard.as_bytes()).map_or(1, |fence| fence.sequence);
    let record = snapshot.get(&domain("d"), &key(name)).unwrap();
    let generation = record.map_or(0, |record| record.generation.get());
    let change = match chance.below(6) {
        0 => Change::Delete(name.into()),
        1 => Change::Advance(guard.into()),
        _ => Change::Put(name.into(), chance.bytes(300), String::new()),
    };
    let mut request = Request::of("d", vec![change]).under(Auth {
        epoch: epoch.0,
        mark: epoch.1,
        sequence: (highest + chance.pick(&[0, 0, 0, 1, 2])).max(2) - chance.pick(&[0, 0, 1]),
        holder: format!("w{}", chance.pick(&[caller, caller, 0])).into_bytes(),
    });
    if chance.one_in(2) {
        request = request.when(Cond::GenerationIs(name.into(), generation));
    }
    if chance.one_in(4) {
        let seen = snapshot.revision().get();
        request = request.when(Cond::PrefixSince(guard.into(), seen));
    }
    request
}

#[test]
fn concurrent_histories_are_one_order() {
    let rounds = scale("HIGHWATER_CONCURRENT_ROUNDS", 12);
    let calls_each = scale("HIGHWATER_CONCURRENT_CALLS", 150);
    for seed in 0..rounds {
        let disk = SimDisk::default();
        let store = open(&disk, &tight());
        let mut model = model_of(&store);
        create(
            &store,
            &mut model,
            "d",
            policy(by_component(1), Admission::Fenced),
        );
        let epoch = model.worlds["d"].epoch;
        let clock = AtomicU64::new(0);
        let tick = || clock.fetch_add(1, Ordering::SeqCst);
        let work = |caller: u64| {
            let mut chance = Chance::new(seed * CALLERS + caller);
            let mut calls = Vec::new();
            for _ in 0..calls_each {
                let request = request(&mut chance, &store, epoch, caller);
                let typed = request.typed().unwrap();
                let begin = tick();
                let answer = answer(store.commit(typed));
                let end = tick();
                calls.push(Call {
                    begin,
                    end,
                    request,
                    answer,
                });
            }
            calls
        };
        let mut calls = Vec::new();
        thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS)
                .map(|caller| scope.spawn(move || work(caller)))
                .collect();
            for caller in callers {
                calls.extend(caller.join().unwrap());
            }
        });
        let after = check(model, calls).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        compare(&store.snapshot().unwrap(), &after);
        store.close().unwrap();
        compare(&open(&disk, &tight()).snapshot().unwrap(), &after);
    }
}

/// The checker itself: each way of lying is found.
#[test]
fn a_history_with_a_lie_in_it_is_refused() {
    let disk = SimDisk::default();
    let store = open(&disk, &tight());
    let mut model = model_of(&store);
    create(
        &store,
        &mut model,
        "d",
        policy(by_component(1), Admission::Open),
    );
    let call = |begin, key: &str| {
        let change = Change::Put(key.into(), b"v".to_vec(), String::new());
        let request = Request::of("d", vec![change]).when(Cond::GenerationIs(key.into(), 0));
        let answer = answer(store.commit(request.typed().unwrap()));
        let end = begin + 1;
        Call {
            begin,
            end,
            request,
            answer,
        }
    };
    let calls = vec![call(0, "a"), call(2, "a"), call(4, "b")];
    assert!(check(model.clone(), calls.clone()).is_ok());
    let lies: [fn(&mut Vec<Call>); 5] = [
        |calls| calls.swap_remove(0).begin = 0,
        |calls| calls[1].answer = calls[0].answer.clone(),
        |calls| calls[2].request.changes.clear(),
        |calls| (calls[0].begin, calls[0].end) = (6, 7),
        |calls| (calls[2].begin, calls[2].end) = (0, 0),
    ];
    for (number, lie) in lies.iter().enumerate() {
        let mut told = calls.clone();
        // The first call must have ended before for the last lie to be one.
        (told[0].begin, told[0].end) = (1, 2);
        lie(&mut told);
        assert!(check(model.clone(), told).is_err(), "lie {number}");
    }
}
