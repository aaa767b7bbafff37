//! Intents on the real store: a step takes effect once at most, and whoever asks for it again gets
//! the receipt of then, whatever happened to the store in between.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use highwater::{Availability, Error, Receipt, Store};
use highwater_tests::disk::{Fault, Op, SimDisk};
use highwater_tests::model::Model;
use highwater_tests::raw::{Change, Cond, Request};

use crate::support::{compare, key, open, open_domain, tight};

/// How long a checkpoint may take; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(60);

fn put(name: &str, value: &[u8]) -> Request {
    let change = Change::Put(name.into(), value.into(), String::new());
    Request::of("d", vec![change])
}

fn make() -> (SimDisk, Store, Model) {
    let disk = SimDisk::default();
    let mut config = tight();
    config.queue_commits = 4;
    let store = open(&disk, &config);
    let model = open_domain(&store);
    (disk, store, model)
}

fn commit(store: &Store, request: &Request) -> Result<Receipt, Error> {
    store.commit(request.typed().unwrap())
}

fn code(verdict: &Result<Receipt, Error>) -> &'static str {
    match verdict {
        Ok(receipt) if receipt.replayed => "Replayed",
        Ok(_) => "Accepted",
        Err(Error::Indeterminate) => "Indeterminate",
        Err(error) => error.rejection().unwrap().reason.code(),
    }
}

/// The receipt that a repetition gets: the first one, time included, marked as told again.
#[track_caller]
fn repeats(store: &Store, request: &Request, first: &Receipt) {
    let mut expected = first.clone();
    expected.replayed = true;
    assert_eq!(commit(store, request).unwrap(), expected);
    assert_eq!(store.judge(&request.typed().unwrap()).unwrap(), expected);
}

/// A step that is no repetition by what it asks for: it would be refused if it ran again.
fn once(step: u32) -> Request {
    let name = format!("once/{step}");
    let absent = Cond::GenerationIs(name.clone().into(), 0);
    put(&name, b"v").when(absent).step("i", step)
}

#[test]
fn a_step_is_told_again_after_a_kill_a_checkpoint_and_a_reopening() {
    let (mut disk, mut store, mut model) = make();
    let mut receipts = Vec::new();
    for round in 1..=6 {
        let receipt = commit(&store, &once(round)).unwrap();
        assert!(receipt.advisory_time_ms.is_some() && !receipt.replayed);
        model.apply(&once(round));
        receipts.push(receipt);
        if round % 3 == 0 {
            // As a killed process leaves it.
            disk = SimDisk::with_files(&disk.files());
            store = open(&disk, &tight());
        } else if round % 3 == 1 {
            store.close().unwrap();
            store = open(&disk, &tight());
        } else {
            // Until what is in memory was written to the index, and is looked up there.
            let before = store.status().counted.checkpoints;
            let begun = Instant::now();
            let mut number = 0_u32;
            while store.status().counted.checkpoints < before + 2 {
                assert!(begun.elapsed() < LIMIT, "no checkpoint");
                let other = put(&format!("k{}", number % 7), &[7; 3_000]);
                assert_eq!(code(&commit(&store, &other)), "Accepted");
                model.apply(&other);
                number += 1;
            }
        }
        for (step, receipt) in (1..).zip(&receipts) {
            repeats(&store, &once(step), receipt);
            let other = put("k", b"other").step("i", step);
            assert_eq!(code(&commit(&store, &other)), "IntentConflict");
        }
        compare(&store.snapshot().unwrap(), &model);
    }
}

#[test]
fn of_many_who_ask_for_one_step_at_once_one_has_an_effect() {
    let (_disk, store, mut model) = make();
    for step in 1..=20 {
        let effects = AtomicU64::new(0);
        let receipts: Vec<Receipt> = thread::scope(|scope| {
            let ask = || {
                let receipt = commit(&store, &once(step)).unwrap();
                effects.fetch_add(u64::from(!receipt.replayed), Ordering::SeqCst);
                receipt
            };
            let callers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            callers.into_iter().map(|c| c.join().unwrap()).collect()
        });
        assert_eq!(effects.load(Ordering::SeqCst), 1);
        model.apply(&once(step));
        for receipt in receipts {
            assert_eq!(receipt.revision.get(), model.revision);
        }
        compare(&store.snapshot().unwrap(), &model);
    }
    let counted = store.status().counted;
    assert_eq!((counted.accepted, counted.replayed), (1 + 20, 7 * 20));
}

