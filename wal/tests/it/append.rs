//! What an append costs, and what it refuses.

use std::sync::Arc;

use highwater_wal::{FrameBuf, Log, LogError, Lsn, OptionsError, ReplayStop};

use super::sim::{Fault, Op, SimDisk};
use super::support::{SEGMENT_BYTES, Trace, append, count, open, options, segment};

#[test]
fn an_append_is_one_write_and_one_sync_outside_a_rotation() {
    let disk = SimDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    assert_eq!((log.status().first, log.status().last), (None, None));
    let mut rotations = 0;
    for _ in 0..200 {
        let (before, segments) = (disk.ops().len(), log.status().segments);
        append(&mut log, &[5; 1000]).unwrap();
        let ops = disk.ops().split_off(before);
        let data_sync = (Op::SyncData, segment(log.status().segments as u64));
        assert_eq!(ops.last(), Some(&data_sync));
        if log.status().segments == segments {
            assert_eq!(ops, [(Op::Write, data_sync.1.clone()), data_sync]);
        } else {
            rotations += 1;
        }
    }
    assert_eq!(
        rotations, 3,
        "200 frames of 1,032 bytes are a little over three segments"
    );
}

#[test]
fn a_rotation_with_a_spare_makes_everything_durable_in_order() {
    let disk = SimDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    append(&mut log, &[1; 40_000]).unwrap();
    log.ensure_spare().unwrap();
    let before = disk.ops().len();
    append(&mut log, &[2; 40_000]).unwrap();
    let (old, new) = (segment(1), segment(2));
    let spare = disk.ops()[before].1.clone();
    assert!(spare.starts_with("spare-"));
    let expected = [
        (Op::Write, spare.clone()),
        (Op::SyncData, spare),
        (Op::Rename, new.clone()),
        (Op::SyncDir, String::new()),
        (Op::Write, old.clone()),
        (Op::SyncData, old),
        (Op::Write, new.clone()),
        (Op::SyncData, new),
    ];
    assert_eq!(disk.ops()[before..], expected);
}

#[test]
fn a_payload_at_the_limit_is_readable_and_one_over_it_is_refused_before_the_disk() {
    let disk = SimDisk::default();
    let mut options = options();
    // The longest that fits: header block, frame header, closed frame and seal are taken off.
    options.max_payload_bytes = 65_536 - 4096 - 32 - 32 - 48;
    let longest = options.max_payload_bytes as usize;
    let mut none = |_: Lsn, _: &[u8]| Ok(());
    let (mut log, _) = Log::open(Arc::new(disk.clone()), options.clone(), &mut none).unwrap();
    for len in [longest - 1, longest] {
        append(&mut log, &vec![3; len]).unwrap();
    }
    let ops = disk.ops().len();
    let refused = append(&mut log, &vec![3; longest + 1]).unwrap_err();
    let LogError::TooLarge {
        payload_bytes,
        max_payload_bytes,
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!(
        (payload_bytes, max_payload_bytes as usize),
        (longest as u64 + 1, longest)
    );
    assert_eq!(disk.ops().len(), ops);
    append(&mut log, b"still usable").unwrap();
    log.close().unwrap();
    // A smaller limit later on does not make the frames that are there unreadable.
    let (_, found) = open(&disk).unwrap();
    let lens: Vec<usize> = found
        .frames
        .iter()
        .map(|(_, payload)| payload.len())
        .collect();
    assert_eq!(lens, [longest - 1, longest, 12]);

    options.max_payload_bytes += 1;
    let refused = Log::open(Arc::new(disk), options, &mut none).unwrap_err();
    let LogError::Options(OptionsError::PayloadBytes { given, max }) = refused else {
        panic!("{refused}");
    };
    assert_eq!((given as usize, max), (longest + 1, longest as u64));
}

#[test]
fn a_failed_write_or_sync_stops_the_log_for_good() {
    let clean = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&clean).unwrap();
    let opened = clean.ops().len();
    trace.append(&mut log, 12, 0).unwrap();
    for at in opened..clean.ops().len() {
        let disk = SimDisk::default();
        disk.set_fault(at, Fault::Error(std::io::ErrorKind::Other));
        let mut trace = Trace::default();
        let mut log = trace.open(&disk).unwrap();
        let error = trace.append(&mut log, 12, 0).unwrap_err();
        assert!(matches!(error, LogError::Io { .. }), "{error}");
        assert!(log.status().poisoned);
        let ops = disk.ops().len();
        let again = log.append(&mut FrameBuf::new()).unwrap_err();
        assert!(matches!(again, LogError::Poisoned), "{again}");
        assert!(matches!(log.ensure_spare(), Err(LogError::Poisoned)));
        assert!(matches!(
            log.recycle_through(Lsn::FIRST),
            Err(LogError::Poisoned)
        ));
        assert!(matches!(log.close(), Err(LogError::Poisoned)));
        assert_eq!(
            disk.ops().len(),
            ops,
            "a poisoned log leaves the disk alone"
        );
        let mut log = trace.open(&disk.after_kill()).unwrap();
        trace.append(&mut log, 3, 1).unwrap();
    }
}

