//! Power cuts, device errors and full disks, at each operation of a workload.
//!
//! The workload runs once and the disk remembers all that is done to it. Then the power goes at one
//! operation after the other, in every way that it can, and what is left is opened.

mod descriptors;
mod errors;
mod full;
mod leases;
mod rotated;
mod twice;
mod work;

use highwater::Store;
use highwater_tests::chance::Chance;
use highwater_tests::disk::{Fault, Files, Op, SimDisk};
use highwater_tests::raw::{Auth, Change, Request};
use highwater_tests::trace::{Cut, Event, Trace};

use self::work::{Known, Work, config};
use crate::support::{compare, open, place_of, scale};

/// Opens what a cut has left, and checks it against what was known at that moment. Gives the
/// revision that was found.
fn examine(files: &Files, work: &Work, known: Known) -> (Store, SimDisk, u64) {
    let disk = SimDisk::with_files(files);
    disk.record();
    let store = open(&disk, &config());
    disk.mark(0);
    let found = store.revision().get();
    assert!(
        known.acknowledged <= found && found <= known.asked,
        "revision {found} was found, {known:?}"
    );
    compare(&store.snapshot().unwrap(), &work.states[&found]);
    if known.acknowledged > 0 {
        assert_eq!(place_of(&store), work.place);
    }
    (store, disk, found)
}

/// What must hold of a store that came back: it goes on counting, and lets nobody in who was fenced
/// out.
fn probe(store: &Store, work: &Work, found: u64) {
    let model = &work.states[&found];
    let Some((name, world)) = model
        .worlds
        .iter()
        .find(|(_, world)| !world.fences.is_empty())
    else {
        return;
    };
    let mut fences = world.fences.iter();
    let Some((guard, fence)) = fences.find(|(_, fence)| fence.sequence > 1) else {
        return;
    };
    let older = Auth {
        sequence: fence.sequence - 1,
        ..fence.clone()
    };
    let mut request = Request::of(name, vec![Change::Advance(guard.clone())]).under(older);
    request.caller = Some(fence.holder.clone());
    let refused = store.commit(request.typed().unwrap()).unwrap_err();
    assert_eq!(refused.rejection().unwrap().reason.code(), "StaleTerm");
    let request = request.under(fence.clone());
    let accepted = store.commit(request.typed().unwrap()).unwrap();
    assert_eq!(accepted.revision.get(), found + 1);
}

/// The moments at which the power goes: every one that changes names or lengths, and as many of the
/// others as there is time for, evenly spread.
fn moments(trace: &Trace, others: usize) -> Vec<usize> {
    let is_rare = |event: &Event| {
        !matches!(
            event,
            Event::Write(..) | Event::Sync(_) | Event::Mark(_) | Event::SyncDir
        )
    };
    let step = (trace.events().len() / others).max(1);
    let events = trace.events().iter().enumerate();
    let chosen = events.filter(|(at, event)| is_rare(event) || at % step == 0);
    chosen.map(|(at, _)| at).collect()
}

#[test]
fn a_power_cut_at_any_moment_leaves_a_prefix_with_all_that_was_acknowledged() {
    let seeds = scale("HIGHWATER_CRASH_SEEDS", 3);
    let others = usize::try_from(scale("HIGHWATER_CRASH_POINTS", 250)).unwrap();
    let mut images = 0;
    for seed in 0..seeds {
        let work = Work::run(seed);
        let trace = work.trace();
        let mut chance = Chance::new(seed);
        let mut wanted = moments(trace, others).into_iter().peekable();
        let mut cursor = trace.replay();
        let mut known = Known::BEGINNING;
        for at in 0..=trace.events().len() {
            if wanted.next_if_eq(&at).is_some() || at == trace.events().len() {
                for cut in Cut::each(chance.bits()) {
                    let (store, disk, found) = examine(&cursor.image(cut), &work, known);
                    images += 1 + twice::cut_again(&store, &disk, &work, known, found, &mut chance);
                }
            }
            known.note(cursor.step());
        }
    }
    assert!(images >= 1_000 * seeds, "{images} images");
    println!("{images} images");
}

