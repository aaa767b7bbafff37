//! Bits that flip, files that are cut, swapped, copied, zeroed or lost; and the bytes of others.

use std::collections::BTreeMap;

use highwater_wal::{Damage, FrameFault, LogError, Recovered};

use super::sim::{Cut, Fault, SimDisk};
use super::support::{
    LOG_ID, SEGMENT_BYTES, Trace, append, closed_log, killed_log, open, payload, segment,
};

type Files = BTreeMap<String, Vec<u8>>;

const HEADER_BLOCK: usize = 4096;

/// Opens these files, which must be refused without a change.
fn refused(files: &Files) -> LogError {
    let disk = SimDisk::with_files(files);
    let error = open(&disk).expect_err("damage was accepted");
    assert!(
        disk.ops().is_empty() && disk.files() == *files,
        "a refused log was changed: {error}"
    );
    error
}

fn refused_as_corrupt(files: &Files) -> (String, u64, Damage) {
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
fn accepted(files: &Files, trace: &Trace) -> Recovered {
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
fn layout(lsns: &[&[u64]], closed: bool) -> Vec<(u64, usize, usize)> {
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

const TWELVE: [&[u64]; 3] = [&[1, 2, 3, 4, 5, 6, 7, 8], &[9, 10], &[11, 12]];

/// All bits of headers and of the first bytes of frames; samples of the rest.
fn bits(places: &[(u64, usize, usize)]) -> Vec<(u64, usize)> {
    let mut bits = Vec::new();
    for number in 1..=3 {
        bits.extend(
            (0..72 * 8)
                .chain(4088 * 8..4096 * 8)
                .map(|bit| (number, bit)),
        );
        bits.extend(
            (0..SEGMENT_BYTES * 8)
                .step_by(1009)
                .map(|bit| (number, bit)),
        );
    }
    for (number, start, end) in places {
        let whole = (start * 8..end * 8).take(40 * 8);
        bits.extend(
            whole
                .chain((end - 8) * 8..end * 8)
                .map(|bit| (*number, bit)),
        );
    }
    bits
}

#[test]
fn a_flipped_bit_is_refused_iff_something_durable_stands_behind_it() {
    let (trace, files) = closed_log();
    let places = layout(&TWELVE, true);
    let closed_frame = *places.last().unwrap();
    for (number, bit) in bits(&places) {
        let byte = bit / 8;
        let mut damaged = files.clone();
        damaged.get_mut(&segment(number)).unwrap()[byte] ^= 1 << (bit % 8);
        let hit = places
            .iter()
            .find(|(at, start, end)| *at == number && *start <= byte && byte < *end);
        if byte < HEADER_BLOCK {
            assert_eq!(refused_as_corrupt(&damaged).0, segment(number), "bit {bit}");
        } else if let Some(place) = hit.filter(|place| **place != closed_frame) {
            let (file, offset, _) = refused_as_corrupt(&damaged);
            assert_eq!(
                (file, offset),
                (segment(place.0), place.1 as u64),
                "bit {bit}"
            );
        } else {
            let (_, found) = open(&SimDisk::with_files(&damaged)).unwrap();
            trace.check(&found);
            assert_eq!(found.recovered.closed, hit.is_none(), "bit {bit}");
        }
    }
}

#[test]
fn damage_to_the_very_last_frame_of_a_killed_log_is_a_torn_tail_and_takes_only_that_frame() {
    let (mut trace, files) = killed_log(12);
    let places = layout(&TWELVE, false);
    let (number, start, end) = *places.last().unwrap();
    trace.acked.remove(&12);
    for bit in (start * 8..end * 8).step_by(37) {
        let mut damaged = files.clone();
        damaged.get_mut(&segment(number)).unwrap()[bit / 8] ^= 1 << (bit % 8);
        let (_, found) = open(&SimDisk::with_files(&damaged)).unwrap();
        trace.check(&found);
    }
    let mut damaged = files;
    damaged.get_mut(&segment(number)).unwrap()[end - 1] ^= 1;
    let torn = accepted(&damaged, &trace).torn.unwrap();
    assert_eq!((torn.file, torn.offset), (segment(number), start as u64));
    assert!(matches!(torn.fault, FrameFault::Checksum { .. }));
}

#[test]
fn a_last_file_cut_at_any_byte_of_the_last_frame_keeps_all_frames_before() {
    let (mut trace, files) = killed_log(5);
    let (_, start, end) = *layout(&[&[1, 2, 3, 4, 5]], false).last().unwrap();
    accepted(&files, &trace);
    trace.acked.remove(&5);
    for len in start..end {
        let mut cut = files.clone();
        cut.get_mut(&segment(1)).unwrap().truncate(len);
        let disk = SimDisk::with_files(&cut);
        let (log, found) = open(&disk).unwrap();
        trace.check(&found);
        drop(log);
        assert_eq!(
            disk.files()[&segment(1)].len(),
            SEGMENT_BYTES,
            "cut at {len}"
        );
    }
    let mut cut = files;
    cut.get_mut(&segment(1)).unwrap().truncate(end - 1);
    accepted(&cut, &trace);
}

#[test]
fn zeros_behind_the_log_are_neither_damage_nor_frames() {
    for (trace, files) in [closed_log(), killed_log(12)] {
        for zeros in [1, 7, 8, 512, 4096, 1024 * 1024] {
            let mut longer = files.clone();
            longer.get_mut(&segment(3)).unwrap().extend(vec![0; zeros]);
            assert_eq!(accepted(&longer, &trace).torn, None);
        }
        for len in [0, 1, 4095, 4096, SEGMENT_BYTES, SEGMENT_BYTES * 2] {
            let mut longer = files.clone();
            longer.insert(segment(4), vec![0; len]);
            accepted(&longer, &trace);
            longer.insert(segment(5), vec![0; len]);
            accepted(&longer, &trace);
            // A file that is not blank has no business behind a blank one.
            longer.insert(segment(5), vec![1; len.max(1)]);
            let (file, _, damage) = refused_as_corrupt(&longer);
            assert_eq!((file, damage), (segment(5), Damage::NotBlank));
        }
    }
}

#[test]
fn a_segment_full_of_zeros_is_refused_where_a_seal_promises_more() {
    let (_, files) = closed_log();
    for number in 1..=3 {
        let mut damaged = files.clone();
        damaged.get_mut(&segment(number)).unwrap().fill(0);
        let found = refused_as_corrupt(&damaged);
        assert_eq!(found, (segment(number), 0, Damage::HeaderMagic));
        let mut damaged = files.clone();
        damaged.get_mut(&segment(number)).unwrap()[..HEADER_BLOCK].fill(0);
        let found = refused_as_corrupt(&damaged);
        assert_eq!(found, (segment(number), 0, Damage::HeaderMagic));
    }
    // A zeroed middle, with frames before and behind.
    let mut damaged = files;
    damaged.get_mut(&segment(1)).unwrap()[4096 + 40..4096 + 200].fill(0);
    let (file, offset, damage) = refused_as_corrupt(&damaged);
    assert_eq!((file, offset), (segment(1), 4096 + 40));
    assert!(matches!(
        damage,
        Damage::FrameBehind {
            fault: FrameFault::NoMark,
            ..
        }
    ));
}

#[test]
fn lost_swapped_and_copied_segments_are_refused() {
    let (trace, files) = closed_log();
    for number in [2, 3] {
        let mut lost = files.clone();
        lost.remove(&segment(number));
        let found = refused_as_corrupt(&lost);
        assert_eq!(found, (segment(number), 0, Damage::MissingSegment));
    }
    for (one, other) in [(1, 2), (2, 3), (1, 3)] {
        let mut swapped = files.clone();
        swapped.insert(segment(one), files[&segment(other)].clone());
        swapped.insert(segment(other), files[&segment(one)].clone());
        let (file, _, damage) = refused_as_corrupt(&swapped);
        assert_eq!(
            (file, damage),
            (segment(one), Damage::OtherSegment { found: other })
        );
    }
    for from in 1..=3 {
        let mut copied = files.clone();
        copied.insert(segment(4), files[&segment(from)].clone());
        let (file, _, damage) = refused_as_corrupt(&copied);
        assert_eq!(
            (file, damage),
            (segment(4), Damage::OtherSegment { found: from })
        );
    }
    // Without its oldest segment a log looks as after recycling; the caller can tell by the first
    // position.
    let mut lost = files;
    lost.remove(&segment(1));
    let recovered = accepted(
        &lost,
        &Trace {
            recycled: 8,
            ..trace
        },
    );
    assert_eq!(recovered.first.map(|lsn| lsn.get()), Some(9));
}

#[test]
fn a_segment_of_another_time_of_the_same_log_is_refused() {
    let (_, files) = closed_log();
    // The same log went another way from the second segment on: other payloads, same numbers.
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 12, 1).unwrap();
    let mut mixed = files;
    mixed.insert(segment(2), disk.files()[&segment(2)].clone());
    assert_eq!(
        refused_as_corrupt(&mixed),
        (segment(2), 0, Damage::ChainBroken)
    );
}

#[test]
fn foreign_logs_and_unknown_versions_are_refused_by_name() {
    let (_, mut files) = closed_log();
    let mut edit = |range: std::ops::Range<usize>, bytes: &[u8]| {
        let file = files.get_mut(&segment(2)).unwrap();
        file[range].copy_from_slice(bytes);
        let crc = crc32fast::hash(&file[..4092]);
        file[4092..4096].copy_from_slice(&crc.to_be_bytes());
        refused(&files)
    };
    let error = edit(12..28, &[9; 16]);
    let LogError::ForeignLog {
        file,
        offset,
        expected,
        found,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (file, offset, expected, found),
        (segment(2), 12, LOG_ID, [9; 16])
    );
    let error = edit(8..12, &2_u32.to_be_bytes());
    let LogError::UnknownVersion {
        file,
        offset,
        found,
        supported,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((file, offset, found, supported), (segment(2), 8, 2, 1));
}

#[test]
fn a_length_is_believed_only_after_the_checksum() {
    let (mut trace, files) = killed_log(12);
    let (number, start, _) = *layout(&TWELVE, false).last().unwrap();
    for len in [0_u32, 4999, 5001, 60_000, u32::MAX] {
        let mut damaged = files.clone();
        let file = damaged.get_mut(&segment(number)).unwrap();
        file[start + 20..start + 24].copy_from_slice(&len.to_be_bytes());
        let mut shorter = trace.clone();
        shorter.acked.remove(&12);
        let torn = accepted(&damaged, &shorter).torn.unwrap();
        assert_eq!(torn.offset, start as u64, "length {len}: {:?}", torn.fault);
    }
    trace.recycled = 0;
    let mut damaged = files;
    let file = damaged.get_mut(&segment(1)).unwrap();
    file[4096 + 20..4096 + 24].copy_from_slice(&u32::MAX.to_be_bytes());
    let (file, offset, _) = refused_as_corrupt(&damaged);
    assert_eq!((file, offset), (segment(1), 4096));
}

#[test]
fn a_frame_in_the_place_of_another_is_refused() {
    let (_, files) = killed_log(12);
    let places = layout(&TWELVE, false);
    // The second and third frame are of one size: a write that went astray, or came twice.
    let (second, third) = (places[1], places[2]);
    let mut damaged = files;
    let file = damaged.get_mut(&segment(1)).unwrap();
    file.copy_within(second.1..second.2, third.1);
    let (name, offset, damage) = refused_as_corrupt(&damaged);
    assert_eq!((name, offset), (segment(1), third.1 as u64));
    assert!(matches!(damage, Damage::OtherFrame { found, expected }
        if found.get() == 2 && expected.get() == 3));
}

/// A frame with a right checksum, made by whoever can compute one.
fn made_up_frame(salt: u64, lsn: u64) -> Vec<u8> {
    let mut frame = salt.to_be_bytes().to_vec();
    frame.extend_from_slice(&lsn.to_be_bytes());
    frame.extend_from_slice(&1_u32.to_be_bytes());
    frame.extend_from_slice(&0_u32.to_be_bytes());
    frame.extend_from_slice(&0_u32.to_be_bytes());
    let crc = crc32fast::hash(&frame);
    frame.extend_from_slice(&crc.to_be_bytes());
    frame
}

#[test]
fn payloads_that_imitate_frames_never_pass_as_frames() {
    let (trace, files) = killed_log(5);
    let bytes = &files[&segment(1)];
    let mut imitation: Vec<u8> = Vec::new();
    for lsn in 0..200 {
        imitation.extend(made_up_frame(lsn * 31 + 1, lsn));
    }
    // Even the log's own bytes, mark included, which somebody stores as a value.
    let (_, start, end) = layout(&[&[1, 2, 3, 4, 5]], false)[4];
    imitation.extend_from_slice(&bytes[start..end]);
    imitation.resize(imitation.len().next_multiple_of(512), 1);
    let disk = SimDisk::with_files(&files);
    let mut whole = trace.clone();
    let mut log = whole.open(&disk).unwrap();
    append(&mut log, &imitation).unwrap();
    whole.acked.insert(6, imitation.clone());
    drop(log);
    whole.open(&disk.after_kill()).unwrap();
    // Torn in all ways: the imitations may be all that reached the disk.
    for seed in 0..300 {
        let disk = SimDisk::with_files(&files);
        let (mut log, _) = open(&disk).unwrap();
        disk.set_fault(disk.ops().len() + 1, Fault::Crash);
        append(&mut log, &imitation).unwrap_err();
        let mut trace = trace.clone();
        trace.in_flight = Some((6, imitation.clone()));
        trace.open(&disk.after_cut(Cut::Random(seed))).unwrap();
    }
    // The marks are what holds: with the right one and a later position it is a frame behind.
    let mark: [u8; 8] = bytes[start..start + 8].try_into().unwrap();
    let mut damaged = files.clone();
    let made_up = made_up_frame(u64::from_be_bytes(mark), 6);
    let mut other_chain = files;
    other_chain.get_mut(&segment(1)).unwrap()[end..end + 32].copy_from_slice(&made_up);
    let found = refused_as_corrupt(&other_chain);
    assert_eq!(found, (segment(1), end as u64, Damage::ChainBroken));
    damaged.get_mut(&segment(1)).unwrap()[end + 64..end + 96].copy_from_slice(&made_up);
    let (_, offset, damage) = refused_as_corrupt(&damaged);
    assert_eq!(offset, end as u64);
    assert!(matches!(damage, Damage::FrameBehind { behind_offset, .. }
        if behind_offset == end as u64 + 64));
}

#[test]
fn files_that_are_no_segments_are_cleaned_up_refused_or_left_alone_but_never_read() {
    let (trace, files) = closed_log();
    let mut littered = files.clone();
    let old = files[&segment(2)].clone();
    littered.insert("spare-0000000000000009.hw.tmp".into(), old.clone());
    littered.insert("spare-0000000000000006.hw".into(), vec![7; 100]);
    littered.insert("spare-0000000000000007.hw".into(), old.clone());
    littered.insert("spare-0000000000000008.hw".into(), old.clone());
    littered.insert("index.redb".into(), vec![1; 10]);
    littered.insert("notes.tmp".into(), vec![2; 10]);
    accepted(&littered, &trace);
    let disk = SimDisk::with_files(&littered);
    let (log, _) = open(&disk).unwrap();
    assert_eq!(log.status().spares, 1);
    let left: Vec<String> = disk
        .files()
        .into_keys()
        .filter(|n| !n.starts_with("log-"))
        .collect();
    assert_eq!(
        left,
        ["index.redb", "notes.tmp", "spare-0000000000000007.hw"]
    );

    for name in [
        "log-2.hw",
        "log-000000000000000A.hw",
        "log-0000000000000000.hw",
        "log-x.hw",
    ] {
        let mut strange = files.clone();
        strange.insert(name.into(), old.clone());
        let error = refused(&strange);
        assert!(
            matches!(&error, LogError::StrangeName { file } if file == name),
            "{error}"
        );
    }
}

#[test]
fn a_rotation_without_its_seal_proves_the_frames_before_it() {
    // Stop right before the seal of the first rotation: the second segment is there, but blank.
    let clean = SimDisk::default();
    let (mut log, _) = open(&clean).unwrap();
    append(&mut log, &[1; 40_000]).unwrap();
    let before = clean.ops().len();
    append(&mut log, &[2; 40_000]).unwrap();
    let seal_write = before
        + clean.ops()[before..]
            .iter()
            .position(|(_, file)| *file == segment(1))
            .unwrap();
    let disk = SimDisk::default();
    disk.set_fault(seal_write, Fault::Crash);
    let (mut log, _) = open(&disk).unwrap();
    append(&mut log, &[1; 40_000]).unwrap();
    append(&mut log, &[2; 40_000]).unwrap_err();
    let files = disk.after_cut(Cut::AllLost).files();
    assert!(files.contains_key(&segment(2)));
    let mut trace = Trace::default();
    trace.acked.insert(1, vec![1; 40_000]);
    accepted(&files, &trace);
    // Now the last frame is damaged. Nothing but the begun segment tells that it was durable.
    let mut damaged = files;
    damaged.get_mut(&segment(1)).unwrap()[5000] ^= 1;
    let (file, offset, damage) = refused_as_corrupt(&damaged);
    assert_eq!((file, offset), (segment(1), 4096));
    assert!(matches!(damage, Damage::SegmentBehind { behind_file, .. }
        if behind_file == segment(2)));
}
