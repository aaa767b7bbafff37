//! A disk without space, at every place where space is asked for.

use std::io::ErrorKind;

use highwater_wal::LogError;

use super::sim::{Fault, Op, SimDisk};
use super::support::{Trace, count, open};

/// Runs to the fault, goes on after it, and checks that nothing confirmed is missing.
fn fills_up_at(at: usize) -> LogError {
    let disk = SimDisk::default();
    disk.set_fault(at, Fault::Error(ErrorKind::StorageFull));
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
            let error = fills_up_at(at);
            assert!(
                matches!(error, LogError::Full { .. }),
                "operation {at}, {op:?}: {error}"
            );
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
