//! Bytes that others made: headers and frames that look right, files that are not the log's.

use highwater_wal::{Damage, LogError};

use super::format::{frame, header};
use super::sim::{Cut, Fault, SimDisk};
use super::support::{LOG_ID, Trace, append, closed_log, killed_log, open, segment};
use super::verdict::{HEADER_BLOCK, accepted, layout, refused, refused_as_corrupt};

#[test]
fn a_header_that_continues_something_else_is_refused() {
    let (trace, files) = closed_log();
    let second = &files[&segment(2)];
    let salt = u64::from_be_bytes(second[44..52].try_into().unwrap());
    let previous = u32::from_be_bytes(second[60..64].try_into().unwrap());
    let with = |block: Vec<u8>| {
        let mut files = files.clone();
        files.get_mut(&segment(2)).unwrap()[..HEADER_BLOCK].copy_from_slice(&block);
        files
    };
    accepted(&with(header(2, 9, salt, previous)), &trace);
    for block in [
        header(2, 10, salt, previous),
        header(2, 9, salt ^ 1, previous),
        header(2, 9, salt, previous ^ 1),
    ] {
        assert_eq!(
            refused_as_corrupt(&with(block)),
            (segment(2), 0, Damage::ChainBroken)
        );
    }
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
    let LogError::Corrupt {
        file,
        offset,
        damage,
    } = edit(8..65, &{
        let mut fields = closed_log().1[&segment(2)][8..65].to_vec();
        fields[56] = 1;
        fields
    })
    else {
        panic!("bytes in the reserved part");
    };
    assert_eq!(
        (file, offset, damage),
        (segment(2), 28, Damage::HeaderField)
    );
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
    let mut short = files.clone();
    short.get_mut(&segment(2)).unwrap().truncate(4095);
    accepted(&short, &trace);
    // Right is only the header that goes with the seal which would have come next.
    let (one, two) = (&files[&segment(1)], &files[&segment(2)]);
    let word = |file: &[u8], at: usize| u64::from_be_bytes(file[at..at + 8].try_into().unwrap());
    let (salt_one, salt_two) = (word(one, 44), word(two, 44));
    let last_sum = u32::from_be_bytes(one[4096 + 28..4096 + 32].try_into().unwrap());
    let begun = |first, wrong: u32| {
        let named = [2_u64.to_be_bytes(), salt_two.to_be_bytes()].concat();
        let (seal_sum, _) = frame(salt_one, first, 2, &named, last_sum);
        let mut files = files.clone();
        let block = header(2, first, salt_two, seal_sum ^ wrong);
        files.get_mut(&segment(2)).unwrap()[..HEADER_BLOCK].copy_from_slice(&block);
        files
    };
    accepted(&begun(2, 0), &trace);
    for other in [begun(3, 0), begun(1, 0), begun(2, 1)] {
        let (file, _, damage) = refused_as_corrupt(&other);
        assert_eq!(file, segment(1));
        assert!(matches!(damage, Damage::SegmentBehind { .. }));
    }
    // Now the last frame is damaged. Nothing but the begun segment tells that it was durable.
    let mut damaged = files;
    damaged.get_mut(&segment(1)).unwrap()[5000] ^= 1;
    let (file, offset, damage) = refused_as_corrupt(&damaged);
    assert_eq!((file, offset), (segment(1), 4096));
    assert!(matches!(damage, Damage::SegmentBehind { behind_file, .. }
        if behind_file == segment(2)));
}
