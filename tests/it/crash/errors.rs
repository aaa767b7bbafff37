//! Devices that fail: every operation of a workload once, or from there on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use highwater::{Admission, Availability, Error, OpenError, Store};
use highwater_tests::chance::Chance;
use highwater_tests::disk::{CHANGING, Fault, Files, Op, SimDisk};
use highwater_tests::history::Answer;
use highwater_tests::model::Model;
use highwater_tests::raw::{Change, Cond, Request};
use highwater_tests::seen;
use highwater_tests::trace::Cut;

use super::config;
use crate::support::{
    answer, by_component, compare, create, domain, key, model_of, open, opinion, policy, scale,
};

const COMMITS: usize = 70;
const NAME: &str = "d";
/// How long what was noticed in the background may take to show; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(30);

/// The workload's requests: mostly values large enough to rotate segments and ask for checkpoints.
pub(super) fn request(chance: &mut Chance) -> Request {
    let key = format!("k/{}", chance.below(12)).into_bytes();
    let request = Request::of(
        NAME,
        vec![match chance.below(8) {
            0 => Change::Delete(key.clone()),
            _ => Change::Put(
                key.clone(),
                vec![b'v'; 500 + chance.below(4_000)],
                String::new(),
            ),
        }],
    );
    match chance.below(4) {
        0 => request.when(Cond::GenerationIs(key, 0)),
        _ => request,
    }
}

/// A store on a disk that fails, and what is known of it.
struct Endured {
    disk: SimDisk,
    store: Store,
    model: Model,
    /// The states that may be found: the acknowledged one, and one that is in doubt.
    states: BTreeMap<u64, Model>,
    dead: bool,
    /// What fails.
    op: Op,
    /// Whether reads may fail; a wrong answer is never allowed.
    blind: bool,
}

/// Opens on a failing disk. A refusal to open has lost nothing: once the disk is well it opens.
fn open_on_failing(disk: &SimDisk, healthy: &Files) -> Option<Store> {
    match Store::open_on(Arc::new(disk.clone()), config()) {
        Ok(store) => Some(store),
        Err(error) => {
            let typed = matches!(
                error,
                OpenError::Io { .. } | OpenError::Log(_) | OpenError::Index(_)
            );
            assert!(typed, "{error:?}");
            let expected = open(&SimDisk::with_files(healthy), &config()).revision();
            disk.heal();
            for files in images(disk) {
                let store = open(&SimDisk::with_files(&files), &config());
                assert_eq!(store.revision(), expected, "after {error}");
            }
            None
        }
    }
}

/// What a killed process, and what a power cut, may leave.
fn images(disk: &SimDisk) -> Vec<Files> {
    let live = disk.files();
    let trace = disk.recorded();
    let mut cursor = trace.replay();
    while cursor.step().is_some() {}
    let cuts = Cut::each(trace.events().len() as u64);
    std::iter::once(live)
        .chain(cuts.map(|cut| cursor.image(cut)))
        .collect()
}

impl Endured {
    fn step(&mut self, request: &Request) {
        let verdict = self.store.commit(request.typed().unwrap());
        match verdict {
            Err(Error::Indeterminate) => {
                assert!(!self.dead, "only what was in flight is in doubt");
                self.dead = true;
                let mut doubtful = self.model.clone();
                doubtful.apply(request);
                self.states.insert(doubtful.revision, doubtful);
            }
            Err(Error::Rejected(rejection)) if rejection.reason.code() == "Poisoned" => {
                self.dead = true;
            }
            Err(Error::Storage(_)) => assert!(self.blind, "a read failed"),
            // Space that can't be had for whatever reason: refused, and nothing in doubt.
            Err(Error::Rejected(rejection)) if rejection.reason.code() == "DiskFull" => {
                assert!(self.blind || self.op == Op::Allocate, "full for nothing");
            }
            verdict => {
                assert!(!self.dead, "{verdict:?} after a failed sync");
                let expected = opinion(&self.model, request);
                assert_eq!(answer(verdict), expected);
                if let Answer::Accepted(_) = expected {
                    self.model.apply(request);
                    self.states = BTreeMap::from([(self.model.revision, self.model.clone())]);
                }
            }
        }
        let name = request.changes[0].key().unwrap();
        match self.store.get(&domain(NAME), &key(name)) {
            Ok(found) => {
                let expected = self.model.worlds[NAME].rows.get(name);
                assert_eq!(found.as_deref().map(seen::row).as_ref(), expected);
            }
            Err(error) => assert!(self.blind, "a read failed: {error}"),
        }
    }

