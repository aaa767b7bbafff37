//! The audit trail beside the data: one line for each accepted change, whatever happens.
//!
//! The lines are read here with another JSON reader and another walk of the chain than the store's.

mod crash;
mod full;
mod names;
mod refusals;
mod rotation;
mod tampering;

use std::collections::BTreeMap;

use highwater::{
    Admission, AuditConfig, AuditFailure, Commit, Config, Error, GuardRule, Key, Store, Value,
    verify_audit_on,
};
use highwater_tests::disk::{Files, SimDisk};
use serde_json::Value as Json;

use crate::support::{domain, open, policy, tight};

/// Tight settings, and a trail that is small, but isn't removed.
fn audited() -> Config {
    let audit = AuditConfig {
        file_bytes: 64 << 10,
        keep_bytes: 1 << 30,
        on_failure: AuditFailure::Refuse,
        ..AuditConfig::default()
    };
    Config {
        audit: Some(audit),
        ..tight()
    }
}

/// An open domain "d" in a new, audited store.
fn make(config: &Config) -> (SimDisk, Store) {
    let disk = SimDisk::default();
    let store = open(&disk, config);
    let open = policy(GuardRule::Key, Admission::Open);
    store.create_domain(domain("d"), open, None).unwrap();
    (disk, store)
}

fn put(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Commit {
    let key = Key::new(key).unwrap();
    Commit::new(domain("d")).put(key, Value::new(value).unwrap())
}

/// The names of the trail's files, oldest first.
fn names(files: &Files) -> Vec<String> {
    let names = files.keys().filter(|name| name.starts_with("audit-"));
    names.cloned().collect()
}

/// Every line of the trail as text, with the checks of form that each must pass.
fn texts(files: &Files) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for name in names(files) {
        let bytes = &files[&name];
        assert!(
            bytes
                .iter()
                .all(|b| (b' '..=b'~').contains(b) || *b == b'\n')
        );
        assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "{name} is torn");
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some(first) = text.lines().next() {
            let first: Json = serde_json::from_str(first).unwrap();
            let number: u64 = text_of(&first["seq"]).parse().unwrap();
            assert_eq!(name, format!("audit-{number:016x}.jsonl"));
        }
        texts.extend(text.lines().map(str::to_owned));
    }
    texts
}

/// Every line of the trail, after a walk of its chain.
fn lines(files: &Files) -> Vec<Json> {
    let mut lines: Vec<Json> = Vec::new();
    for text in texts(files) {
        let line: Json = serde_json::from_str(&text).unwrap();
        let (covered, _) = text.rsplit_once(",\"digest\":").unwrap();
        let digest = highwater::digest(&Value::new(covered).unwrap()).to_string();
        assert_eq!(text_of(&line["digest"]), digest);
        if let Some(before) = lines.last() {
            assert_eq!(line["prev"], before["digest"]);
            let seq = |line: &Json| text_of(&line["seq"]).parse::<u64>().unwrap();
            assert_eq!(seq(&line), seq(before) + 1);
        }
        lines.push(line);
    }
    lines
}

fn text_of(value: &Json) -> &str {
    value.as_str().unwrap()
}

fn number(value: &Json) -> u64 {
    text_of(value).parse().unwrap()
}

fn of_kind<'a>(lines: &'a [Json], kind: &str) -> Vec<&'a Json> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// The lines of accepted changes, by revision; each revision has one.
fn changes(lines: &[Json]) -> BTreeMap<u64, &Json> {
    let mut changes = BTreeMap::new();
    for line in lines {
        let accounts = ["created", "domain", "commit", "clock"];
        if accounts.contains(&text_of(&line["kind"])) {
            let twice = changes.insert(number(&line["revision"]), line);
            assert!(twice.is_none(), "{line} is the second one");
        }
    }
    changes
}

