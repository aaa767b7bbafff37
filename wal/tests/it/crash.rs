//! The process or the machine stops at every single operation; and again in the recovery.

use super::sim::{Cut, Fault, Op, SimDisk};
use super::support::{Found, Trace, killed_log, open, segment};

/// The images that one power cut is tried with.
fn cuts(disk: &SimDisk, seed: u64) -> Vec<Cut> {
    let mut cuts = vec![Cut::AllLost, Cut::AllKept];
    if let Some(len) = disk.torn_len() {
        let places = [
            1,
            8,
            31,
            32,
            33,
            512,
            1024,
            4096,
            len / 2,
            len.saturating_sub(1),
        ];
        cuts.extend(places.into_iter().filter(|at| *at < len).map(Cut::TornAt));
    }
    cuts.extend((0..6).map(|n| Cut::Random(seed * 10 + n)));
    cuts
}

/// Recovery of `disk`, after which another recovery finds the same.
fn recover(disk: &SimDisk) -> Found {
    let (log, found) = open(disk).unwrap();
    drop(log);
    let (_, again) = open(&disk.after_cut(Cut::AllLost)).unwrap();
    assert!(
        again.frames == found.frames,
        "a second recovery finds something else"
    );
    assert_eq!(again.recovered.last, found.recovered.last);
    assert_eq!(again.recovered.torn, None, "the tail was cleared");
    found
}

/// Stops at each operation of the recovery of `image`, which must always find `expected`.
fn crash_in_recovery(image: &SimDisk, expected: &Found, seed: u64) -> usize {
    let whole = image.after_kill();
    open(&whole).unwrap();
    let ops = whole.ops().len();
    for at in 0..ops {
        let disk = image.after_kill();
        disk.set_fault(at, Fault::Crash);
        open(&disk).unwrap_err();
        for cut in [Cut::AllLost, Cut::AllKept, Cut::Random(seed + at as u64)] {
            let found = recover(&disk.after_cut(cut));
            assert!(
                found.frames == expected.frames,
                "crash at {at} of the recovery, {cut:?}"
            );
        }
        let found = recover(&disk.after_kill());
        assert!(
            found.frames == expected.frames,
            "process killed at {at} of the recovery"
        );
    }
    ops
}

/// Runs the script up to operation `at` on a fresh disk.
fn crashed_at(at: usize) -> (SimDisk, Trace) {
    let disk = SimDisk::default();
    disk.set_fault(at, Fault::Crash);
    let mut trace = Trace::default();
    trace.script(&disk, 0).unwrap_err();
    (disk, trace)
}

fn script_ops() -> usize {
    let disk = SimDisk::default();
    Trace::default().script(&disk, 0).unwrap();
    disk.ops().len()
}

#[test]
fn nothing_confirmed_is_lost_at_any_crash_point() {
    let (ops, mut images) = (script_ops(), 0);
    for at in 0..ops {
        let (disk, trace) = crashed_at(at);
        for cut in cuts(&disk, at as u64) {
            let image = disk.after_cut(cut);
            let found = recover(&image);
            trace.check(&found);
            images += 1;
        }
        trace.check(&recover(&disk.after_kill()));
        // Only the process died: what the next one builds on must have been made durable by it.
        let (disk, mut trace) = (disk.after_kill(), trace);
        let mut log = trace.open(&disk).unwrap();
        trace.append(&mut log, 1, 1).unwrap();
        trace.check(&recover(&disk.after_cut(Cut::AllLost)));
    }
    assert!(images > 8 * ops, "{images} images of {ops} crash points");
}

#[test]
fn a_crash_in_the_recovery_is_no_worse_than_one_before_it() {
    let mut points = 0;
    for at in (0..script_ops()).step_by(3) {
        let (disk, trace) = crashed_at(at);
        for cut in [Cut::AllLost, Cut::AllKept, Cut::Random(at as u64)] {
            let image = disk.after_cut(cut);
            let (_, expected) = open(&image.after_kill()).unwrap();
            trace.check(&expected);
            points += crash_in_recovery(&image, &expected, at as u64);
        }
    }
    assert!(points > 300, "{points} crash points in recoveries");
}

#[test]
fn files_of_zeros_are_put_away_without_a_gap_at_any_crash_point() {
    let (trace, mut files) = killed_log(12);
    files.extend((4..8).map(|number| (segment(number), vec![0; 1000])));
    let image = SimDisk::with_files(&files);
    let (_, expected) = open(&image.after_kill()).unwrap();
    trace.check(&expected);
    assert!(
        crash_in_recovery(&image, &expected, 0) >= 8,
        "four names are removed and synced"
    );
}

#[test]
fn every_change_of_a_name_is_made_durable_before_anything_else() {
    let disk = SimDisk::default();
    Trace::default().script(&disk, 0).unwrap();
    let ops = disk.ops();
    let mut changes = 0;
    for pair in ops.windows(2) {
        if matches!(pair[0].0, Op::Rename | Op::Remove) {
            changes += 1;
            assert_eq!(pair[1].0, Op::SyncDir, "after {:?}", pair[0]);
        }
    }
    assert!(
        changes > 10 && ops.iter().any(|(op, _)| *op == Op::Remove),
        "{changes} changes"
    );
}

#[test]
fn a_discarded_frame_never_comes_back_through_a_later_one() {
    for at in 0..script_ops() {
        let (disk, trace) = crashed_at(at);
        for seed in 0..3 {
            let mut trace = trace.clone();
            let mut disk = disk.after_cut(Cut::Random(seed + 1000 * at as u64));
            // The frame that takes the place of the discarded one is torn as well, repeatedly.
            for run in 1..4 {
                trace.open(&disk).unwrap();
                let opened = disk.after_cut(Cut::AllLost);
                let mut log = trace.open(&opened).unwrap();
                opened.set_fault(opened.ops().len() + 1, Fault::Crash);
                trace.append(&mut log, 1, run).unwrap_err();
                disk = opened.after_cut(Cut::Random(seed + run));
            }
            trace.open(&disk).unwrap();
        }
    }
}

#[test]
fn a_frame_that_was_read_back_is_on_the_disk_even_after_a_failed_sync() {
    let clean = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&clean).unwrap();
    let opened = clean.ops().len();
    trace.append(&mut log, 14, 0).unwrap();
    let mut read_back = 0;
    for at in opened..clean.ops().len() {
        let disk = SimDisk::default();
        disk.set_fault(at, Fault::SyncLoses);
        let mut trace = Trace::default();
        let mut log = trace.open(&disk).unwrap();
        if trace.append(&mut log, 14, 0).is_ok() {
            continue; // Not a sync of a file.
        }
        drop(log);
        // The process dies, the machine stays up: the next one reads what is in memory.
        let disk = disk.after_kill();
        let (log, found) = open(&disk).unwrap();
        trace.check(&found);
        read_back += usize::from(
            trace.in_flight.as_ref().map(|(lsn, _)| *lsn)
                == found.recovered.last.map(|durable| durable.lsn().get()),
        );
        drop(log);
        let (_, after_cut) = open(&disk.after_cut(Cut::AllLost)).unwrap();
        assert!(
            after_cut.frames == found.frames,
            "failed sync at operation {at}"
        );
        let mut log = trace.open(&disk).unwrap();
        trace.append(&mut log, 1, 1).unwrap();
        trace.check(&recover(&disk.after_cut(Cut::AllLost)));
    }
    assert!(
        read_back >= 14,
        "{read_back} unconfirmed frames were read back"
    );
}
