//! A disk without space, at every place where space is asked for.

use std::io::ErrorKind;

use highwater_wal::LogError;

use super::sim::{Fault, Op, SimDisk};
use super::support::{Trace, count, open};

/// Runs to the fault, goes on after it, and checks that nothing confirmed is missing.
fn fills_up_at(at: usize, kind: ErrorKind) -> LogError {
    let disk = SimDisk::default();
    disk.set_fault(at, Fault::Error(kind));
    let mut trace = Trace::default();
    let mut log = match trace.open(&disk) {
        Ok(log) => log,
        Err(error) => {
            let mut log = trace.open(&disk).unwrap();
            trace.append(&mut log, 14, 0).unwrap();
            return error;
        }
    };
    let error = trace.append(&mut log, 14, 0).unwrap_err();
    assert!(!log.status().poisoned, "{error}");
    let (lsn, _) = trace.in_flight.take().unwrap();
    let (_, found) = open(&disk.after_kill()).unwrap();
    trace.check(&found);
    trace.append(&mut log, 14, 0).unwrap();
    assert!(trace.acked.contains_key(&lsn));
    drop(log);
    trace.open(&disk.after_kill()).unwrap();
    error
}

#[test]
fn a_full_disk_refuses_and_the_log_goes_on_once_there_is_space() {
    let clean = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&clean).unwrap();
    trace.append(&mut log, 14, 0).unwrap();
    let mut tried = 0;
    for (at, (op, file)) in clean.ops().into_iter().enumerate() {
        let new_space = match op {
            Op::Create | Op::Allocate | Op::Rename => true,
            Op::Write | Op::SyncData => file.ends_with(".tmp"),
            _ => false,
        };
        if new_space {
            tried += 1;
            for kind in [
                ErrorKind::StorageFull,
                ErrorKind::QuotaExceeded,
                ErrorKind::FileTooLarge,
            ] {
                let error = fills_up_at(at, kind);
                let full = matches!(error, LogError::Full { .. });
                assert!(full, "operation {at}, {op:?}, {kind}: {error}");
            }
        }
    }
    // Each segment is created, reserved, written, synced, and renamed twice.
    assert_eq!(tried, 6 * count(&clean.ops(), Op::Create));
    assert_eq!(count(&clean.ops(), Op::Create), 3);
}

#[test]
fn a_spare_that_finds_no_space_leaves_no_file_and_a_usable_log() {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 2, 0).unwrap();
    let files = disk.files();
    disk.set_fault(disk.ops().len() + 2, Fault::Error(ErrorKind::StorageFull));
    assert!(matches!(log.ensure_spare(), Err(LogError::Full { .. })));
    assert_eq!(disk.files(), files);
    trace.append(&mut log, 3, 0).unwrap();
    log.ensure_spare().unwrap();
    assert_eq!(log.status().spares, 1);
    log.ensure_spare().unwrap();
    assert_eq!(log.status().spares, 1);
}

#[test]
fn a_spare_that_could_not_get_its_name_is_used_later() {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 8, 0).unwrap();
    log.ensure_spare().unwrap();
    // The next frame needs the next segment: header, sync, rename.
    for skip in [0, 2] {
        disk.set_fault(
            disk.ops().len() + skip,
            Fault::Error(ErrorKind::StorageFull),
        );
        let error = trace.append(&mut log, 1, 0).unwrap_err();
        assert!(matches!(error, LogError::Full { .. }), "{error}");
        assert_eq!((log.status().spares, log.status().segments), (1, 1));
    }
    trace.append(&mut log, 1, 0).unwrap();
    assert_eq!((log.status().spares, log.status().segments), (0, 2));
    assert_eq!(count(&disk.ops(), Op::Create), 2);
}

#[test]
fn a_spare_found_without_space_behind_it_is_removed() {
    for (fault, spares) in [(None, 1), (Some(0), 0)] {
        let disk = SimDisk::default();
        let (mut log, _) = open(&disk).unwrap();
        log.ensure_spare().unwrap();
        drop(log);
        let clean = disk.after_kill();
        open(&clean).unwrap();
        let allocate = clean
            .ops()
            .iter()
            .position(|(op, _)| *op == Op::Allocate)
            .unwrap();
        let disk = disk.after_kill();
        if let Some(skip) = fault {
            disk.set_fault(allocate + skip, Fault::Error(ErrorKind::StorageFull));
        }
        let (log, _) = open(&disk).unwrap();
        assert_eq!(log.status().spares, spares);
        let files = disk
            .files()
            .into_keys()
            .filter(|name| name.starts_with("spare-"));
        assert_eq!(files.count(), spares);
    }
}