/// Trail and data agree: every revision from the first on has its line, none has two, and none has
/// one that the data hasn't.
#[track_caller]
fn agree(files: &Files, begins: u64, ends: u64) -> Vec<Json> {
    let lines = lines(files);
    let revisions: Vec<u64> = changes(&lines).into_keys().collect();
    assert_eq!(revisions, (begins..=ends).collect::<Vec<_>>());
    let order = lines.iter().filter(|line| line.get("revision").is_some());
    assert!(order.map(|line| number(&line["revision"])).is_sorted());
    lines
}

/// What the product's own walk says must be what is there.
#[track_caller]
fn verified(files: &Files, lines: &[Json]) {
    let found = verify_audit_on(&SimDisk::with_files(files)).unwrap();
    assert_eq!(found.lines, lines.len() as u64);
    assert_eq!(found.files, names(files).len());
    let last = lines.last().unwrap();
    assert_eq!(found.last, number(&last["seq"]));
    assert_eq!(found.digest, text_of(&last["digest"]));
    assert_eq!(found.closed, last["kind"] == "closed");
    let gaps: u64 = of_kind(lines, "gap")
        .iter()
        .map(|l| number(&l["count"]))
        .sum();
    assert_eq!(found.gaps, gaps);
}

fn is_unavailable(verdict: &Result<highwater::Receipt, Error>) -> bool {
    matches!(verdict, Err(Error::AuditUnavailable { .. }))
}

#[test]
fn every_accepted_change_has_one_line_and_no_line_has_a_value() {
    let (disk, store) = make(&audited());
    let begins = store.revision().get() - 1;
    for number in 0..300_u64 {
        let value = format!("a secret of {number}");
        let receipt = store
            .commit(put(format!("k/{}", number % 7), &value))
            .unwrap();
        assert_eq!(receipt.revision.get(), begins + 2 + number);
    }
    let ends = store.revision().get();
    store.close().unwrap();
    let files = disk.files();
    let lines = agree(&files, begins, ends);
    verified(&files, &lines);
    assert!(names(&files).len() > 1, "it rotates");
    assert!(texts(&files).iter().all(|text| !text.contains("secret")));
    let last = changes(&lines)[&ends];
    let value = Value::new("a secret of 299").unwrap();
    let write = &last["writes"][0];
    assert_eq!(write["key"], "k/5");
    assert_eq!(write["digest"], highwater::digest(&value).to_string());
    assert_eq!(write["bytes"], "15");
    assert_eq!(write["generation"], ends.to_string());
    assert_eq!(lines.last().unwrap()["kind"], "closed");
}

#[test]
fn what_came_while_there_was_no_trail_is_a_gap_of_exact_size() {
    let disk = SimDisk::default();
    let quiet = tight();
    let store = open(&disk, &quiet);
    let policy = policy(GuardRule::Key, Admission::Open);
    store.create_domain(domain("d"), policy, None).unwrap();
    let begins = store.revision().get() - 1;
    let fill = |store: &Store| {
        for number in 0..400 {
            store
                .commit(put(format!("k/{number}"), [b'v'; 2_000]))
                .unwrap();
        }
    };
    for _ in 0..2 {
        fill(&store);
    }
    store.close().unwrap();
    drop(store);
    for round in 1..=2 {
        let store = open(&disk, &audited());
        store.commit(put("k", "v")).unwrap();
        let ends = store.revision().get();
        store.close().unwrap();
        drop(store);
        let files = disk.files();
        let lines = lines(&files);
        verified(&files, &lines);
        let gaps = of_kind(&lines, "gap");
        assert_eq!(gaps.len(), round, "the log doesn't reach back so far");
        let missing = gaps
            .iter()
            .flat_map(|gap| number(&gap["from"])..=number(&gap["to"]));
        let mut known: Vec<u64> = changes(&lines).into_keys().chain(missing).collect();
        known.sort_unstable();
        assert_eq!(known, (begins..=ends).collect::<Vec<_>>());
        let store = open(&disk, &quiet);
        fill(&store);
        store.close().unwrap();
    }
}
