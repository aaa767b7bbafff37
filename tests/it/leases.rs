//! Leases on the real store: terms that are never given twice, ends that have a cause, and a line
//! for each guard. Time is real here; what is waited for is a state, never a moment.

mod failures;
mod many;
mod waiting;
mod watching;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use highwater::{
    Acquire, Admission, Authority, Commit, EndCause, Error, Guard, GuardRule, Holder, IntentId,
    IntentUse, Key, LeaseId, LeaseRecord, LeaseStanding, Mutation, Owner, Policy, Receipt, Step,
    Store, Terms, Ttl, Value,
};
use highwater_tests::disk::SimDisk;

use crate::support::{domain, open, policy, scale, tight};

/// How long anything may take; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(60);
const SHORT: u64 = 150;
const LONG: u64 = 3_600_000;

fn make(policy: Policy) -> (SimDisk, Store) {
    let disk = SimDisk::default();
    let store = open(&disk, &tight());
    store.create_domain(domain("d"), policy, None).unwrap();
    (disk, store)
}

fn usual() -> Policy {
    policy(GuardRule::Key, Admission::Fenced)
}

fn guard(name: &str) -> Guard {
    Guard::new(name).unwrap()
}

fn wanted(name: &str, holder: &str, ttl_ms: u64) -> Acquire {
    let (guard, holder) = (guard(name), Holder::new(holder).unwrap());
    Acquire::new(domain("d"), guard, holder, Ttl::new(ttl_ms).unwrap())
}

fn acquire(store: &Store, name: &str, holder: &str, ttl_ms: u64) -> Result<Receipt, Error> {
    store.commit(wanted(name, holder, ttl_ms).commit())
}

/// The authority and the id of the one lease that a receipt tells of.
fn granted(receipt: &Receipt) -> (Authority, LeaseId) {
    let lease = &receipt.leases[0].lease;
    (lease.authority(), lease.id)
}

fn sequence(receipt: &Receipt) -> u64 {
    granted(receipt).0.term().sequence.get()
}

fn put(authority: &Authority, name: &str) -> Commit {
    Commit::new(domain("d"))
        .under(authority.clone())
        .put(Key::new(name).unwrap(), Value::new("v").unwrap())
}

fn release(store: &Store, name: &str, receipt: &Receipt) -> Result<Receipt, Error> {
    let (authority, lease) = granted(receipt);
    let guard = guard(name);
    let commit = Commit::new(domain("d"))
        .under(authority)
        .with(Mutation::Release { guard, lease });
    store.commit(commit)
}

fn renew(store: &Store, name: &str, receipt: &Receipt) -> Result<Receipt, Error> {
    let (authority, lease) = granted(receipt);
    let (guard, ttl) = (guard(name), None);
    let commit = Commit::new(domain("d"))
        .under(authority)
        .with(Mutation::Renew { guard, lease, ttl });
    store.commit(commit)
}

#[track_caller]
fn code<T: std::fmt::Debug>(verdict: Result<T, Error>) -> &'static str {
    verdict.unwrap_err().rejection().unwrap().reason.code()
}

fn stored(store: &Store, name: &str) -> Arc<LeaseRecord> {
    let snapshot = store.snapshot().unwrap();
    snapshot.lease(&domain("d"), &guard(name)).unwrap().unwrap()
}

