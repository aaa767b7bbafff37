//! Cuts, flips and zeros in the log's files.

use std::fs;

use highwater::{OpenError, Store};

use super::{Left, contents, logged, put, refused};
use crate::support::{commit_in_both, compare, tight};

/// The most zeros that a frame ends with: empty lists of its last record, and padding.
const ZEROS_MAX: usize = 32;

/// The file of the last frame, where that begins, and where it ends but for zeros at its end.
fn last_frame(left: &Left) -> (String, usize, usize) {
    let name = left.log_files().pop().unwrap();
    let (before, now) = (&left.earlier[&name], &contents(&left.store())[&name]);
    let written = before.iter().zip(now).position(|(old, new)| old != new);
    let last = now.iter().rposition(|byte| *byte != 0);
    // Frames begin at multiples of eight.
    (name, written.unwrap() / 8 * 8, last.unwrap() + 1)
}

#[test]
fn a_log_cut_at_any_byte_of_its_last_record_keeps_all_before_and_goes_on() {
    let config = logged();
    let left = Left::killed(&config, 6, 100);
    let (name, start, end) = last_frame(&left);
    assert!(end - start > 100 && end - start < 400, "{start} to {end}");
    let mut was_whole = false;
    for length in start..=end + ZEROS_MAX {
        let dir = left.copied();
        let file = fs::OpenOptions::new()
            .write(true)
            .open(dir.join(&name))
            .unwrap();
        file.set_len(length as u64).unwrap();
        let store = Store::open(&dir, config.clone()).unwrap();
        let whole = store.revision().get() == left.model.revision;
        assert!(whole || !was_whole, "whole before {length} and not there");
        assert!(!whole || length >= end, "whole at {length} of {end}");
        assert!(whole || length < end + ZEROS_MAX, "not whole at {length}");
        was_whole = whole;
        let mut model = if whole { &left.model } else { &left.before }.clone();
        compare(&store.snapshot().unwrap(), &model);
        assert_eq!(
            commit_in_both(&store, &mut model, &put("next", b"v")),
            "Accepted"
        );
        drop(store);
        compare(
            &Store::open(&dir, config.clone())
                .unwrap()
                .snapshot()
                .unwrap(),
            &model,
        );
    }
}

#[test]
fn a_flipped_bit_amid_the_log_is_refused_with_file_and_offset_and_nothing_is_touched() {
    const VALUE_BYTES: usize = 4_000;
    let config = logged();
    let left = Left::killed(&config, 40, VALUE_BYTES);
    let files = left.log_files();
    assert!(files.len() > 2, "{files:?}");
    for name in &files[..files.len() - 1] {
        let file = &contents(&left.store())[name];
        let length = file.iter().rposition(|byte| *byte != 0).unwrap();
        for place in [4_200, length / 2, length * 3 / 4] {
            let dir = left.copied();
            let mut bytes = file.clone();
            bytes[place] ^= 0x10;
            fs::write(dir.join(name), bytes).unwrap();
            match refused(&dir, &config) {
                OpenError::Corrupt { file, offset, .. } => {
                    assert_eq!(&file, name);
                    let place = place as u64;
                    let frame_bytes = VALUE_BYTES as u64 + 400;
                    assert!(offset <= place && place <= offset + frame_bytes, "{offset}");
                }
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_log_file_that_is_missing_is_refused() {
    let config = logged();
    let left = Left::killed(&config, 40, 4_000);
    let files = left.log_files();
    for name in &files[..files.len() - 1] {
        let dir = left.copied();
        fs::remove_file(dir.join(name)).unwrap();
        let error = Store::open(&dir, config.clone()).map(|_| ()).unwrap_err();
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
        // Once it is found again, nothing is missing.
        fs::copy(left.store().join(name), dir.join(name)).unwrap();
        let store = Store::open(&dir, config.clone()).unwrap();
        compare(&store.snapshot().unwrap(), &left.model);
    }
}

#[test]
fn a_log_that_is_missing_whole_is_refused_whatever_the_index_is_like() {
    let left = Left::killed(&tight(), 60, 2_000);
    let whole = fs::read(left.store().join("index.redb")).unwrap();
    for index in [&whole[..], &whole[..100], &[], &vec![0; whole.len()]] {
        for identity in [true, false] {
            let dir = left.copied();
            for name in left.log_files() {
                fs::remove_file(dir.join(name)).unwrap();
            }
            fs::write(dir.join("index.redb"), index).unwrap();
            if !identity {
                fs::remove_file(dir.join("identity")).unwrap();
            }
            let error = refused(&dir, &tight());
            assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
        }
    }
}

#[test]
fn zeros_behind_the_log_are_no_records() {
    let config = logged();
    let left = Left::killed(&config, 6, 100);
    let last = left.log_files().pop().unwrap();
    for zeros in [1, 7, 512, 4_096, 1 << 20] {
        let dir = left.copied();
        let mut bytes = fs::read(dir.join(&last)).unwrap();
        bytes.resize(bytes.len() + zeros, 0);
        fs::write(dir.join(&last), bytes).unwrap();
        let mut model = left.model.clone();
        let store = Store::open(&dir, config.clone()).unwrap();
        compare(&store.snapshot().unwrap(), &model);
        assert_eq!(
            commit_in_both(&store, &mut model, &put("next", b"v")),
            "Accepted"
        );
        drop(store);
        compare(
            &Store::open(&dir, config.clone())
                .unwrap()
                .snapshot()
                .unwrap(),
            &model,
        );
    }
}

#[test]
fn a_log_file_of_zeros_is_a_blank_one() {
    let config = logged();
    let left = Left::killed(&config, 6, 100);
    let last = left.log_files().pop().unwrap();
    let next = last.replace("1.hw", "2.hw");
    assert_ne!(next, last);
    for length in [0, 1, 4_096, 64 << 10] {
        for name in [&next[..], "spare-0000000000000009.hw"] {
            let dir = left.copied();
            fs::write(dir.join(name), vec![0; length]).unwrap();
            let mut model = left.model.clone();
            let store = Store::open(&dir, config.clone()).unwrap();
            compare(&store.snapshot().unwrap(), &model);
            assert_eq!(
                commit_in_both(&store, &mut model, &put("next", b"v")),
                "Accepted"
            );
            drop(store);
            compare(
                &Store::open(&dir, config.clone())
                    .unwrap()
                    .snapshot()
                    .unwrap(),
                &model,
            );
        }
    }
}

#[test]
fn damage_to_the_identity_is_refused() {
    let config = logged();
    let left = Left::killed(&config, 2, 10);
    let identity = fs::read(left.store().join("identity")).unwrap();
    for bit in 0..identity.len() * 8 {
        let dir = left.copied();
        let mut bytes = identity.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(dir.join("identity"), bytes).unwrap();
        let error = refused(&dir, &config);
        let named = matches!(&error, OpenError::Corrupt { file, .. } if file == "identity");
        assert!(named, "{error}");
    }
    let dir = left.copied();
    fs::remove_file(dir.join("identity")).unwrap();
    assert!(matches!(refused(&dir, &config), OpenError::Corrupt { .. }));
}
