//! Which guard a key is under and which keys a guard covers agree for all small keys, and a prefix
//! is exactly its range.

use std::collections::BTreeSet;

use highwater_core::limits::GUARD_DEPTH_MAX;
use highwater_core::{GuardRule, KeyRange, Policy, PolicyError};

use crate::oracle;
use crate::raw;

/// Every byte string up to this length over the alphabet, the empty one included.
fn strings(alphabet: &[u8], length: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..length {
        let longer = |head: &Vec<u8>| {
            let append = |byte: &u8| [head.as_slice(), &[*byte]].concat();
            alphabet.iter().map(append).collect::<Vec<_>>()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

#[test]
fn a_prefix_is_exactly_its_range() {
    let all = strings(&[0x00, 0x01, 0x61, 0x62, 0xFE, 0xFF], 3);
    assert_eq!(all.len(), 1 + 6 + 36 + 216);
    let mut sorted = all.clone();
    sorted.sort();
    for prefix in &all {
        let range = KeyRange::of_prefix(prefix);
        let mine: Vec<_> = sorted.iter().filter(|key| range.contains(key)).collect();
        let wanted: Vec<_> = sorted
            .iter()
            .filter(|key| key.starts_with(prefix))
            .collect();
        assert_eq!(mine, wanted, "{prefix:02x?}");
        assert!(!range.is_empty());
        // Keys longer than the alphabet's strings, at both edges of the range.
        let last = [prefix.as_slice(), &[0xFF; 5]].concat();
        assert!(range.contains(&last));
        assert!(range.end.as_ref().is_none_or(|end| *end > last));
    }
}

#[test]
fn a_range_is_empty_only_where_no_key_can_be() {
    let all = strings(&[0x00, 0x61, 0xFF], 2);
    for start in &all {
        for end in &all {
            let range = KeyRange::between(start.as_slice(), Some(end.clone()));
            // The start itself is the first candidate; with an end behind it, it is in.
            assert_eq!(range.is_empty(), end <= start);
            assert_eq!(range.contains(start), end > start);
            assert!(!range.contains(end));
            for key in &all {
                assert_eq!(range.contains(key), start <= key && key < end);
            }
        }
        assert!(!KeyRange::between(start.as_slice(), None).is_empty());
        assert!(KeyRange::all().contains(start));
    }
}

fn every_rule() -> Vec<GuardRule> {
    let mut rules = vec![GuardRule::Key, GuardRule::Domain];
    for delimiter in [0x00, b'/', 0xFF] {
        rules.extend((1..=4).map(|depth| GuardRule::Prefix { delimiter, depth }));
    }
    rules
}

#[test]
fn a_guard_covers_exactly_the_keys_that_are_under_it() {
    for rule in every_rule() {
        let policy = Policy::default().with_guard(rule).unwrap();
        let separator = match rule {
            GuardRule::Prefix { delimiter, .. } => delimiter,
            _ => b'/',
        };
        let names = strings(&[separator, b'a', separator.wrapping_add(1)], 5);
        let keys: Vec<_> = names.iter().filter(|name| !name.is_empty()).collect();
        let mut given = BTreeSet::new();
        for key in &keys {
            let guard = policy.guard_of(&raw::key(key));
            assert_eq!(guard.as_bytes(), oracle::guard_of(rule, key), "{rule:?}");
            assert!(policy.keys_of(&guard).contains(&raw::key(key)));
            given.insert(guard.as_bytes().to_vec());
        }
        for name in &names {
            let guard = raw::guard(name);
            let is_guard = policy.is_guard(&guard);
            assert_eq!(is_guard, oracle::is_guard(rule, name), "{rule:?} {name:?}");
            assert_eq!(is_guard, given.contains(name), "{rule:?} {name:?}");
            let span = policy.keys_of(&guard);
            for key in &keys {
                let under = oracle::guard_of(rule, key) == *name;
                assert_eq!(
                    span.contains(&raw::key(key)),
                    under,
                    "{rule:?} {name:?} {key:?}"
                );
            }
        }
    }
}

/// The worked example of the contract: one lease for each job.
#[test]
fn a_job_and_its_records_share_a_guard() {
    let rule = GuardRule::Prefix {
        delimiter: b'/',
        depth: 1,
    };
    let policy = Policy::default().with_guard(rule).unwrap();
    let guard = |key: &str| policy.guard_of(&raw::key(key.as_bytes()));
    assert_eq!(guard("job-7").as_bytes(), b"job-7");
    assert_eq!(guard("job-7/"), guard("job-7"));
    assert_eq!(guard("job-7/a/b"), guard("job-7"));
    assert_ne!(guard("job-70"), guard("job-7"));
    assert_eq!(guard("/a").as_bytes(), b"");
}

#[test]
fn a_prefix_guard_has_one_to_the_limit_of_components() {
    for depth in 0..=u8::MAX {
        let rule = GuardRule::Prefix {
            delimiter: b'/',
            depth,
        };
        let wanted = match depth {
            1..=32 => Ok(rule),
            _ => Err(PolicyError::Depth { depth }),
        };
        let made = Policy::default().with_guard(rule);
        assert_eq!(made.map(|policy| policy.guard()), wanted);
    }
    // At the deepest, a key with one component more is under its first 32.
    let rule = GuardRule::Prefix {
        delimiter: b'/',
        depth: GUARD_DEPTH_MAX,
    };
    let policy = Policy::default().with_guard(rule).unwrap();
    let full = ["a"; 32].join("/");
    let below = format!("{full}/b");
    for key in [&full, &below] {
        assert_eq!(
            policy.guard_of(&raw::key(key.as_bytes())).as_bytes(),
            full.as_bytes()
        );
    }
    assert!(!policy.is_guard(&raw::guard(below.as_bytes())));
}
