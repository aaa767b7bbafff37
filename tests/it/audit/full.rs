//! H-53: no room for the trail, or a device that fails it.

use std::time::{Duration, Instant};

use highwater::{
    AuditConfig, AuditFailure, Commit, Config, Error, ErrorKind, Key, Store, verify_audit_on,
};
use highwater_tests::disk::{Fault, Op, SimDisk};

use super::{agree, audited, changes, is_unavailable, lines, make, number, of_kind, put, verified};
use crate::support::{domain, open};

/// How long a state may take to come; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(60);

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < LIMIT, "{what} never comes");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn failing(disk: &SimDisk, op: Op) {
    disk.plant(Fault {
        op,
        file: "audit-",
        nth: 1,
        sticky: true,
    });
}

/// While the trail can't be written: every change is refused with the reason, whatever it is, what
/// is wrong for another reason still is, reads go on, and the status says so.
fn refused_clearly(store: &Store) {
    assert!(is_unavailable(&store.commit(put("k", "v"))));
    let delete = Commit::new(domain("d")).delete(Key::new("k").unwrap());
    let refused = store.commit(delete).unwrap_err();
    assert!(matches!(refused, Error::AuditUnavailable { .. }));
    assert_eq!(refused.kind(), ErrorKind::Retry);
    assert!(refused.to_string().contains("audit trail can't be written"));
    let policy = highwater::Policy::default();
    let made = store.create_domain(domain("other"), policy, None);
    assert!(matches!(made, Err(Error::AuditUnavailable { .. })));
    let empty = store.commit(Commit::new(domain("d"))).unwrap_err();
    assert_eq!(empty.rejection().unwrap().reason.code(), "Malformed");
    let figures = store.status().audit.unwrap();
    assert!(figures.failing && figures.refusing);
    let key = Key::new("before").unwrap();
    assert!(store.get(&domain("d"), &key).unwrap().is_some());
}

fn recovers(disk: &SimDisk, store: &Store, begins: u64) {
    wait_for("the recovery", || store.commit(put("after", "v")).is_ok());
    assert!(!store.status().audit.unwrap().failing);
    let ends = store.revision().get();
    store.close().unwrap();
    let files = disk.files();
    let lines = agree(&files, begins, ends);
    verified(&files, &lines);
    assert!(of_kind(&lines, "gap").is_empty());
    let refused = of_kind(&lines, "refused");
    assert!(
        refused
            .iter()
            .any(|line| line["reason"] == "AuditUnavailable")
    );
}

#[test]
fn on_a_full_disk_changes_are_refused_until_there_is_room() {
    let (disk, store) = make(&audited());
    let begins = store.revision().get() - 1;
    store.commit(put("before", "v")).unwrap();
    wait_for("the line", || {
        store.status().audit.unwrap().audited == begins + 2
    });
    // The log has its places already; the trail hasn't.
    disk.set_budget(Some(disk.used()));
    let mut taken = 0_u64;
    wait_for("the refusal", || {
        let verdict = store.commit(put(format!("k/{taken}"), "v"));
        taken += u64::from(verdict.is_ok());
        is_unavailable(&verdict)
    });
    refused_clearly(&store);
    disk.set_budget(None);
    recovers(&disk, &store, begins);
}

#[test]
fn a_device_that_fails_the_trail_is_tried_again_in_another_file() {
    for op in [Op::Write, Op::SyncData] {
        let (disk, store) = make(&audited());
        let begins = store.revision().get() - 1;
        store.commit(put("before", "v")).unwrap();
        wait_for("the line", || {
            store.status().audit.unwrap().audited == begins + 2
        });
        failing(&disk, op);
        wait_for("the refusal", || {
            is_unavailable(&store.commit(put("k", "v")))
        });
        refused_clearly(&store);
        disk.heal();
        recovers(&disk, &store, begins);
    }
}

#[test]
fn a_store_opens_on_a_disk_that_has_no_room_for_the_trail() {
    let (disk, store) = make(&audited());
    let begins = store.revision().get() - 1;
    store.commit(put("before", "v")).unwrap();
    store.close().unwrap();
    drop(store);
    let disk = SimDisk::with_files(&disk.files());
    failing(&disk, Op::Write);
    let store = open(&disk, &audited());
    refused_clearly(&store);
    disk.heal();
    recovers(&disk, &store, begins);
}

/// Enough for the backlog's bound, and some more.
const MANY: u64 = 500;

#[test]
fn who_goes_on_without_a_trail_gets_a_gap_of_exact_size() {
    let audit = AuditConfig {
        on_failure: AuditFailure::Continue,
        file_bytes: 1 << 20,
        ..AuditConfig::default()
    };
    let config = Config {
        audit: Some(audit),
        segment_bytes: 1 << 20,
        log_bytes: 8 << 20,
        memory_bytes: 16 << 20,
        ..audited()
    };
    let (disk, store) = make(&config);
    let begins = store.revision().get() - 1;
    failing(&disk, Op::Write);
    for number in 0..MANY {
        store
            .commit(put(format!("k/{number}"), vec![b'v'; 100_000]))
            .unwrap();
    }
    let figures = store.status().audit.unwrap();
    assert!(
        figures.failing && !figures.refusing && figures.lost > 0,
        "{figures:?}"
    );
    disk.heal();
    let ends = store.revision().get();
    wait_for("the gap", || store.status().audit.unwrap().audited == ends);
    let lost = store.status().audit.unwrap().lost;
    store.close().unwrap();
    let files = disk.files();
    let lines = lines(&files);
    verified(&files, &lines);
    let gaps = of_kind(&lines, "gap");
    let missing: Vec<u64> = gaps
        .iter()
        .flat_map(|gap| number(&gap["from"])..=number(&gap["to"]))
        .collect();
    assert_eq!(missing.len() as u64, lost);
    let mut known: Vec<u64> = changes(&lines).into_keys().chain(missing).collect();
    known.sort_unstable();
    assert_eq!(known, (begins..=ends).collect::<Vec<_>>());
    assert!(verify_audit_on(&disk).unwrap().gaps == lost);
}
