//! Watches: from any revision, exactly the commits after it, in order and whole; or too old.

use std::time::Duration;

use highwater::{Error, KeyRange, Revision, Store, Watch, WatchChange, WatchEvent, WatchRequest};
use highwater_tests::chance::Chance;
use highwater_tests::disk::SimDisk;
use highwater_tests::model::{Model, Row, guard_touched, presented};
use highwater_tests::raw::{Auth, Bytes, Change, Request};
use highwater_tests::seen;

use super::SHAPE;
use crate::generate::request;
use crate::support::{commit_in_both, create, domain, model_of, open, policies, tight};

/// Long enough for any event that is on its way; a test that waits so long has failed.
const LIMIT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Put(Bytes, Row),
    Label(Bytes, Row),
    Deleted(Bytes),
    Fenced(Bytes, Auth),
}

/// One commit: its revision, its domain, and what it changed, keys before fences.
type Entry = (u64, String, Vec<Told>);

fn told(event: &WatchEvent) -> (u64, Vec<Told>) {
    let changes = event.changes.iter().map(|change| match change {
        WatchChange::Put { key, record } => Told::Put(key.as_bytes().into(), seen::row(record)),
        WatchChange::Metadata { key, record } => {
            Told::Label(key.as_bytes().into(), seen::row(record))
        }
        WatchChange::Deleted { key } => Told::Deleted(key.as_bytes().into()),
        WatchChange::Fenced { guard, fence } => {
            Told::Fenced(guard.as_bytes().into(), seen::fence(fence))
        }
        WatchChange::Leased { .. } => panic!("leases weren't asked for"),
    });
    (event.revision.get(), changes.collect())
}

/// What a watcher of everything must be told about an accepted request.
fn entry(before: &Model, after: &Model, request: &Request) -> Entry {
    let (old, new) = (
        &before.worlds[&request.domain],
        &after.worlds[&request.domain],
    );
    let mut told = Vec::new();
    for change in &request.changes {
        match change {
            Change::Put(key, ..) => told.push(Told::Put(key.clone(), new.rows[key].clone())),
            Change::Label(key, _) => told.push(Told::Label(key.clone(), new.rows[key].clone())),
            Change::Delete(key) if old.rows.contains_key(key) => {
                told.push(Told::Deleted(key.clone()));
            }
            _ => {}
        }
    }
    let mut guards: Vec<_> = request
        .changes
        .iter()
        .filter_map(|change| guard_touched(&new.policy, change))
        .collect();
    guards.sort();
    guards.dedup();
    for guard in guards {
        if let Some(auth) = presented(request, &guard)
            && old.fences.get(&guard) != Some(auth)
        {
            told.push(Told::Fenced(guard, auth.clone()));
        }
    }
    (after.revision, request.domain.clone(), told)
}

/// What a watch of this range is told of a commit; `None` if nothing.
fn matching(entry: &Entry, name: &str, prefix: &[u8], fences: bool) -> Option<(u64, Vec<Told>)> {
    let wanted = |told: &&Told| match told {
        Told::Put(key, _) | Told::Label(key, _) | Told::Deleted(key) => key.starts_with(prefix),
        Told::Fenced(..) => fences,
    };
    let told: Vec<_> = entry.2.iter().filter(wanted).cloned().collect();
    (entry.1 == name && !told.is_empty()).then_some((entry.0, told))
}

fn watch(
    store: &Store,
    (name, prefix, fences): (&str, &[u8], bool),
    after: Option<u64>,
) -> Result<Watch, Error> {
    store.watch(WatchRequest {
        domain: domain(name),
        range: KeyRange::of_prefix(prefix),
        fences,
        leases: false,
        after: after.map(|raw| Revision::new(raw).unwrap()),
    })
}

fn expect(watch: &mut Watch, expected: &[(u64, Vec<Told>)]) {
    for event in expected {
        let next = watch
            .next_timeout(LIMIT)
            .unwrap()
            .expect("an event in time");
        assert_eq!(&told(&next), event);
    }
    assert!(watch.next_timeout(Duration::ZERO).unwrap().is_none());
}

fn follow(history_bytes: usize, reopen: bool) {
    let mut config = tight();
    config.history_bytes = history_bytes;
    let disk = SimDisk::default();
    let mut store = open(&disk, &config);
    let mut model = model_of(&store);
    for (name, policy) in policies() {
        create(&store, &mut model, name, policy);
    }
    let first = model.revision;
    let mut live = watch(&store, ("jobs", b"", true), None).unwrap();
    let mut chance = Chance::new(11);
    let mut entries = Vec::new();
    for _ in 0..600 {
        let name = chance.pick(&policies()).0;
        let request = request(&mut chance, &model, name, SHAPE);
        let before = model.clone();
        if commit_in_both(&store, &mut model, &request) == "Accepted" {
            let entry = entry(&before, &model, &request);
            let told = matching(&entry, "jobs", b"", true);
            expect(&mut live, told.as_slice());
            entries.push(entry);
        }
    }
    if reopen {
        store.close().unwrap();
        assert!(matches!(live.next_timeout(LIMIT), Err(Error::Closed)));
        store = open(&disk, &config);
    }
    let oldest = store.status().history_since.get();
    assert!(oldest <= model.revision);
    for after in first..=model.revision {
        for view in [("jobs", &b""[..], true), ("deep", b"a/", false)] {
            if after < oldest {
                let refused = watch(&store, view, Some(after)).map(|_| ());
                assert!(
                    matches!(refused, Err(Error::TooOld { oldest: o, .. }) if o.get() == oldest)
                );
                continue;
            }
            let later = entries.iter().filter(|entry| entry.0 > after);
            let (name, prefix, fences) = view;
            let expected: Vec<_> = later
                .filter_map(|entry| matching(entry, name, prefix, fences))
                .collect();
            expect(&mut watch(&store, view, Some(after)).unwrap(), &expected);
        }
    }
    let beyond = watch(&store, ("jobs", b"", true), Some(model.revision + 1)).map(|_| ());
    assert!(matches!(beyond, Err(Error::NotReached { .. })));
}

#[test]
fn a_watch_tells_every_commit_after_its_revision_or_that_it_cannot() {
    follow(1 << 20, false);
    follow(16 << 10, false);
}

#[test]
fn a_watch_goes_on_after_a_reopening_as_far_as_the_log_reaches() {
    follow(1 << 20, true);
    follow(16 << 10, true);
}

#[test]
fn a_watch_that_falls_behind_is_told_so_and_not_given_a_gap() {
    let mut config = tight();
    config.history_bytes = 4 << 10;
    let store = open(&SimDisk::default(), &config);
    let mut model = model_of(&store);
    let (name, policy) = policies()[2];
    create(&store, &mut model, name, policy);
    let mut slow = watch(&store, (name, b"", false), None).unwrap();
    let mut told_of = 0;
    for number in 0..100_u64 {
        let change = Change::Put(b"k".to_vec(), number.to_be_bytes().into(), String::new());
        commit_in_both(&store, &mut model, &Request::of(name, vec![change]));
        if number == 3 {
            let event = slow.next_timeout(LIMIT).unwrap().unwrap();
            told_of = event.revision.get();
        }
    }
    let mut last = told_of;
    let behind = loop {
        match slow.next_timeout(LIMIT) {
            Ok(event) => {
                let revision = event.expect("an event or an end").revision.get();
                assert_eq!(revision, last + 1, "a gap");
                last = revision;
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(behind, Error::TooOld { .. }), "{behind}");
}