#[test]
fn positions_go_on_over_recycling_and_recycled_segments_are_used_again() {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    for _ in 0..160 {
        trace.append(&mut log, 1, 0).unwrap();
        let last = trace.last();
        trace.recycle(&mut log, last).unwrap();
        let status = log.status();
        assert_eq!(status.last.map(Lsn::get), Some(last));
        assert_eq!(status.segments, 1);
        assert!(status.spares <= 1);
        assert_eq!(status.disk_bytes, 65_536 * (1 + status.spares as u64));
    }
    // One for the start, and one for a rotation that came before anything was recycled.
    assert_eq!(count(&disk.ops(), Op::Create), 2);
    drop(log);
    trace.open(&disk.after_kill()).unwrap();
}

#[test]
fn the_segments_of_frames_that_are_still_needed_stay() {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 30, 0).unwrap();
    for lsn in 1..=30 {
        trace.recycle(&mut log, lsn).unwrap();
        let (_, found) = open(&disk.after_kill()).unwrap();
        trace.check(&found);
    }
    assert_eq!(log.status().segments, 1);
}

#[test]
fn a_replay_that_stops_changes_nothing() {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 12, 0).unwrap();
    let disk = disk.after_kill();
    let mut seen = 0;
    let error = Log::open(Arc::new(disk.clone()), options(), &mut |lsn, _| {
        seen += 1;
        if lsn.get() == 5 {
            Err(ReplayStop)
        } else {
            Ok(())
        }
    });
    assert!(matches!(error, Err(LogError::ReplayStopped { at }) if at.get() == 5));
    assert_eq!((seen, disk.ops().len()), (5, 0));
}

#[test]
fn a_segment_is_given_up_iff_all_its_frames_are_covered() {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 12, 0).unwrap();
    // By their sizes, frames 1 to 8 are in the first segment, 9 and 10 in the second.
    for (lsn, first) in [(1, 1), (7, 1), (8, 9), (9, 9), (10, 11), (11, 11), (12, 11)] {
        trace.recycle(&mut log, lsn).unwrap();
        assert_eq!(
            log.status().first.map(Lsn::get),
            Some(first),
            "through {lsn}"
        );
    }
}