/// Waits until a guard has no lease, and tells how the last one ended.
fn ended(store: &Store, name: &str) -> EndCause {
    let begun = Instant::now();
    loop {
        let record = stored(store, name);
        if record.current.is_none() {
            return record.last_end.as_ref().unwrap().cause.clone();
        }
        assert!(begun.elapsed() < LIMIT, "it never ends");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// As a killed process leaves it.
fn killed(disk: &SimDisk) -> (SimDisk, Store) {
    let disk = SimDisk::with_files(&disk.files());
    let store = open(&disk, &tight());
    (disk, store)
}

#[test]
fn who_comes_after_is_fenced_in_and_who_was_before_out() {
    let (_, store) = make(usual());
    let a = acquire(&store, "job", "a", LONG).unwrap();
    store.commit(put(&granted(&a).0, "job")).unwrap();
    assert_eq!(code(acquire(&store, "job", "b", LONG)), "LeaseHeld");
    assert_eq!(code(acquire(&store, "job", "a", LONG)), "LeaseHeld");
    release(&store, "job", &a).unwrap();
    assert_eq!(ended(&store, "job"), EndCause::Released);
    // Nobody has taken over yet.
    store.commit(put(&granted(&a).0, "job")).unwrap();
    let b = acquire(&store, "job", "b", LONG).unwrap();
    assert_eq!((sequence(&a), sequence(&b)), (1, 2));
    assert_eq!(code(store.commit(put(&granted(&a).0, "job"))), "StaleTerm");
    store.commit(put(&granted(&b).0, "job")).unwrap();
    assert_eq!(code(release(&store, "job", &a)), "LeaseGone");
    assert_eq!(code(renew(&store, "job", &a)), "StaleTerm");
    assert_eq!(
        stored(&store, "job").current.as_ref().unwrap().id,
        granted(&b).1
    );
    // Failback: the same holder, a new term.
    release(&store, "job", &b).unwrap();
    let again = acquire(&store, "job", "a", LONG).unwrap();
    assert_eq!(sequence(&again), 3);
    assert_eq!(code(store.commit(put(&granted(&a).0, "job"))), "StaleTerm");
}

#[test]
fn a_lease_that_lapses_ends_by_itself_and_fences_nobody() {
    let (_, store) = make(usual());
    let a = acquire(&store, "job", "a", SHORT).unwrap();
    assert_eq!(ended(&store, "job"), EndCause::Expired);
    assert_eq!(store.status().leases, 0);
    assert_eq!(code(renew(&store, "job", &a)), "LeaseGone");
    store.commit(put(&granted(&a).0, "job")).unwrap();
    let mut open = wanted("job", "b", LONG);
    open.seal = false;
    let b = store.commit(open.commit()).unwrap();
    assert_eq!(sequence(&b), 2);
    store.commit(put(&granted(&a).0, "job")).unwrap();
    store.commit(put(&granted(&b).0, "job")).unwrap();
    assert_eq!(code(store.commit(put(&granted(&a).0, "job"))), "StaleTerm");
}

#[test]
fn a_renewed_lease_goes_on_and_a_revoked_one_does_not() {
    let (_, store) = make(usual());
    let a = acquire(&store, "job", "a", SHORT).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(4 * SHORT) {
        if let Err(error) = renew(&store, "job", &a) {
            // A machine that stood still so long has let it lapse.
            assert_eq!(code::<()>(Err(error)), "LeaseGone");
            return;
        }
        thread::park_timeout(Duration::from_millis(SHORT / 10));
    }
    assert_eq!(sequence(&a), 1);
    let revoke = Mutation::Revoke {
        guard: guard("job"),
        lease: None,
        by: Owner::new("operator").unwrap(),
    };
    store
        .commit(Commit::new(domain("d")).with(revoke.clone()))
        .unwrap();
    let by = Owner::new("operator").unwrap();
    assert_eq!(ended(&store, "job"), EndCause::Revoked { by });
    assert_eq!(code(renew(&store, "job", &a)), "LeaseGone");
    assert_eq!(
        code(store.commit(Commit::new(domain("d")).with(revoke))),
        "LeaseGone"
    );
}

#[test]
fn a_restart_keeps_leases_and_never_gives_a_term_twice() {
    let (mut disk, mut store) = make(usual());
    let held = acquire(&store, "held", "a", LONG).unwrap();
    for round in 1..=6_u64 {
        let receipt = acquire(&store, "job", "a", LONG).unwrap();
        assert_eq!(sequence(&receipt), round);
        if round % 2 == 0 {
            (disk, store) = killed(&disk);
        } else {
            store.close().unwrap();
            store = open(&disk, &tight());
        }
        let snapshot = store.snapshot().unwrap();
        let clock = snapshot.lease_clock().unwrap();
        for name in ["held", "job"] {
            let record = stored(&store, name);
            let epoch = store.domain(&domain("d")).unwrap().epochs.current().epoch;
            let standing = record.standing(&epoch, &clock);
            let Some(LeaseStanding::Live { remaining_ms }) = standing else {
                panic!("{standing:?}");
            };
            assert!(remaining_ms <= LONG);
        }
        assert_eq!(code(acquire(&store, "job", "b", LONG)), "LeaseHeld");
        release(&store, "job", &receipt).unwrap();
    }
    renew(&store, "held", &held).unwrap();
    assert_eq!(store.status().leases, 1);
    let page = store
        .snapshot()
        .unwrap()
        .leases(&domain("d"), None, 1)
        .unwrap();
    assert!(page.more && page.leases[0].0 == guard("held"));
}

#[test]
fn a_dead_holders_lease_ends_though_the_store_restarts_again_and_again() {
    const TTL: u64 = 3_000;
    let (mut disk, mut store) = make(usual());
    acquire(&store, "job", "a", TTL).unwrap();
    let begun = Instant::now();
    // It runs until its clock is noted, at the opening and once more, and not for as long as the
    // lease lasts.
    for _ in 0..40 {
        let opened = store.revision().get();
        while store.revision().get() < opened + 2 && stored(&store, "job").current.is_some() {
            assert!(begun.elapsed() < LIMIT, "the clock isn't noted");
            thread::park_timeout(Duration::from_millis(5));
        }
        let record = stored(&store, "job");
        if record.current.is_none() {
            assert_eq!(record.last_end.as_ref().unwrap().cause, EndCause::Expired);
            assert!(
                begun.elapsed() >= Duration::from_millis(TTL),
                "not before its time"
            );
            return;
        }
        (disk, store) = killed(&disk);
    }
    panic!("it never ends");
}

fn sequence_issued(store: &Store) -> u64 {
    stored(store, "job").issued().unwrap().get()
}

#[test]
fn after_an_expiry_only_the_former_holder_comes_in_until_the_grace_is_over() {
    let (disk, store) = make(usual().with_grace_ms(4_000).unwrap());
    acquire(&store, "job", "a", SHORT).unwrap();
    assert_eq!(ended(&store, "job"), EndCause::Expired);
    assert_eq!(code(acquire(&store, "job", "b", LONG)), "LeaseDelayed");
    // Neither a kill nor what follows shortens it.
    drop(store);
    let (_, store) = killed(&disk);
    assert_eq!(code(acquire(&store, "job", "b", LONG)), "LeaseDelayed");
    let b = store.acquire(wanted("job", "b", SHORT), LIMIT).unwrap();
    assert_eq!(sequence(&b), 2);
    assert_eq!(ended(&store, "job"), EndCause::Expired);
    assert_eq!(sequence(&acquire(&store, "job", "b", LONG).unwrap()), 3);
}

#[test]
fn an_acquisition_with_an_intent_is_the_same_one_however_often_it_is_sent() {
    let (disk, store) = make(usual());
    let mut request = wanted("job", "a", LONG);
    request.intent = Some(IntentUse {
        id: IntentId::new("lead/1").unwrap(),
        step: Step::FIRST,
        completes: true,
    });
    let first = store.commit(request.commit()).unwrap();
    let again = store.commit(request.commit()).unwrap();
    assert!(again.replayed && again.leases == first.leases);
    release(&store, "job", &first).unwrap();
    acquire(&store, "job", "b", LONG).unwrap();
    let (_, store) = killed(&disk);
    let late = store.commit(request.commit()).unwrap();
    assert!(late.replayed && late.leases == first.leases);
    assert_eq!(sequence_issued(&store), 2, "it burned no term");
    request.ttl = Ttl::new(LONG + 1).unwrap();
    assert_eq!(code(store.commit(request.commit())), "IntentConflict");
}

#[test]
fn only_issued_and_only_leased_terms_pass_where_the_policy_says_so() {
    let issued = usual().with_terms(Terms::Issued);
    let (_, store) = make(issued);
    let epoch = store.domain(&domain("d")).unwrap().epochs.current().epoch;
    let invented = Authority::parse(&format!("{epoch}/9@a")).unwrap();
    assert_eq!(code(store.commit(put(&invented, "job"))), "UnknownTerm");
    let a = acquire(&store, "job", "a", SHORT).unwrap();
    let own = granted(&a).0;
    let others = Authority::parse(&own.to_string().replace("@a", "@b")).unwrap();
    assert_ne!(code(store.commit(put(&others, "job"))), "Accepted");
    store.commit(put(&own, "job")).unwrap();
    assert_eq!(ended(&store, "job"), EndCause::Expired);
    store.commit(put(&own, "job")).unwrap();

    let (_, store) = make(usual().with_strict(true));
    let a = acquire(&store, "job", "a", SHORT).unwrap();
    let own = granted(&a).0;
    assert_eq!(ended(&store, "job"), EndCause::Expired);
    assert_eq!(code(store.commit(put(&own, "job"))), "NotLeased");
    let b = acquire(&store, "job", "b", LONG).unwrap();
    store.commit(put(&granted(&b).0, "job")).unwrap();
}
