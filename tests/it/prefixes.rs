//! How many rows a condition on a prefix may look at: up to the bound it is answered exactly, above
//! it the store says from where on it remembers, and never guesses.

use highwater::{Config, Reason, Rejection, Store};
use highwater_tests::disk::SimDisk;
use highwater_tests::raw::{Change, Cond, Request};

use crate::support::{open, open_domain};

/// The rows that the conditions on prefixes of one commit may look at.
const ROWS_MAX: usize = 16_384;
/// Mutations of one commit.
const BATCH: usize = 1_000;

/// Settings that begin no checkpoint before the store is closed.
fn config() -> Config {
    Config {
        hot_bytes: 4 << 10,
        ..Config::default()
    }
}

fn put(name: &str) -> Request {
    let change = Change::Put(name.into(), b"v".into(), String::new());
    Request::of("d", vec![change])
}

/// Commits; the revision.
fn commit(store: &Store, request: &Request) -> u64 {
    let receipt = store.commit(request.typed().unwrap()).unwrap();
    receipt.revision.get()
}

/// Puts so many keys with the prefix; the last revision at which one changed.
fn fill(store: &Store, prefix: &str, rows: usize) -> u64 {
    let change =
        |row: usize| Change::Put(format!("{prefix}{row:06}").into(), vec![1], String::new());
    let rows: Vec<usize> = (0..rows).collect();
    let commits = rows.chunks(BATCH).map(|batch| {
        let changes = batch.iter().map(|row| change(*row)).collect();
        commit(store, &Request::of("d", changes))
    });
    commits.max().unwrap()
}

fn make() -> (SimDisk, Store) {
    let disk = SimDisk::default();
    let store = open(&disk, &config());
    open_domain(&store);
    (disk, store)
}

/// What a commit under conditions "unchanged since" on prefixes is told.
fn told(store: &Store, conds: &[(&str, u64)]) -> Result<u64, Box<Rejection>> {
    let mut request = put("other");
    for (prefix, since) in conds {
        request = request.when(Cond::PrefixSince((*prefix).into(), *since));
    }
    // What the dry run says, the commit gets.
    let dry = store.judge(&request.typed().unwrap());
    let judged = dry
        .as_ref()
        .map_err(|error| &error.rejection().unwrap().reason);
    match store.commit(request.typed().unwrap()) {
        Ok(receipt) => {
            assert!(judged.is_ok(), "{judged:?}");
            Ok(receipt.revision.get())
        }
        Err(error) => {
            let rejection = error.rejection().unwrap().clone();
            assert_eq!(judged.unwrap_err(), &rejection.reason);
            Err(Box::new(rejection))
        }
    }
}

/// Refused, because it isn't remembered longer than since this revision.
#[track_caller]
fn too_old(told: Result<u64, Box<Rejection>>, since: u64) {
    let rejection = told.unwrap_err();
    match &rejection.reason {
        Reason::TooOld {
            remembers_since, ..
        } => assert_eq!(remembers_since.get(), since),
        reason => panic!("{reason:?}"),
    }
}

#[track_caller]
fn failed(told: Result<u64, Box<Rejection>>) {
    assert_eq!(told.unwrap_err().reason.code(), "ConditionFailed");
}

#[test]
fn in_the_index_so_many_rows_are_looked_at_and_no_more() {
    for (rows, deleted) in [
        (ROWS_MAX, 0),
        (ROWS_MAX, 7),
        (ROWS_MAX + 1, 0),
        (ROWS_MAX + 7, 7),
    ] {
        let (disk, store) = make();
        let filled = fill(&store, "p/", rows - deleted);
        // Deletions are rows as well.
        let gone = (0..deleted).map(|row| Change::Delete(format!("p/{row:06}").into()));
        let changed = match deleted {
            0 => filled,
            _ => commit(&store, &Request::of("d", gone.collect())),
        };
        let looked_at = rows - deleted;
        fill(&store, "q/", 10);
        store.close().unwrap();
        let store = open(&disk, &config());
        let indexed = store.status().indexed.get();
        assert!(indexed > changed);
        if looked_at <= ROWS_MAX {
            assert!(told(&store, &[("p/", changed)]).is_ok());
            failed(told(&store, &[("p/", changed - 1)]));
        } else {
            too_old(told(&store, &[("p/", changed)]), indexed);
            assert!(told(&store, &[("p/", changed - 1)]).is_err());
        }
        // Since the checkpoint everything is known.
        assert!(told(&store, &[("p/", indexed)]).is_ok());
        commit(&store, &put("p/new"));
        failed(told(&store, &[("p/", changed)]));
        failed(told(&store, &[("p/", indexed)]));
    }
}

#[test]
fn above_the_index_so_many_rows_are_looked_at_and_no_more() {
    for rows in [ROWS_MAX, ROWS_MAX + 1] {
        let (_disk, store) = make();
        let changed = fill(&store, "p/", rows);
        let last = fill(&store, "q/", 10);
        assert!(
            store.status().indexed.get() < changed,
            "nothing is in the index"
        );
        if rows <= ROWS_MAX {
            failed(told(&store, &[("p/", changed - 1)]));
            assert!(told(&store, &[("p/", changed)]).is_ok());
        } else {
            too_old(told(&store, &[("p/", changed)]), last);
            // What it remembers is the whole truth.
            let now = told(&store, &[("p/", last)]).unwrap();
            assert!(told(&store, &[("p/", now)]).is_ok());
            commit(&store, &put("p/000000"));
            failed(told(&store, &[("p/", now)]));
        }
        let now = store.revision().get();
        assert!(told(&store, &[("p/", now)]).is_ok());
    }
}

#[test]
fn the_conditions_of_one_commit_share_the_rows() {
    let (disk, store) = make();
    let half = ROWS_MAX / 2;
    fill(&store, "p/", half);
    let changed = fill(&store, "q/", half);
    fill(&store, "r/", 1);
    fill(&store, "s/", 1);
    store.close().unwrap();
    let store = open(&disk, &config());
    let indexed = store.status().indexed.get();
    assert!(told(&store, &[("p/", changed), ("q/", changed)]).is_ok());
    let three = [("p/", changed), ("q/", changed), ("r/", changed + 1)];
    too_old(told(&store, &three), indexed);
    assert!(told(&store, &[("r/", changed + 1)]).is_ok());
}
