//! Power cuts at each operation: afterwards trail and data agree, before anything else is done.

use std::collections::{BTreeMap, BTreeSet};

use highwater::{AuditFailure, Authority, Config, verify_audit_on};
use highwater_tests::chance::Chance;
use highwater_tests::disk::{Fault, Files, Op, SimDisk};
use highwater_tests::trace::{Cut, Event, Trace};

use super::{agree, audited, changes, make, put, text_of, verified};
use crate::support::{domain, open, scale};

/// What was done: which key each revision wrote, and with which digest.
struct Work {
    config: Config,
    trace: Trace,
    begins: u64,
    written: BTreeMap<u64, (String, String)>,
}

/// Commits one by one, some of them refused, over several openings. A mark says which revision was
/// acknowledged.
fn work() -> Work {
    let config = audited();
    let disk = SimDisk::default();
    disk.record();
    let mut store = open(&disk, &config);
    let begins = store.revision().get();
    disk.mark(begins);
    let open_to_all = crate::support::policy(highwater::GuardRule::Key, highwater::Admission::Open);
    let made = store.create_domain(domain("d"), open_to_all, None).unwrap();
    let epoch = made.epochs.current().epoch;
    let authority = |sequence: u64| Authority::parse(&format!("{epoch}/{sequence}@a")).unwrap();
    let mut written = BTreeMap::new();
    for opening in 0..3 {
        for number in 0..90_u64 {
            let key = format!("k/{}", number % 5);
            let value = vec![b'v'; 100 + usize::try_from(number * 37 % 2_000).unwrap()];
            let sequence = opening * 100 + number + 2;
            let commit = put(&key, &value).under(authority(sequence));
            let receipt = store.commit(commit).unwrap();
            disk.mark(receipt.revision.get());
            let digest = highwater::digest(&highwater::Value::new(value).unwrap());
            written.insert(receipt.revision.get(), (key.clone(), digest.to_string()));
            if number % 9 == 0 {
                let stale = put(&key, "late").under(authority(1));
                assert!(store.commit(stale).is_err());
            }
        }
        store.close().unwrap();
        store = open(&disk, &config);
    }
    store.close().unwrap();
    Work {
        config,
        trace: disk.recorded(),
        begins,
        written,
    }
}

/// Every moment after which names or what is durable may differ, and some between them.
fn moments(trace: &Trace, others: usize) -> Vec<usize> {
    let events = trace.events();
    let step = (events.len() / others).max(1);
    let tells = |event: &Event| {
        matches!(
            event,
            Event::Create(..) | Event::Remove(..) | Event::Rename(..)
        )
    };
    let near = |at: usize| {
        let from = at.saturating_sub(2);
        events[from..at].iter().any(tells)
    };
    (0..=events.len())
        .filter(|at| near(*at) || at % step == 0)
        .collect()
}

#[test]
fn after_a_power_cut_at_any_moment_trail_and_data_agree() {
    let work = work();
    let others = usize::try_from(scale("HIGHWATER_AUDIT_POINTS", 25)).unwrap();
    let mut chance = Chance::new(scale("HIGHWATER_AUDIT_SEED", 1));
    let mut wanted = moments(&work.trace, others).into_iter().peekable();
    let mut cursor = work.trace.replay();
    let (mut acknowledged, mut completed) = (0, 0);
    for at in 0..=work.trace.events().len() {
        if wanted.next_if_eq(&at).is_some() {
            for cut in Cut::each(chance.bits()) {
                completed += examine(&work, &cursor.image(cut), acknowledged);
            }
        }
        if let Some(Event::Mark(revision)) = cursor.step() {
            acknowledged = *revision;
        }
    }
    assert!(
        completed > 10,
        "{completed} trails were completed from the log"
    );
}

/// Opens what a cut has left. 1 if the trail lacked something.
fn examine(work: &Work, image: &Files, acknowledged: u64) -> u64 {
    let disk = SimDisk::with_files(image);
    let store = open(&disk, &work.config);
    let found = store.revision().get();
    assert!(found >= acknowledged);
    let files = disk.files();
    let lines = agree(&files, work.begins, found);
    verified(&files, &lines);
    for (revision, line) in changes(&lines) {
        if let Some((key, digest)) = work.written.get(&revision) {
            assert_eq!(text_of(&line["writes"][0]["key"]), key);
            assert_eq!(text_of(&line["writes"][0]["digest"]), digest);
            let guards = line["guards"].as_array().unwrap();
            assert_eq!(guards.len(), 1, "every commit here raises a fence");
        }
    }
    let from_log = lines.iter().any(|line| line["from_log"] == true);
    store.close().unwrap();
    let lines = agree(&disk.files(), work.begins, found);
    verified(&disk.files(), &lines);
    u64::from(from_log)
}

/// How many files a trace begins for the trail, and how many of those got a second batch before
/// the name was made durable.
fn named_late(trace: &Trace) -> (usize, usize) {
    let (mut begun, mut late) = (0, 0);
    let mut trail = BTreeSet::new();
    let mut unnamed = None;
    let mut synced = false;
    for event in trace.events() {
        match event {
            Event::Create(name, inode) if name.starts_with("audit-") => {
                begun += 1;
                trail.insert(*inode);
                unnamed = Some(*inode);
                synced = false;
            }
            Event::Sync(inode) => synced |= unnamed == Some(*inode),
            Event::SyncDir if synced => unnamed = None,
            Event::Write(inode, ..) if synced && trail.contains(inode) => {
                late += usize::from(unnamed.take().is_some());
            }
            _ => {}
        }
    }
    (begun, late)
}

/// H-35: what is in a new file isn't relied on before its name is durable.
#[test]
fn the_name_of_a_new_file_is_durable_before_anything_else_is_written() {
    let work = work();
    let (begun, late) = named_late(&work.trace);
    assert!(begun >= 4, "{begun} files");
    assert_eq!(late, 0);
    let told = work.trace.without(|event| matches!(event, Event::SyncDir));
    assert_eq!(named_late(&told), (begun, begun), "the check itself");
    let image = work.trace.image(work.trace.events().len(), Cut::AllLost);
    assert!(
        verify_audit_on(&SimDisk::with_files(&image))
            .unwrap()
            .closed
    );
}

/// Many times what the log holds passes while the trail can't be written, checkpoints and all.
#[test]
fn the_log_is_kept_for_the_trail_while_the_trail_is_behind() {
    let mut config = audited();
    let audit = config.audit.as_mut().unwrap();
    audit.on_failure = AuditFailure::Continue;
    let (disk, store) = make(&config);
    let begins = store.revision().get() - 1;
    disk.plant(Fault {
        op: Op::Write,
        file: "audit-",
        nth: 1,
        sticky: true,
    });
    for number in 0..400 {
        let commit = put(format!("k/{}", number % 50), [b'v'; 3_000]);
        store.commit(commit).unwrap();
    }
    assert!(store.status().counted.checkpoints > 3);
    assert!(store.status().audit.unwrap().failing);
    store.close().unwrap();
    let ends = store.revision().get();
    drop(store);
    let disk = SimDisk::with_files(&disk.files());
    let store = open(&disk, &config);
    assert_eq!(store.revision().get(), ends);
    let lines = agree(&disk.files(), begins, ends);
    verified(&disk.files(), &lines);
    // Once it is told, the log is given back.
    let segments = store.status().log.segments;
    for number in 0..100 {
        let commit = put(format!("k/{}", number % 50), [b'v'; 3_000]);
        store.commit(commit).unwrap();
    }
    store.close().unwrap();
    let store = open(&disk, &config);
    assert!(store.status().log.segments < segments);
}
