//! Random histories of the real store on a simulated disk, against the model: every verdict with
//! its evidence, every state, what snapshots, pages and watches show.

mod concurrent;
mod ranges;
mod watching;

use std::collections::BTreeMap;

use highwater::{Config, Snapshot, Store};
use highwater_tests::chance::Chance;
use highwater_tests::disk::SimDisk;
use highwater_tests::model::Model;

use crate::generate::{Shape, request};
use crate::support::{commit_in_both, compare, create, model_of, open, policies, scale, tight};

const SHAPE: Shape = Shape {
    value_bytes: 600,
    odd_one_in: 30,
};

/// A store, the model beside it, and snapshots with the state that they must go on showing.
struct Pair {
    disk: SimDisk,
    config: Config,
    store: Store,
    model: Model,
    held: Vec<(Snapshot, Model)>,
    chance: Chance,
    /// The verdicts so far.
    trace: Vec<&'static str>,
}

impl Pair {
    fn new(seed: u64, config: Config) -> Self {
        let disk = SimDisk::default();
        let store = open(&disk, &config);
        let mut model = model_of(&store);
        for (name, policy) in policies() {
            create(&store, &mut model, name, policy);
        }
        Self {
            disk,
            config,
            store,
            model,
            held: Vec::new(),
            chance: Chance::new(seed),
            trace: Vec::new(),
        }
    }

    fn step(&mut self) {
        let chance = &mut self.chance;
        match chance.below(400) {
            0 => self.reopen(true),
            1 => self.reopen(false),
            2..8 => {
                let snapshot = self.store.snapshot().unwrap();
                self.held.push((snapshot, self.model.clone()));
            }
            8..12 if !self.held.is_empty() => {
                let at = chance.below(self.held.len());
                let (snapshot, model) = self.held.swap_remove(at);
                compare(&snapshot, &model);
            }
            _ => {
                let name = chance.pick(&policies()).0;
                let request = request(chance, &self.model, name, SHAPE);
                let verdict = commit_in_both(&self.store, &mut self.model, &request);
                self.trace.push(verdict);
            }
        }
    }

    /// Opens the store anew, closed in good order or as a killed process leaves it.
    fn reopen(&mut self, closed: bool) {
        self.held.clear();
        if closed {
            self.store.close().unwrap();
            self.store = open(&self.disk, &self.config);
        } else {
            let disk = SimDisk::with_files(&self.disk.files());
            self.store = open(&disk, &self.config);
            self.disk = disk;
        }
        compare(&self.store.snapshot().unwrap(), &self.model);
        self.trace.push("reopened");
    }
}

fn run(seed: u64, steps: u64, config: Config) -> Pair {
    let mut pair = Pair::new(seed, config);
    for _ in 0..steps {
        pair.step();
    }
    for (snapshot, model) in pair.held.drain(..) {
        compare(&snapshot, &model);
    }
    pair.reopen(true);
    pair
}

#[test]
fn random_histories_go_as_the_model_says() {
    let histories = scale("HIGHWATER_MODEL_HISTORIES", 24);
    let steps = scale("HIGHWATER_MODEL_STEPS", 1_500);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..histories {
        let mut config = tight();
        // Some remember few deletions, so that the store has to say that it doesn't know.
        config.deletions_max = if seed % 2 == 0 { 3 } else { 1_000_000 };
        let pair = run(seed, steps, config);
        for verdict in pair.trace {
            *outcomes.entry(verdict).or_default() += 1;
        }
    }
    // Histories that are refused throughout, or accepted throughout, would prove little.
    let all: usize = outcomes.values().sum();
    assert!(outcomes["Accepted"] * 6 > all, "{outcomes:?}");
    for code in [
        "Malformed",
        "WrongDestination",
        "UnknownDomain",
        "AuthorityRequired",
        "PreconditionRequired",
        "UnknownEpoch",
        "StaleTerm",
        "HolderConflict",
        "SequenceJump",
        "WrongHolder",
        "ConditionFailed",
        "TooOld",
        "Replayed",
        "IntentConflict",
        "IntentClosed",
        "UnknownIntent",
        "reopened",
    ] {
        assert!(outcomes.contains_key(code), "no {code} in {outcomes:?}");
    }
}

#[test]
fn one_seed_is_one_history() {
    let traced = |seed| run(seed, 300, tight()).trace;
    assert_eq!(traced(1), traced(1));
    assert_ne!(traced(1), traced(2));
}
