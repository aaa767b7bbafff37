//! Files that don't belong there, openers that don't, and what a crash of creation leaves.

use std::fs;
use std::os::unix::fs::symlink;

use highwater::{Admission, GuardRule, OpenError, Store};

use super::{Left, contents, copy, logged, put, refused};
use crate::support::{commit_in_both, compare, create, model_of, policy, tight};

#[test]
fn a_second_opener_is_refused_and_the_first_is_unharmed() {
    let left = Left::killed(&tight(), 3, 10);
    let (dir, link) = (left.copied(), left.dir.path().join("link"));
    symlink(&dir, &link).unwrap();
    let first = Store::open(&dir, tight()).unwrap();
    let mut model = left.model.clone();
    for path in [&dir, &link, &dir.join(".")] {
        let second = Store::open(path, tight()).map(|_| ()).unwrap_err();
        assert!(matches!(second, OpenError::Locked { .. }), "{second}");
        let request = put("next", b"v");
        assert_eq!(commit_in_both(&first, &mut model, &request), "Accepted");
    }
    first.close().unwrap();
    compare(
        &Store::open(&link, tight()).unwrap().snapshot().unwrap(),
        &model,
    );
}

#[test]
fn a_lock_file_that_was_left_locks_nothing() {
    let left = Left::killed(&tight(), 3, 10);
    let dir = left.copied();
    fs::write(dir.join("lock"), "4711").unwrap();
    compare(
        &Store::open(&dir, tight()).unwrap().snapshot().unwrap(),
        &left.model,
    );
}

#[test]
fn left_over_files_are_never_read_as_data() {
    let left = Left::killed(&tight(), 30, 2_000);
    for name in [
        "identity.tmp",
        "index.tmp",
        "log.tmp",
        "backup",
        "index.damaged",
        "x",
    ] {
        for bytes in [&b""[..], b"garbage", &[0xFF; 70_000]] {
            let dir = left.copied();
            fs::write(dir.join(name), bytes).unwrap();
            let store = Store::open(&dir, tight()).unwrap();
            let mut model = left.model.clone();
            compare(&store.snapshot().unwrap(), &model);
            assert_eq!(
                commit_in_both(&store, &mut model, &put("next", b"v")),
                "Accepted"
            );
        }
    }
    // What is named almost like a segment is refused by its name, and stays.
    let dir = left.copied();
    fs::write(dir.join("log-1.hw"), b"garbage").unwrap();
    let error = refused(&dir, &tight());
    assert!(error.to_string().contains("log-1.hw"), "{error}");
}

/// What can be left of an index file whose creation was cut.
fn stumps(whole: &[u8]) -> Vec<Vec<u8>> {
    let lengths = [0, 1, 9, 64, 100, 4_096, whole.len() / 2];
    let mut stumps: Vec<Vec<u8>> = lengths.map(|length| whole[..length].to_vec()).into();
    stumps.push(vec![0; whole.len()]);
    let mut half = whole.to_vec();
    half[32..4_096].fill(0);
    stumps.push(half);
    stumps
}

#[test]
fn an_index_that_was_never_finished_hides_nothing_of_the_log() {
    let config = logged();
    let left = Left::killed(&config, 20, 500);
    let whole = contents(&left.store())["index.redb"].clone();
    for stump in stumps(&whole) {
        let dir = left.copied();
        fs::write(dir.join("index.redb"), &stump).unwrap();
        let store = Store::open(&dir, config.clone()).unwrap();
        compare(&store.snapshot().unwrap(), &left.model);
        store.close().unwrap();
        compare(
            &Store::open(&dir, config.clone())
                .unwrap()
                .snapshot()
                .unwrap(),
            &left.model,
        );
    }
    let dir = left.copied();
    fs::remove_file(dir.join("index.redb")).unwrap();
    compare(
        &Store::open(&dir, config).unwrap().snapshot().unwrap(),
        &left.model,
    );
}

#[test]
fn an_index_that_the_log_cannot_replace_is_refused_and_not_made_anew() {
    // By now the log doesn't reach back to the beginning any more.
    let left = Left::killed(&tight(), 120, 3_000);
    let whole = contents(&left.store())["index.redb"].clone();
    for stump in stumps(&whole).into_iter().chain([b"garbage".to_vec()]) {
        let dir = left.copied();
        fs::write(dir.join("index.redb"), &stump).unwrap();
        match Store::open(&dir, tight()) {
            // What was cut off held nothing.
            Ok(store) => compare(&store.snapshot().unwrap(), &left.model),
            Err(error) => {
                let typed = matches!(error, OpenError::Index(_) | OpenError::Corrupt { .. });
                assert!(typed, "{error}");
                // With the right index it opens again: nothing else was touched.
                fs::write(dir.join("index.redb"), &whole).unwrap();
                compare(
                    &Store::open(&dir, tight()).unwrap().snapshot().unwrap(),
                    &left.model,
                );
            }
        }
    }
    let dir = left.copied();
    fs::remove_file(dir.join("index.redb")).unwrap();
    let error = Store::open(&dir, tight()).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[test]
fn files_of_another_store_are_refused() {
    let killed = || Left::killed(&tight(), 120, 3_000);
    let (left, other) = (killed(), killed());
    let log = left.log_files().pop().unwrap();
    for name in ["index.redb", "identity", &log] {
        let dir = left.copied();
        fs::copy(other.store().join(name), dir.join(name)).unwrap();
        assert!(Store::open(&dir, tight()).is_err(), "{name}");
    }
    compare(
        &Store::open(left.copied(), tight())
            .unwrap()
            .snapshot()
            .unwrap(),
        &left.model,
    );
}

#[test]
fn a_byte_of_the_index_that_changed_is_refused_and_never_read() {
    // Every value is long enough to be found in the file, and no two are the same.
    let value = |number: usize| format!("<{number:04}>").repeat(400).into_bytes();
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let store = Store::open(&whole, tight()).unwrap();
    let mut model = model_of(&store);
    let open = policy(GuardRule::Key, Admission::Open);
    create(&store, &mut model, "d", open);
    for number in 0..120 {
        let request = put(&format!("k{number}"), &value(number));
        assert_eq!(commit_in_both(&store, &mut model, &request), "Accepted");
    }
    store.close().unwrap();
    let index = contents(&whole)["index.redb"].clone();
    let mut changed = 0;
    for number in (0..120).step_by(7) {
        let value = value(number);
        let places = index.windows(value.len()).enumerate();
        for (at, _) in places.filter(|(_, bytes)| *bytes == value.as_slice()) {
            let copied = dir.path().join("changed");
            copy(&whole, &copied);
            let mut bytes = index.clone();
            bytes[at + 1_000] ^= 1;
            fs::write(copied.join("index.redb"), &bytes).unwrap();
            match Store::open(&copied, tight()) {
                // The page isn't in use any more.
                Ok(store) => compare(&store.snapshot().unwrap(), &model),
                Err(error) => {
                    assert!(matches!(error, OpenError::Index(_)), "{error}");
                    changed += 1;
                }
            }
            fs::remove_dir_all(&copied).unwrap();
        }
    }
    assert!(
        changed >= 10,
        "only {changed} of the changes were in pages in use"
    );
    compare(
        &Store::open(&whole, tight()).unwrap().snapshot().unwrap(),
        &model,
    );
}
