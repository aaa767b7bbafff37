//! Power cuts under leases: no term is granted twice, a grant that was told is known, and an end
//! that was told stays.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use highwater::{
    Acquire, Admission, Authority, Commit, Guard, GuardRule, Holder, Key, LeaseId, LeaseRecord,
    Mutation, Owner, Receipt, Store, Ttl, Value,
};
use highwater_tests::chance::Chance;
use highwater_tests::disk::{Files, SimDisk};
use highwater_tests::trace::{Cut, Event, Trace};

use super::moments;
use crate::support::{domain, open, policy, scale, tight};

const GUARDS: usize = 3;
const STEPS: usize = 60;
const OPENINGS: usize = 3;
const LONG: u64 = 3_600_000;
const SHORT: u64 = 100;
/// How long anything may take; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(60);

/// What is known of a guard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// The highest sequence that was granted.
    issued: u64,
    /// The lease that hasn't ended, and how long it lasts.
    current: Option<(LeaseId, u64)>,
    /// Those that have.
    ended: Vec<LeaseId>,
}

type World = BTreeMap<usize, Known>;

/// A workload that was run: what was known after each of its steps. A mark carries the number of a
/// step, and in the lowest bit whether it was answered.
struct Work {
    trace: Trace,
    worlds: Vec<World>,
    checkpoints: u64,
}

fn guard(number: usize) -> Guard {
    Guard::new(format!("g{number}")).unwrap()
}

fn acquire(number: usize, holder: &str, ttl_ms: u64) -> Commit {
    let (holder, ttl) = (Holder::new(holder).unwrap(), Ttl::new(ttl_ms).unwrap());
    Acquire::new(domain("d"), guard(number), holder, ttl).commit()
}

fn revoke(number: usize) -> Commit {
    Commit::new(domain("d")).with(Mutation::Revoke {
        guard: guard(number),
        lease: None,
        by: Owner::new("operator").unwrap(),
    })
}

fn stored(store: &Store, number: usize) -> Option<std::sync::Arc<LeaseRecord>> {
    let snapshot = store.snapshot().unwrap();
    snapshot.lease(&domain("d"), &guard(number)).unwrap()
}

fn granted(receipt: &Receipt) -> (Authority, LeaseId) {
    let lease = &receipt.leases[0].lease;
    (lease.authority(), lease.id)
}

/// One step on a guard: grants, renewals and ends of every kind, with data in between so that
/// checkpoints are written. What is known afterwards.
fn step(
    store: &Store,
    known: &Known,
    number: usize,
    held: &mut Option<Authority>,
    kind: usize,
) -> Known {
    let mut after = known.clone();
    let Some((lease, ttl)) = known.current else {
        let ttl = if kind == 0 { SHORT } else { LONG };
        let receipt = store.commit(acquire(number, "a", ttl)).unwrap();
        let (authority, lease) = granted(&receipt);
        after.issued = authority.term().sequence.get();
        after.current = Some((lease, ttl));
        *held = Some(authority);
        return after;
    };
    let authority = held.clone().unwrap();
    let commit = Commit::new(domain("d")).under(authority);
    let guard = guard(number);
    if ttl == SHORT {
        let begun = Instant::now();
        while stored(store, number).unwrap().current.is_some() {
            assert!(begun.elapsed() < LIMIT, "it never ends");
            thread::park_timeout(Duration::from_millis(5));
        }
    } else if kind == 0 {
        store
            .commit(commit.with(Mutation::Renew {
                guard,
                lease,
                ttl: None,
            }))
            .unwrap();
        return after;
    } else if kind < 3 {
        let key = Key::new(format!("g{number}")).unwrap();
        store
            .commit(commit.put(key, Value::new(vec![7; 3_000]).unwrap()))
            .unwrap();
        return after;
    } else if kind == 3 {
        store
            .commit(commit.with(Mutation::Release { guard, lease }))
            .unwrap();
    } else {
        store.commit(revoke(number)).unwrap();
    }
    after.current = None;
    after.ended.push(lease);
    after
}

