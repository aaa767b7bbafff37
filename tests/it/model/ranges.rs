//! Ranges, prefixes and pages, over keys that are near each other and near the end.

use std::collections::BTreeMap;

use highwater::KeyRange;
use highwater_tests::disk::SimDisk;
use highwater_tests::model::Row;
use highwater_tests::raw::{Bytes, Change, Cond, Request};

use crate::support::{commit_in_both, domain, open, open_domain, rows, tight};

const ALPHABET: [u8; 6] = [0x00, 0x01, 0x61, 0x62, 0xFE, 0xFF];

/// Every key of one to three letters.
fn every_key() -> Vec<Bytes> {
    let longer = |keys: &[Bytes]| -> Vec<Bytes> {
        let with = |key: &Bytes| ALPHABET.map(|letter| [&key[..], &[letter]].concat());
        keys.iter().flat_map(with).collect()
    };
    let one = longer(&[Bytes::new()]);
    let two = longer(&one);
    let three = longer(&two);
    [one, two, three].concat()
}

fn put(key: &[u8], value: &[u8]) -> Change {
    Change::Put(key.into(), value.into(), String::new())
}

#[test]
fn every_prefix_is_exactly_the_keys_that_begin_with_it() {
    let disk = SimDisk::default();
    let mut store = open(&disk, &tight());
    let mut model = open_domain(&store);
    // A third lies in the index, a third over it, a third was there and is deleted.
    let keys = every_key();
    for round in 0..2 {
        for chunk in keys.chunks(40) {
            let changes = chunk
                .iter()
                .enumerate()
                .map(|(at, key)| match (round, at % 3) {
                    (1, 1) => Change::Delete(key.clone()),
                    _ => put(key, &[round]),
                });
            let changes = changes.filter(|c| round == 0 || !c.key().unwrap().ends_with(b"\x61"));
            let request = Request::of("d", changes.collect());
            assert_eq!(commit_in_both(&store, &mut model, &request), "Accepted");
        }
        if round == 0 {
            store.close().unwrap();
            store = open(&disk, &tight());
        }
    }
    let snapshot = store.snapshot().unwrap();
    let all = &model.worlds["d"].rows;
    assert!(all.len() > 100 && all.len() < keys.len());
    for prefix in keys.iter().chain([&Bytes::new()]) {
        let begins = |(key, _): &(&Bytes, &Row)| key.starts_with(prefix);
        let expected: BTreeMap<Bytes, Row> = all
            .iter()
            .filter(begins)
            .map(|(key, row)| (key.clone(), row.clone()))
            .collect();
        let range = KeyRange::of_prefix(prefix);
        for limit in [1, 7, 1_000] {
            let found = rows(&snapshot, "d", &range, limit);
            assert!(found.is_sorted_by(|a, b| a.0 < b.0));
            assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
        }
    }
}

#[test]
fn unchanged_since_notices_every_prefix_of_what_changed_and_no_other() {
    let disk = SimDisk::default();
    let store = open(&disk, &tight());
    let mut model = open_domain(&store);
    let keys = every_key();
    for chunk in keys.chunks(60) {
        let changes = chunk.iter().map(|key| put(key, b"")).collect();
        commit_in_both(&store, &mut model, &Request::of("d", changes));
    }
    let changed: [Bytes; 4] = [
        b"\xFF\xFF".into(),
        b"\x61".into(),
        b"\x61\x00\xFF".into(),
        b"\xFE\xFF\xFF".into(),
    ];
    for key in changed {
        let since = model.revision;
        let change = vec![Change::Delete(key.clone())];
        commit_in_both(&store, &mut model, &Request::of("d", change));
        for prefix in keys.iter().chain([&Bytes::new()]) {
            let condition = Cond::PrefixSince(prefix.clone(), since);
            let request = Request::of("d", vec![put(b"probe", b"")]).when(condition);
            let verdict = store.judge(&request.typed().unwrap());
            assert_eq!(
                verdict.is_err(),
                key.starts_with(prefix),
                "{key:?} {prefix:?}"
            );
        }
    }
}

#[test]
fn any_two_ends_make_the_range_between_them() {
    let disk = SimDisk::default();
    let store = open(&disk, &tight());
    let mut model = open_domain(&store);
    let keys: Vec<Bytes> = every_key().into_iter().step_by(5).collect();
    let changes = keys.iter().map(|key| put(key, b"v")).collect();
    commit_in_both(&store, &mut model, &Request::of("d", changes));
    let snapshot = store.snapshot().unwrap();
    let mut ends: Vec<Bytes> = keys.iter().step_by(3).cloned().collect();
    ends.extend([Bytes::new(), b"\x61\x61".to_vec()]);
    for start in &ends {
        for end in ends.iter().map(Some).chain([None]) {
            let inside = |key: &&Bytes| *key >= start && end.is_none_or(|end| *key < end);
            let mut expected: Vec<Bytes> = keys.iter().filter(inside).cloned().collect();
            expected.sort();
            let range = KeyRange::between(start.clone(), end.cloned());
            let page = snapshot.scan(&domain("d"), &range, 1_000).unwrap();
            let found = page.records.iter().map(|(key, _)| key.as_bytes().to_vec());
            assert_eq!(found.collect::<Vec<_>>(), expected, "{start:?} to {end:?}");
        }
    }
}
