//! What callers are told while the log's sync takes long: nothing that isn't durable, neither by an
//! answer nor by a read.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use highwater::{Error, Receipt, Store, Ticket};
use highwater_tests::disk::{Fault, Op, SimDisk};
use highwater_tests::model::Model;
use highwater_tests::raw::{Change, Cond, Request};

use crate::support::{compare, domain, key, open, open_domain, tight};

/// How often it is looked whether something is told too early.
const LOOKS: usize = 40;

fn put(name: &str) -> Request {
    let change = Change::Put(name.into(), b"v".into(), String::new());
    Request::of("d", vec![change])
}

fn make() -> (SimDisk, Store, Model) {
    let disk = SimDisk::default();
    let mut config = tight();
    // Every commit is a group of its own.
    config.group_bytes = 1;
    config.queue_commits = 4;
    let store = open(&disk, &config);
    let model = open_domain(&store);
    (disk, store, model)
}

/// Syncs are held while this lives, so that a test that fails doesn't wait for one for ever.
struct Held(SimDisk);

impl Held {
    fn on(disk: &SimDisk) -> Self {
        disk.hold();
        Self(disk.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

fn submit(store: &Store, request: &Request) -> Ticket {
    store.submit(request.typed().unwrap()).unwrap()
}

/// Looks a while at a ticket that must not be answered.
fn unanswered(ticket: &mut Ticket) {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..LOOKS {
        let polled = Future::poll(pin!(&mut *ticket), &mut context);
        assert!(polled.is_pending(), "{polled:?}");
        thread::park_timeout(Duration::from_millis(1));
    }
}

fn code(verdict: Result<Receipt, Error>) -> &'static str {
    match verdict {
        Ok(_) => "Accepted",
        Err(Error::Indeterminate) => "Indeterminate",
        Err(Error::Rejected(rejection)) => rejection.reason.code(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn nothing_is_told_before_it_is_durable() {
    let (disk, store, mut model) = make();
    let held = Held::on(&disk);
    let mut first = submit(&store, &put("k"));
    disk.wait_for_sync();
    // It is refused because of the first, which may still be lost.
    let refused = put("k").when(Cond::GenerationIs(b"k".into(), 0));
    // A thread that commits judges for itself, while the judge's own is held in the first sync.
    let second = {
        let (store, commit) = (store.clone(), refused.typed().unwrap());
        thread::spawn(move || store.commit(commit))
    };
    unanswered(&mut first);
    assert!(!second.is_finished(), "refused on what isn't durable");
    compare(&store.snapshot().unwrap(), &model);
    assert!(store.get(&domain("d"), &key("k")).unwrap().is_none());
    assert!(
        store.judge(&refused.typed().unwrap()).is_ok(),
        "seen too early"
    );
    drop(held);
    assert_eq!(code(first.wait()), "Accepted");
    let rejection = second.join().unwrap().unwrap_err();
    model.apply(&put("k"));
    let observed = &rejection.rejection().unwrap().observed;
    assert_eq!(observed.revision.get(), model.revision);
    assert_eq!(observed.generation.unwrap().get(), model.revision);
    compare(&store.snapshot().unwrap(), &model);
}

#[test]
fn a_refusal_that_rests_on_what_was_lost_is_not_told() {
    let (disk, store, model) = make();
    let held = Held::on(&disk);
    let first = submit(&store, &put("k"));
    disk.wait_for_sync();
    let second = submit(&store, &put("k").when(Cond::GenerationIs(b"k".into(), 0)));
    let third = submit(&store, &put("other"));
    disk.plant(Fault {
        op: Op::SyncData,
        file: "log-",
        nth: 1,
        sticky: false,
    });
    drop(held);
    assert_eq!(code(first.wait()), "Indeterminate");
    assert_eq!(code(second.wait()), "Poisoned");
    let third = code(third.wait());
    assert!(["Indeterminate", "Poisoned"].contains(&third), "{third}");
    compare(&store.snapshot().unwrap(), &model);
}

#[test]
fn the_index_never_holds_what_the_log_may_still_lose() {
    let (disk, store, mut model) = make();
    let large = |number: usize| {
        let change = Change::Put(format!("k{number}").into(), vec![1; 3_000], String::new());
        Request::of("d", vec![change])
    };
    // At half of its bound the memory is closed and asked to be written to the index.
    let half = tight().memory_bytes / 2;
    let mut number = 0;
    while store.status().memory_bytes + 3_200 < half {
        assert_eq!(
            code(store.commit(large(number).typed().unwrap())),
            "Accepted"
        );
        model.apply(&large(number));
        number += 1;
    }
    let held = Held::on(&disk);
    let closing = submit(&store, &large(number));
    disk.wait_for_sync();
    for _ in 0..LOOKS {
        let indexed = store.status().indexed.get();
        assert!(indexed <= model.revision, "{indexed} is in the index");
        thread::park_timeout(Duration::from_millis(1));
    }
    drop(held);
    assert_eq!(code(closing.wait()), "Accepted");
    model.apply(&large(number));
    compare(&store.snapshot().unwrap(), &model);
}

#[test]
fn a_full_queue_refuses_and_what_was_queued_is_answered() {
    let (disk, store, mut model) = make();
    let held = Held::on(&disk);
    let mut sent = Vec::new();
    let mut refused = 0;
    for number in 0..100 {
        let request = put(&format!("k{number}"));
        match store.submit(request.typed().unwrap()) {
            Ok(ticket) => sent.push((request, ticket)),
            Err(error) => {
                assert_eq!(error.rejection().unwrap().reason.code(), "Overloaded");
                refused += 1;
            }
        }
    }
    assert!(refused > 50 && sent.len() >= 4, "{refused} refused");
    drop(held);
    for (request, ticket) in sent {
        assert_eq!(code(ticket.wait()), "Accepted");
        model.apply(&request);
    }
    compare(&store.snapshot().unwrap(), &model);
}

#[test]
fn a_commit_whose_ticket_was_dropped_happens_all_the_same() {
    let (_disk, store, mut model) = make();
    for number in 0..3 {
        drop(submit(&store, &put(&format!("k{number}"))));
        model.apply(&put(&format!("k{number}")));
    }
    assert_eq!(code(store.commit(put("last").typed().unwrap())), "Accepted");
    model.apply(&put("last"));
    compare(&store.snapshot().unwrap(), &model);
}

#[test]
fn closing_answers_all_that_was_accepted_and_takes_nothing_more() {
    let (disk, store, mut model) = make();
    let held = Held::on(&disk);
    let first = submit(&store, &put("a"));
    disk.wait_for_sync();
    let rest: Vec<_> = ["b", "c"].map(|name| submit(&store, &put(name))).into();
    let closed = thread::scope(|scope| {
        let closing = scope.spawn(|| store.close());
        // Whether it comes before or after the call: it is taken whole, or not at all.
        let late = store.submit(put("late").typed().unwrap());
        drop(held);
        for (name, ticket) in ["a", "b", "c"]
            .into_iter()
            .zip([first].into_iter().chain(rest))
        {
            assert_eq!(code(ticket.wait()), "Accepted");
            model.apply(&put(name));
        }
        match late.and_then(Ticket::wait) {
            Ok(receipt) => {
                model.apply(&put("late"));
                assert_eq!(receipt.revision.get(), model.revision);
            }
            Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
        }
        closing.join().unwrap()
    });
    closed.unwrap();
    let refused = store.commit(put("k").typed().unwrap()).unwrap_err();
    assert!(matches!(refused, Error::Closed));
    assert!(matches!(store.snapshot(), Err(Error::Closed)));
    assert!(store.close().is_ok(), "closing again does nothing");
    compare(&open(&disk, &tight()).snapshot().unwrap(), &model);
}

/// A ready future's answer, so that the look above is known to see one.
#[test]
fn an_answered_ticket_is_seen_to_be_answered() {
    let (_disk, store, _model) = make();
    let ticket = submit(&store, &put("k"));
    assert_eq!(code(store.commit(put("l").typed().unwrap())), "Accepted");
    let mut context = Context::from_waker(Waker::noop());
    let polled = Future::poll(pin!(ticket), &mut context);
    assert!(matches!(polled, Poll::Ready(Ok(_))), "{polled:?}");
}