impl Work {
    fn run(seed: u64) -> Self {
        let disk = SimDisk::default();
        let mut store = open(&disk, &tight());
        let usual = policy(GuardRule::Key, Admission::Fenced);
        store.create_domain(domain("d"), usual, None).unwrap();
        disk.record();
        let mut chance = Chance::new(seed);
        let mut held = vec![None; GUARDS];
        let mut worlds = vec![World::new()];
        let mut checkpoints = 0;
        for opening in 0..OPENINGS {
            for _ in 0..STEPS {
                let number = chance.below(GUARDS);
                let mut world = worlds.last().unwrap().clone();
                let asked = u64::try_from(worlds.len()).unwrap();
                disk.mark(asked << 1);
                let known = world.remove(&number).unwrap_or_default();
                let after = step(&store, &known, number, &mut held[number], chance.below(5));
                disk.mark(asked << 1 | 1);
                assert!(after.issued >= known.issued);
                world.insert(number, after);
                worlds.push(world);
            }
            checkpoints += store.status().counted.checkpoints;
            if opening % 2 == 0 {
                store.close().unwrap();
            }
            if opening + 1 < OPENINGS {
                drop(store);
                store = open(&disk, &tight());
            }
        }
        let trace = disk.recorded();
        Self {
            trace,
            worlds,
            checkpoints,
        }
    }
}

/// Opens what a cut has left, twice, and looks at every guard. `answered` is the last step that was
/// answered, `asked` the last that was asked.
fn examine(files: &Files, work: &Work, answered: usize, asked: usize) {
    let disk = SimDisk::with_files(files);
    let store = open(&disk, &tight());
    let worlds = &work.worlds[answered..=asked];
    let found: Vec<_> = (0..GUARDS)
        .map(|number| fits(&store, number, worlds))
        .collect();
    let disk = SimDisk::with_files(&disk.files());
    drop(store);
    let store = open(&disk, &tight());
    for (number, issued) in found.into_iter().enumerate() {
        assert_eq!(fits(&store, number, worlds), issued, "it goes back");
        let known = worlds[0].get(&number).cloned().unwrap_or_default();
        if let Err(error) = store.commit(revoke(number)) {
            assert_eq!(error.rejection().unwrap().reason.code(), "LeaseGone");
        }
        let receipt = store.commit(acquire(number, "b", LONG)).unwrap();
        let (authority, lease) = granted(&receipt);
        assert_eq!(authority.term().sequence.get(), issued + 1);
        assert!(issued >= known.issued && !known.ended.contains(&lease));
        assert!(known.current.is_none_or(|(told, _)| told != lease));
    }
}

/// What is stored of a guard is what was known before the step that was cut, or after it; the
/// highest sequence in it.
fn fits(store: &Store, number: usize, worlds: &[World]) -> u64 {
    let record = stored(store, number);
    let issued = record.as_ref().and_then(|record| record.issued());
    let issued = issued.map_or(0, |sequence| sequence.get());
    let current = record.and_then(|record| record.current.as_ref().map(|lease| lease.id));
    let fits = |world: &World| {
        let known = world.get(&number).cloned().unwrap_or_default();
        let told = known.current.map(|(lease, _)| lease);
        // A short one may have lapsed since.
        let lapsed = known.current.is_some_and(|(_, ttl)| ttl == SHORT) && current.is_none();
        known.issued == issued && (told == current || lapsed)
    };
    assert!(worlds.iter().any(fits), "{issued}, {current:?}: {worlds:?}");
    issued
}

#[test]
fn a_power_cut_at_any_moment_gives_no_term_twice_and_no_ended_lease_back() {
    let others = usize::try_from(scale("HIGHWATER_CRASH_POINTS", 100)).unwrap();
    let mut images = 0;
    for seed in 0..scale("HIGHWATER_LEASE_CRASH_SEEDS", 1) {
        let work = Work::run(seed);
        assert!(work.checkpoints > 0, "no checkpoint was written");
        let mut chance = Chance::new(seed);
        let mut wanted = moments(&work.trace, others).into_iter().peekable();
        let mut cursor = work.trace.replay();
        let (mut answered, mut asked) = (0, 0);
        for at in 0..=work.trace.events().len() {
            if wanted.next_if_eq(&at).is_some() || at == work.trace.events().len() {
                for cut in Cut::each(chance.bits()) {
                    examine(&cursor.image(cut), &work, answered, asked);
                    images += 1;
                }
            }
            if let Some(Event::Mark(mark)) = cursor.step() {
                asked = usize::try_from(mark >> 1).unwrap();
                answered = if mark & 1 == 1 { asked } else { answered };
            }
        }
    }
    println!("{images} images");
    assert!(images > 400, "{images} images");
}
