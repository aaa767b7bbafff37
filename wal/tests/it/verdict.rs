//! Opens damaged files and says what must come of it.

use std::collections::BTreeMap;

use highwater_wal::{Damage, LogError, Recovered};

use super::sim::{Cut, SimDisk};
use super::support::{Trace, open, payload};

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) const HEADER_BLOCK: usize = 4096;

/// Opens these files, which must be refused without a change.
pub(crate) fn refused(files: &Files) -> LogError {
    let disk = SimDisk::with_files(files);
    let error = open(&disk).expect_err("damage was accepted");
    assert!(
        disk.ops().is_empty() && disk.files() == *files,
        "a refused log was changed: {error}"
    );
    error
}

pub(crate) fn refused_as_corrupt(files: &Files) -> (String, u64, Damage) {
    match refused(files) {
        LogError::Corrupt {
            file,
            offset,
            damage,
        } => (file, offset, damage),
        error => panic!("{error}"),
    }
}

/// Opens these files, which must hold what `trace` says, and uses the log afterwards.
pub(crate) fn accepted(files: &Files, trace: &Trace) -> Recovered {
    let disk = SimDisk::with_files(files);
    let (log, found) = open(&disk).unwrap();
    trace.check(&found);
    drop(log);
    let (disk, mut trace) = (disk.after_cut(Cut::AllLost), trace.clone());
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 1, 9).unwrap();
    drop(log);
    trace.open(&disk.after_cut(Cut::AllLost)).unwrap();
    found.recovered
}

/// Where the frames of the logs of these tests are: segment, first byte, byte behind. Computed
/// from the payloads alone. The last entry of each segment but the last is its seal.
pub(crate) fn layout(lsns: &[&[u64]], closed: bool) -> Vec<(u64, usize, usize)> {
    let mut places = Vec::new();
    for (index, frames) in lsns.iter().enumerate() {
        let number = index as u64 + 1;
        let mut at = HEADER_BLOCK;
        let mut place = |payload_bytes: usize| {
            let end = at + 32 + payload_bytes.div_ceil(8) * 8;
            places.push((number, at, end));
            at = end;
        };
        for lsn in *frames {
            place(payload(*lsn, 0).len());
        }
        if index + 1 < lsns.len() {
            place(16);
        } else if closed {
            place(0);
        }
    }
    places
}

pub(crate) const TWELVE: [&[u64]; 3] = [&[1, 2, 3, 4, 5, 6, 7, 8], &[9, 10], &[11, 12]];
