//! H-55: one zombie can't fill the disk, and none of its writes goes uncounted.

use std::collections::BTreeMap;

use highwater::{Admission, Authority, GuardRule, Store};
use highwater_tests::disk::SimDisk;
use serde_json::Value as Json;

use super::{agree, audited, number, of_kind, put, text_of, verified};
use crate::support::{domain, open, policy, scale};

/// How many refusals the trail tells of, by reason: those with a line, and those in the counts.
fn told(lines: &[Json]) -> BTreeMap<String, u64> {
    let mut told = BTreeMap::new();
    for line in of_kind(lines, "refused") {
        *told.entry(text_of(&line["reason"]).to_owned()).or_default() += 1;
    }
    for line in of_kind(lines, "refusals_suppressed") {
        for count in line["counts"].as_array().unwrap() {
            let told = told
                .entry(text_of(&count["reason"]).to_owned())
                .or_default();
            *told += number(&count["count"]);
        }
    }
    told
}

fn counted(store: &Store) -> BTreeMap<String, u64> {
    let rejected = store.status().counted.rejected;
    let named = rejected
        .into_iter()
        .map(|(code, count)| (code.to_owned(), count));
    named.collect()
}

fn fenced() -> (SimDisk, Store, highwater::Epoch) {
    let disk = SimDisk::default();
    let store = open(&disk, &audited());
    let fenced = policy(GuardRule::Key, Admission::Fenced);
    let made = store.create_domain(domain("d"), fenced, None).unwrap();
    (disk, store, made.epochs.current().epoch)
}

fn bytes(disk: &SimDisk) -> usize {
    let files = disk.files();
    super::names(&files)
        .iter()
        .map(|name| files[name].len())
        .sum()
}

#[test]
fn a_zombie_is_counted_exactly_and_takes_little_room() {
    let writes = scale("HIGHWATER_AUDIT_ZOMBIE", 20_000);
    let (disk, store, epoch) = fenced();
    let begins = store.revision().get() - 1;
    let under = |sequence| Authority::parse(&format!("{epoch}/{sequence}@a")).unwrap();
    store.commit(put("k", "new").under(under(9))).unwrap();
    let mut tickets = Vec::new();
    for _ in 0..writes {
        let ticket = store.submit(put("k", "late").under(under(3)));
        tickets.extend(ticket);
        if tickets.len() >= 1_000 {
            assert!(tickets.drain(..).all(|ticket| ticket.wait().is_err()));
        }
    }
    assert!(tickets.drain(..).all(|ticket| ticket.wait().is_err()));
    let counted = counted(&store);
    store.close().unwrap();
    assert_eq!(counted["StaleTerm"], writes);
    let lines = agree(&disk.files(), begins, store.revision().get());
    verified(&disk.files(), &lines);
    assert_eq!(told(&lines), counted);
    let refused = of_kind(&lines, "refused").len() as u64;
    let intervals = of_kind(&lines, "refusals_suppressed").len() as u64;
    assert!(refused <= 10 * (intervals + 1), "{refused} in {intervals}");
    // A line has well under a thousand bytes.
    assert!(bytes(&disk) < 1_000 * lines.len());
    assert_eq!(store.status().audit.unwrap().suppressed, writes - refused);
}

#[test]
fn many_causes_are_bounded_together_and_counted_exactly() {
    let (disk, store, epoch) = fenced();
    let under = |sequence| Authority::parse(&format!("{epoch}/{sequence}@a")).unwrap();
    for number in 0..3_000 {
        let key = format!("guard/{number}");
        assert!(
            store.commit(put(&key, "v")).is_err(),
            "an authority is required"
        );
        if number % 3 == 0 {
            store.commit(put(&key, "v").under(under(2))).unwrap();
            assert!(store.commit(put(&key, "late").under(under(1))).is_err());
        }
    }
    let counted = counted(&store);
    store.close().unwrap();
    assert_eq!(counted["AuthorityRequired"], 3_000);
    assert_eq!(counted["StaleTerm"], 1_000);
    let lines = super::lines(&disk.files());
    verified(&disk.files(), &lines);
    assert_eq!(told(&lines), counted);
    let intervals = of_kind(&lines, "refusals_suppressed").len();
    assert!(of_kind(&lines, "refused").len() <= 160 * (intervals + 1));
    for line in of_kind(&lines, "refusals_suppressed") {
        assert!(line["counts"].as_array().unwrap().len() < 100, "{line}");
    }
}
