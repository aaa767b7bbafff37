//! Leases on the real store: terms that are never given twice, ends that have a cause, and a line
//! for each guard. Time is real here; what is waited for is a state, never a moment.

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
            assert!(
                matches!(standing, Some(LeaseStanding::Live { remaining_ms }) if remaining_ms <= LONG)
            );
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
    // It runs for more than a tick of the clock each time, and for less than the lease lasts.
    for _ in 0..40 {
        thread::sleep(Duration::from_millis(1_300));
        if stored(&store, "job").current.is_none() {
            let cause = stored(&store, "job")
                .last_end
                .as_ref()
                .unwrap()
                .cause
                .clone();
            assert_eq!(cause, EndCause::Expired);
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

#[test]
fn those_who_wait_get_the_guard_in_the_order_in_which_they_came() {
    let (_, store) = make(usual());
    let first = acquire(&store, "job", "0", LONG).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let holding = Arc::new(AtomicUsize::new(0));
    let mut waiting = Vec::new();
    for number in 1..=8_usize {
        let (store, order, holding) = (store.clone(), Arc::clone(&order), Arc::clone(&holding));
        let already = store.status().waiting;
        waiting.push(thread::spawn({
            let store = store.clone();
            move || {
                let request = wanted("job", &number.to_string(), LONG);
                let receipt = store.acquire(request, LIMIT).unwrap();
                assert_eq!(holding.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                order.lock().unwrap().push((number, sequence(&receipt)));
                holding.fetch_sub(1, Ordering::SeqCst);
                release(&store, "job", &receipt).unwrap();
            }
        }));
        let begun = Instant::now();
        while store.status().waiting == already {
            assert!(begun.elapsed() < LIMIT);
            thread::yield_now();
        }
    }
    release(&store, "job", &first).unwrap();
    for waiting in waiting {
        waiting.join().unwrap();
    }
    let order = order.lock().unwrap().clone();
    let expected: Vec<_> = (1..=8_usize).map(|n| (n, n as u64 + 1)).collect();
    assert_eq!(order, expected);
    assert_eq!(store.status().waiting, 0);
}

#[test]
fn who_waits_in_vain_hears_of_the_holder_and_leaves_nothing() {
    let (_, store) = make(usual());
    acquire(&store, "job", "a", LONG).unwrap();
    let before = store.revision();
    for _ in 0..3 {
        let verdict = store.acquire(wanted("job", "b", LONG), Duration::from_millis(20));
        let error = verdict.unwrap_err();
        let observed = &error.rejection().unwrap().observed;
        let current = observed.lease.as_ref().unwrap().record.as_ref().unwrap();
        assert_eq!(current.current.as_ref().unwrap().holder.as_bytes(), b"a");
        assert_eq!(code::<()>(Err(error)), "LeaseHeld");
    }
    assert_eq!(store.status().waiting, 0);
    // The clock is noted while there are leases; nothing else happens.
    assert_eq!(sequence_issued(&store), 1);
    assert!(store.revision() >= before);
}

fn sequence_issued(store: &Store) -> u64 {
    stored(store, "job").issued().unwrap().get()
}

#[test]
fn who_waits_for_a_lapsing_lease_gets_it_once_it_has_lapsed() {
    let (_, store) = make(usual());
    let a = acquire(&store, "job", "a", SHORT).unwrap();
    let b = store.acquire(wanted("job", "b", LONG), LIMIT).unwrap();
    assert_eq!(sequence(&b), sequence(&a) + 1);
    let ended = stored(&store, "job").last_end.clone().unwrap();
    assert_eq!(ended.cause, EndCause::Expired);
    assert_eq!(ended.lease.id, granted(&a).1);
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

/// Thousands of leases end in one moment, beside one that is renewed and one who writes.
#[test]
fn a_mass_of_lapsing_leases_starves_nobody() {
    let many = scale("HIGHWATER_LEASES", 3_000);
    let disk = SimDisk::default();
    let mut config = tight();
    config.queue_commits = 256;
    let store = open(&disk, &config);
    store.create_domain(domain("d"), usual(), None).unwrap();
    let alive = acquire(&store, "alive", "a", 20_000).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let renewing = thread::spawn({
        let (store, stop, alive) = (store.clone(), Arc::clone(&stop), alive.clone());
        move || {
            let mut renewals = 0;
            while !stop.load(Ordering::SeqCst) {
                renew(&store, "alive", &alive).unwrap();
                renewals += 1;
                thread::park_timeout(Duration::from_millis(20));
            }
            renewals
        }
    });
    for part in (0..many).collect::<Vec<_>>().chunks(64) {
        let mut commit = Commit::new(domain("d"));
        for number in part {
            commit = commit.with(Mutation::Acquire {
                guard: guard(&format!("mass/{number}")),
                holder: Holder::new("m").unwrap(),
                ttl: Ttl::new(3_000).unwrap(),
                seal: true,
                supersede: false,
            });
        }
        store.commit(commit).unwrap();
    }
    let begun = Instant::now();
    let mut written = 0_u64;
    while store.status().leases > 1 {
        store.commit(put(&granted(&alive).0, "alive")).unwrap();
        written += 1;
        assert!(
            begun.elapsed() < LIMIT,
            "{} are left",
            store.status().leases
        );
    }
    stop.store(true, Ordering::SeqCst);
    assert!(renewing.join().unwrap() > 0 && written > 0);
    for number in 0..many {
        let record = stored(&store, &format!("mass/{number}"));
        assert!(record.current.is_none());
        assert_eq!(record.last_end.as_ref().unwrap().cause, EndCause::Expired);
    }
    assert_eq!(
        stored(&store, "alive").current.as_ref().unwrap().id,
        granted(&alive).1
    );
}

/// Many contend, the store is killed again and again: no term is ever granted twice, and terms rise
/// in the order of the grants.
#[test]
fn no_two_grants_are_of_one_term_whatever_happens() {
    let (mut disk, mut store) = make(usual());
    let mut last = [0; 4];
    let mut seen = BTreeSet::new();
    for round in 0..scale("HIGHWATER_LEASE_ROUNDS", 12) {
        let contenders: Vec<_> = (0..6)
            .map(|number| {
                let store = store.clone();
                thread::spawn(move || {
                    let mut grants = Vec::new();
                    for turn in 0..20_usize {
                        let place = (turn + number) % 4;
                        let name = format!("g{place}");
                        let request = wanted(&name, &format!("h{number}"), LONG);
                        let Ok(receipt) = store.acquire(request, Duration::from_millis(5)) else {
                            continue;
                        };
                        grants.push((receipt.revision.get(), place, sequence(&receipt)));
                        if turn % 5 != 4 {
                            release(&store, &name, &receipt).unwrap();
                        }
                    }
                    grants
                })
            })
            .collect();
        let mut grants: Vec<_> = contenders
            .into_iter()
            .flat_map(|contender| contender.join().unwrap())
            .collect();
        grants.sort_unstable();
        for (_, place, sequence) in grants {
            assert!(seen.insert((place, sequence)), "granted twice");
            assert!(sequence > last[place], "{sequence} after {}", last[place]);
            last[place] = sequence;
        }
        for place in 0..4 {
            let revoke = Mutation::Revoke {
                guard: guard(&format!("g{place}")),
                lease: None,
                by: Owner::new("test").unwrap(),
            };
            let verdict = store.commit(Commit::new(domain("d")).with(revoke));
            assert!(verdict.is_ok() || code(verdict) == "LeaseGone");
        }
        if round % 2 == 0 {
            (disk, store) = killed(&disk);
        } else {
            store.close().unwrap();
            store = open(&disk, &tight());
        }
    }
    assert!(seen.len() > 20, "{} grants", seen.len());
}