    /// The process ends, the disk is well again, and what is there is opened.
    fn end(self) {
        if self.dead && !self.blind {
            assert_eq!(self.store.status().availability, Availability::Poisoned);
            compare(&self.store.snapshot().unwrap(), &self.model);
            assert!(
                self.store.close().is_err(),
                "a poisoned store isn't closed well"
            );
        }
        // Work in the background goes on until here, and may fail as well.
        drop(self.store);
        self.disk.heal();
        for files in images(&self.disk) {
            let store = open(&SimDisk::with_files(&files), &config());
            let found = store.revision().get();
            let state = self.states.get(&found);
            let state = state.unwrap_or_else(|| panic!("{found} was found"));
            compare(&store.snapshot().unwrap(), state);
        }
    }
}

/// Runs the workload with a fault. Whether it struck.
fn endure(fault: &Fault, healthy: &Files, model: &Model) -> bool {
    let disk = SimDisk::with_files(healthy);
    disk.record();
    disk.plant(fault.clone());
    let Some(store) = open_on_failing(&disk, healthy) else {
        return true;
    };
    let mut endured = Endured {
        disk: disk.clone(),
        store,
        model: model.clone(),
        states: BTreeMap::from([(model.revision, model.clone())]),
        dead: false,
        op: fault.op,
        blind: fault.op == Op::Read || fault.op == Op::Open,
    };
    let mut chance = Chance::new(3);
    for _ in 0..COMMITS {
        endured.step(&request(&mut chance));
    }
    // A failed sync of the log can't be waited out.
    if fault.op == Op::SyncData && fault.file == "log-" && disk.failures() > 0 {
        let begun = Instant::now();
        while !endured.dead {
            assert!(begun.elapsed() < LIMIT, "a failed sync isn't noticed");
            endured.step(&request(&mut chance));
        }
    }
    assert!(!endured.dead || disk.failures() > 0, "poisoned for nothing");
    endured.end();
    disk.failures() > 0
}

/// A store with something in it, closed.
pub(super) fn healthy() -> (Files, Model) {
    let disk = SimDisk::default();
    let store = open(&disk, &config());
    let mut model = model_of(&store);
    create(
        &store,
        &mut model,
        NAME,
        policy(by_component(1), Admission::Open),
    );
    let mut chance = Chance::new(1);
    for _ in 0..30 {
        let request = request(&mut chance);
        assert_eq!(
            answer(store.commit(request.typed().unwrap())),
            opinion(&model, &request)
        );
        if model.judge(&request).is_ok() {
            model.apply(&request);
        }
    }
    store.close().unwrap();
    (disk.files(), model)
}

/// How often each operation is done when nothing fails.
fn counts(healthy: &Files) -> BTreeMap<Op, u64> {
    let disk = SimDisk::with_files(healthy);
    let store = open(&disk, &config());
    let mut chance = Chance::new(3);
    for _ in 0..COMMITS {
        let _verdict = store.commit(request(&mut chance).typed().unwrap());
    }
    store.close().unwrap();
    let count = |op: Op| (op, disk.count(op));
    let reading = [count(Op::Read), count(Op::Open)];
    CHANGING.map(count).into_iter().chain(reading).collect()
}

#[test]
fn no_failure_of_the_device_is_taken_for_success() {
    let points = scale("HIGHWATER_ERROR_POINTS", 12);
    let (files, model) = healthy();
    let mut struck: BTreeMap<Op, u64> = BTreeMap::new();
    for (op, count) in counts(&files) {
        let step = (count / points).max(1);
        for nth in (1..=count).step_by(usize::try_from(step).unwrap()) {
            for file in ["", "log-", "index"] {
                for sticky in [false, true] {
                    let fault = Fault {
                        op,
                        file,
                        nth,
                        sticky,
                    };
                    *struck.entry(op).or_default() += u64::from(endure(&fault, &files, &model));
                }
            }
        }
    }
    for (op, count) in &struck {
        let often = [Op::Write, Op::SyncData, Op::Read].contains(op);
        assert!(*count >= if often { points } else { 1 }, "{struck:?}");
    }
    println!("{struck:?}");
}

#[test]
fn a_store_is_not_made_on_a_failing_device_or_it_is_whole() {
    for op in CHANGING {
        for nth in 1..=12 {
            let disk = SimDisk::default();
            disk.record();
            disk.plant(Fault {
                op,
                file: "",
                nth,
                sticky: false,
            });
            let made = Store::open_on(Arc::new(disk.clone()), config());
            let told = made.as_ref().ok().map(|store| store.status().destination);
            drop(made);
            for files in images(&disk) {
                let disk = SimDisk::with_files(&files);
                let store = open(&disk, &config());
                if let Some(told) = told {
                    assert_eq!(store.status().destination, told, "{op:?} {nth}");
                }
                let mut model = model_of(&store);
                create(
                    &store,
                    &mut model,
                    NAME,
                    policy(by_component(1), Admission::Open),
                );
                store.close().unwrap();
                compare(&open(&disk, &config()).snapshot().unwrap(), &model);
            }
        }
    }
}
