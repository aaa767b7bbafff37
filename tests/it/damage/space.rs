//! How much room a store takes: bounded, whatever is overwritten and whoever reads slowly.

use std::path::Path;
use std::time::{Duration, Instant};

use highwater::{Error, KeyRange, Store};
use highwater_tests::chance::Chance;
use highwater_tests::raw::{Change, Request};

use super::contents;
use crate::support::{domain, open_domain, scale, tight};

/// What one hundred short values may take on disk under tight settings: the log's segments and
/// spares, and an index with room for two versions of itself. Each run writes many times that.
const BYTES_MAX: u64 = 6 << 20;
/// What the log's segments and spares take of that.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// How long the end of a snapshot may take; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(60);

/// Overwrites some of one hundred keys in each of so many commits.
fn overwrite(store: &Store, chance: &mut Chance, commits: u64) {
    for _ in 0..commits {
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..40 {
            let name = format!("k{}", chance.below(100)).into_bytes();
            if changes.iter().all(|change| change.key() != Some(&name)) {
                changes.push(Change::Put(name, chance.bytes(400), String::new()));
            }
        }
        store
            .commit(Request::of("d", changes).typed().unwrap())
            .unwrap();
    }
}

fn bytes(dir: &Path) -> u64 {
    contents(dir).values().map(|file| file.len() as u64).sum()
}

#[test]
fn overwriting_for_ever_takes_bounded_space_also_with_a_slow_reader() {
    let commits = scale("HIGHWATER_OVERWRITES", 1_500);
    let dir = tempfile::tempdir().unwrap();
    let mut config = tight();
    config.snapshot_age = Duration::from_secs(1);
    let store = Store::open(dir.path(), config).unwrap();
    open_domain(&store);
    let mut chance = Chance::new(5);
    overwrite(&store, &mut chance, commits);
    assert!(store.status().counted.log_bytes > BYTES_MAX);
    assert!(bytes(dir.path()) < BYTES_MAX, "{}", bytes(dir.path()));
    // A reader that takes one row and then nothing for long is ended, and pins nothing more.
    let slow = store.snapshot().unwrap();
    let scanned = slow.scan(&domain("d"), &KeyRange::all(), 1).unwrap();
    assert_eq!(scanned.records.len(), 1);
    let begun = Instant::now();
    loop {
        overwrite(&store, &mut chance, 20);
        match slow.scan(&domain("d"), &KeyRange::all(), 1) {
            Ok(again) => assert_eq!(again.records, scanned.records),
            Err(error) => {
                assert!(matches!(error, Error::SnapshotExpired), "{error}");
                break;
            }
        }
        assert!(begun.elapsed() < LIMIT, "the snapshot is never ended");
    }
    // What it pinned is free again, though not before the index may have grown once more: by as
    // much as it has. After that it grows no more.
    let with_slow = bytes(dir.path()).max(BYTES_MAX);
    overwrite(&store, &mut chance, commits);
    let after = bytes(dir.path());
    assert!(after <= 2 * with_slow, "{after}, {with_slow} before");
    overwrite(&store, &mut chance, commits);
    let at_last = bytes(dir.path());
    assert!(
        at_last <= after + LOG_BYTES_MAX,
        "{at_last}, {after} before"
    );
}

#[test]
fn snapshots_are_bounded_in_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = tight();
    config.snapshots_max = 3;
    let store = Store::open(dir.path(), config).unwrap();
    let mut held: Vec<_> = (0..3).map(|_| store.snapshot().unwrap()).collect();
    assert!(matches!(store.snapshot(), Err(Error::TooManySnapshots)));
    held.pop();
    assert!(store.snapshot().is_ok());
}