#[test]
fn a_frame_leaves_room_for_a_closed_frame_and_the_seal_or_goes_to_the_next_segment() {
    // What the segment has behind the header: the frame's header and payload, and 80 bytes.
    let fits = SEGMENT_BYTES - 4096 - 2 * 32 - 30_000 - 80;
    for (len, segments) in [(fits, 1), (fits + 1, 2)] {
        let disk = SimDisk::default();
        let (mut log, _) = open(&disk).unwrap();
        append(&mut log, &[1; 30_000]).unwrap();
        append(&mut log, &vec![2; len]).unwrap();
        assert_eq!(log.status().segments, segments, "{len} bytes");
        log.close().unwrap();
        let (mut log, found) = open(&disk).unwrap();
        assert!(found.recovered.closed);
        append(&mut log, &[3; 30_000]).unwrap();
        drop(log);
        let (_, found) = open(&disk).unwrap();
        assert_eq!(found.frames.len(), 3);
        let segments = disk.files().into_values();
        assert!(
            segments
                .into_iter()
                .all(|bytes| bytes.len() == SEGMENT_BYTES)
        );
    }
}

#[test]
fn a_log_is_closed_iff_it_says_so_behind_its_last_frame() {
    let disk = SimDisk::default();
    for round in 0..3 {
        let (mut log, _) = open(&disk).unwrap();
        append(&mut log, b"frame").unwrap();
        drop(log);
        let (mut log, found) = open(&disk).unwrap();
        assert!(!found.recovered.closed, "round {round}");
        append(&mut log, b"frame").unwrap();
        log.close().unwrap();
        let (log, found) = open(&disk).unwrap();
        assert!(found.recovered.closed, "round {round}");
        let ops = disk.ops().len();
        log.close().unwrap();
        assert_eq!(disk.ops().len(), ops, "it is closed already");
        let (mut log, _) = open(&disk).unwrap();
        append(&mut log, b"behind a closed frame").unwrap();
        log.close().unwrap();
        let (_, found) = open(&disk).unwrap();
        assert!(found.recovered.closed, "round {round}");
    }
}

#[test]
fn a_failed_sync_of_the_directory_stops_the_log_and_a_failed_rename_does_not() {
    for (skip, poisoned) in [(0, false), (1, true)] {
        let disk = SimDisk::default();
        let mut trace = Trace::default();
        let mut log = trace.open(&disk).unwrap();
        trace.append(&mut log, 12, 0).unwrap();
        // The space of a recycled segment is checked before it is renamed.
        let at = disk.ops().len() + 1 + skip;
        disk.set_fault(at, Fault::Error(std::io::ErrorKind::Other));
        let error = trace.recycle(&mut log, 12).unwrap_err();
        assert!(matches!(error, LogError::Io { .. }), "{error}");
        assert_eq!(
            (log.status().poisoned, log.pool().is_poisoned()),
            (poisoned, poisoned)
        );
        let again = trace.recycle(&mut log, 12);
        assert_eq!(again.is_ok(), !poisoned);
        let (_, found) = open(&disk.after_kill()).unwrap();
        trace.check(&found);
    }
}

#[test]
fn options_are_refused_iff_a_bound_is_not_kept() {
    let cases = [
        (65_536, 61_328, 64, None),
        (
            65_536,
            61_329,
            0,
            Some(OptionsError::PayloadBytes {
                given: 61_329,
                max: 61_328,
            }),
        ),
        (
            61_440,
            0,
            0,
            Some(OptionsError::SegmentBytes { given: 61_440 }),
        ),
        (
            65_537,
            0,
            0,
            Some(OptionsError::SegmentBytes { given: 65_537 }),
        ),
        (1 << 30, 1 << 29, 0, None),
        (
            (1 << 30) + 4096,
            0,
            0,
            Some(OptionsError::SegmentBytes {
                given: (1 << 30) + 4096,
            }),
        ),
        (
            65_536,
            0,
            65,
            Some(OptionsError::SpareSegments { given: 65 }),
        ),
    ];
    for (segment_bytes, max_payload_bytes, spare_segments, refusal) in cases {
        let mut options = options();
        options.segment_bytes = segment_bytes;
        options.max_payload_bytes = max_payload_bytes;
        options.spare_segments = spare_segments;
        assert_eq!(options.validate().err(), refusal, "{options:?}");
    }
}
