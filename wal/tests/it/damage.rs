//! Bits that flip, files that are cut, swapped, copied, zeroed or lost.

use highwater_wal::{Damage, FrameFault};

use super::sim::SimDisk;
use super::support::{SEGMENT_BYTES, Trace, closed_log, killed_log, open, segment};
use super::verdict::{HEADER_BLOCK, TWELVE, accepted, layout, refused_as_corrupt};

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
    assert_eq!(accepted(&files, &trace).cut_short, None);
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
        // That it was cut is told, since no crash does it.
        let cut = found.recovered.cut_short.unwrap();
        assert_eq!((cut.file, cut.bytes), (segment(1), len as u64));
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
        let fits = start + 32 + len as usize <= SEGMENT_BYTES;
        let too_long = FrameFault::Length { found: len };
        assert_eq!(
            torn.fault == too_long,
            !fits,
            "length {len}: {:?}",
            torn.fault
        );
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