/// The check itself: where the device lies about what is durable, some cut must be noticed.
#[test]
fn a_device_that_lies_is_noticed() {
    let work = Work::run(1);
    let lies: [fn(&Event) -> bool; 2] = [
        |event| matches!(event, Event::Sync(_)),
        |event| matches!(event, Event::SyncDir),
    ];
    for lie in lies {
        let told = work.trace().without(lie);
        let count = told.events().len() / 2;
        let mut known = Known::BEGINNING;
        for event in &told.events()[..count] {
            known.note(Some(event));
        }
        let image = told.image(count, Cut::AllLost);
        let examined = std::panic::catch_unwind(|| examine(&image, &work, known));
        assert!(examined.is_err());
    }
}

#[test]
fn the_workload_reaches_every_part_of_the_store() {
    let work = Work::run(0);
    let count = |wanted: fn(&Event) -> bool| {
        let events = work.trace().events().iter();
        events.filter(|event| wanted(event)).count()
    };
    assert!(count(|event| matches!(event, Event::Create(..))) >= 4);
    assert!(
        count(|event| matches!(event, Event::Rename(..))) >= 4,
        "segments are reused"
    );
    assert!(count(|event| matches!(event, Event::SyncDir)) >= 4);
    assert!(work.checkpoints >= 6, "{} checkpoints", work.checkpoints);
    assert!(work.states.len() > 150, "{} states", work.states.len());
    assert!(work.refused > 20, "{} refused", work.refused);
}

/// The disk itself: what is synced stays, what isn't may go, in each of the ways.
#[test]
fn a_cut_takes_what_is_not_synced_and_nothing_else() {
    use highwater::Disk;
    let disk = SimDisk::default();
    disk.record();
    let file = disk.create("a").unwrap();
    file.write_all_at(0, &[1; 2_048]).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir().unwrap();
    file.write_all_at(0, &[2; 2_048]).unwrap();
    disk.create("b").unwrap();
    let trace = disk.recorded();
    let end = trace.events().len();
    let image = |count, cut| trace.image(count, cut);
    assert_eq!(image(3, Cut::AllLost).len(), 0, "the name isn't durable");
    assert_eq!(image(3, Cut::AllKept)["a"], [1; 2_048]);
    let lost = image(end, Cut::AllLost);
    assert_eq!((lost.len(), &lost["a"][..]), (1, &[1; 2_048][..]));
    let kept = image(end, Cut::AllKept);
    assert_eq!((kept.len(), &kept["a"][..]), (2, &[2; 2_048][..]));
    let mut mixed = false;
    for seed in 0..20 {
        let torn = &image(end, Cut::Torn(seed))["a"];
        let ends = torn.iter().position(|byte| *byte == 1).unwrap();
        assert!(torn[ends..].iter().all(|byte| *byte == 1));
        let sectors = &image(end, Cut::Sectors(seed))["a"];
        assert!(
            sectors
                .chunks(512)
                .all(|s| s.iter().all(|byte| *byte == s[0]))
        );
        mixed |= sectors.contains(&1) && sectors.contains(&2);
        assert_eq!(
            image(end, Cut::Sectors(seed)),
            image(end, Cut::Sectors(seed))
        );
    }
    assert!(mixed);
    disk.plant(Fault {
        op: Op::SyncData,
        file: "a",
        nth: 1,
        sticky: false,
    });
    disk.record();
    file.write_all_at(0, &[3; 512]).unwrap();
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    let trace = disk.recorded();
    let after = trace.image(trace.events().len(), Cut::AllLost);
    assert_eq!(
        after["a"][..512],
        [2; 512],
        "what a failed sync lost, no later one saves"
    );
}
