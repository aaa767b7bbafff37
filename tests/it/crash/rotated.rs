//! A crash right after the log has gone on to its next segment: that has no frame yet, and the ones
//! before may be given back by the time the store is opened again.

use std::sync::Arc;

use highwater::{Admission, Config, GuardRule, Store};
use highwater_tests::disk::SimDisk;
use highwater_tests::raw::{Change, Request};
use highwater_tests::trace::Cut;

use super::config;
use crate::support::{commit_in_both, compare, create, model_of, open, policy};

/// While it is there, the log reaches back to the beginning.
const FIRST_SEGMENT: &str = "log-0000000000000001.hw";

/// Nothing is kept for watches, and no checkpoint is begun before the store is closed.
fn keeps_nothing() -> Config {
    Config {
        history_bytes: 0,
        log_bytes: 64 << 20,
        memory_bytes: 64 << 20,
        ..config()
    }
}

#[test]
fn a_store_whose_log_has_no_frame_left_opens_with_what_its_index_holds() {
    let config = keeps_nothing();
    let disk = SimDisk::default();
    let store = Store::open_on(Arc::new(disk.clone()), config.clone()).unwrap();
    let mut model = model_of(&store);
    create(
        &store,
        &mut model,
        "d",
        policy(GuardRule::Key, Admission::Open),
    );
    let mut states = std::collections::BTreeMap::new();
    states.insert(model.revision, model.clone());
    disk.record();
    for number in 0..30 {
        let change = Change::Put(format!("k{number}").into(), vec![7; 3_000], String::new());
        let request = Request::of("d", vec![change]);
        assert_eq!(commit_in_both(&store, &mut model, &request), "Accepted");
        states.insert(model.revision, model.clone());
    }
    let trace = disk.recorded();
    let mut empty = 0;
    for at in 0..=trace.events().len() {
        let left = SimDisk::with_files(&trace.image(at, Cut::AllLost));
        let store = open(&left, &config);
        let model = &states[&store.revision().get()];
        compare(&store.snapshot().unwrap(), model);
        store.close().unwrap();
        drop(store);
        let files = left.files();
        let store = open(&left, &config);
        compare(&store.snapshot().unwrap(), model);
        drop(store);
        if files.contains_key(FIRST_SEGMENT) {
            continue;
        }
        empty += 1;
        // Only the index has it now: without it there is nothing to begin anew from.
        let mut damaged = files.clone();
        damaged.get_mut("index.redb").unwrap().fill(0);
        let mut without = files;
        without.remove("index.redb");
        for files in [damaged, without] {
            let disk = SimDisk::with_files(&files);
            let error = Store::open_on(Arc::new(disk.clone()), config.clone());
            let error = error.map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("index.redb"), "{error}");
        }
    }
    assert!(empty > 0);
}