/// While syncs are held nothing that waits for one is told again; what was durable before is.
#[test]
fn what_is_not_durable_yet_is_not_told_again() {
    let (disk, store, mut model) = make();
    let first = commit(&store, &once(1)).unwrap();
    model.apply(&once(1));
    disk.hold();
    let second = store.submit(once(2).typed().unwrap()).unwrap();
    disk.wait_for_sync();
    let again = store.submit(once(2).typed().unwrap()).unwrap();
    disk.plant(Fault {
        op: Op::SyncData,
        file: "log-",
        nth: 1,
        sticky: false,
    });
    disk.release();
    assert_eq!(code(&second.wait()), "Indeterminate");
    let again = code(&again.wait());
    assert!(["Indeterminate", "Poisoned"].contains(&again), "{again}");
    // A poisoned store takes nothing, and still tells what it has told.
    assert_eq!(store.status().availability, Availability::Poisoned);
    let mut expected = first.clone();
    expected.replayed = true;
    assert_eq!(commit(&store, &once(1)).unwrap(), expected);
    assert_eq!(code(&commit(&store, &once(2))), "Poisoned");
    assert_eq!(code(&commit(&store, &put("k", b"v"))), "Poisoned");
    compare(&store.snapshot().unwrap(), &model);
    drop(store);
    // Whether the second is on disk only a reopening tells; it is there once at most.
    let store = open(&disk, &tight());
    let verdict = commit(&store, &once(2));
    assert!(["Accepted", "Replayed"].contains(&code(&verdict)));
    model.apply(&once(2));
    compare(&store.snapshot().unwrap(), &model);
    repeats(&store, &once(1), &first);
}

#[test]
fn a_full_queue_still_tells_what_was_told_before() {
    let (disk, store, mut model) = make();
    let first = commit(&store, &once(1)).unwrap();
    model.apply(&once(1));
    disk.hold();
    let mut sent = Vec::new();
    let refused = loop {
        let request = put(&format!("k{}", sent.len()), b"v");
        match store.submit(request.typed().unwrap()) {
            Ok(ticket) => sent.push((request, ticket)),
            Err(error) => break error,
        }
        assert!(sent.len() < 100, "the queue is never full");
    };
    assert_eq!(refused.rejection().unwrap().reason.code(), "Overloaded");
    let told = loop {
        // The judge may have made room for it meanwhile; then it waits like everybody.
        match store.submit(put("x", b"v").typed().unwrap()) {
            Ok(ticket) => sent.push((put("x", b"v"), ticket)),
            Err(_) => break store.submit(once(1).typed().unwrap()).unwrap(),
        }
    };
    disk.release();
    let mut expected = first;
    expected.replayed = true;
    assert_eq!(told.wait().unwrap(), expected);
    for (request, ticket) in sent {
        assert_eq!(code(&ticket.wait()), "Accepted");
        model.apply(&request);
    }
    compare(&store.snapshot().unwrap(), &model);
}

/// An intent that fills its record, over small segments: refused by size, never half recorded.
#[test]
fn a_record_that_is_too_large_is_refused_whole() {
    let (_disk, store, mut model) = make();
    let large = |step: u32| {
        let names = (0..25).map(|n| format!("{n:0800}").into_bytes());
        let changes = names.map(|key| Change::Put(key, vec![], String::new()));
        Request::of("d", changes.collect()).step("i", step)
    };
    let mut accepted = 0;
    let refused = loop {
        let verdict = commit(&store, &large(accepted + 1));
        if code(&verdict) != "Accepted" {
            break verdict;
        }
        accepted += 1;
        model.apply(&large(accepted));
        assert!(accepted < 64, "never full");
    };
    assert_eq!(code(&refused), "Malformed");
    assert!(accepted > 0);
    compare(&store.snapshot().unwrap(), &model);
    assert_eq!(code(&commit(&store, &large(accepted))), "Replayed");
    assert!(
        store
            .get(&crate::support::domain("d"), &key("x"))
            .unwrap()
            .is_none()
    );
}
