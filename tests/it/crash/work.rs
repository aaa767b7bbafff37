//! The workload: commits of all kinds, one by one and in groups; checkpoints, rotations, openings.

use std::collections::BTreeMap;

use highwater::{Config, Store, Ticket};
use highwater_tests::chance::Chance;
use highwater_tests::disk::SimDisk;
use highwater_tests::model::Model;
use highwater_tests::raw::{Place, Request};
use highwater_tests::trace::{Event, Trace};

use crate::generate::{Shape, request};
use crate::support::{answer, create, model_of, open, opinion, place_of, policies, tight};

const SHAPE: Shape = Shape {
    value_bytes: 3_000,
    odd_one_in: 30,
};
/// Steps between two openings, and openings.
const STEPS: usize = 45;
const OPENINGS: usize = 4;

/// The settings of the store that is cut.
pub(super) fn config() -> Config {
    tight()
}

/// What was known outside at some moment, in revisions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// What was acknowledged, or shown.
    pub(super) acknowledged: u64,
    /// What was asked for and would be accepted.
    pub(super) asked: u64,
}

/// Marks carry a revision and, in the lowest bit, whether it was acknowledged.
const ACKNOWLEDGED: u64 = 1;

impl Known {
    /// Before the first mark a store without anything is being made.
    pub(super) const BEGINNING: Self = Self {
        acknowledged: 0,
        asked: 1 << 48,
    };

    /// Takes notice of a mark.
    pub(super) fn note(&mut self, event: Option<&Event>) {
        if let Some(Event::Mark(mark)) = event {
            let revision = mark >> 1;
            self.asked = self.asked.max(revision);
            if mark & ACKNOWLEDGED == ACKNOWLEDGED {
                self.acknowledged = revision;
            }
        }
    }
}

/// A workload that has been run.
pub(super) struct Work {
    trace: Trace,
    /// The state after each revision.
    pub(super) states: BTreeMap<u64, Model>,
    pub(super) place: Place,
    pub(super) checkpoints: u64,
    pub(super) refused: usize,
}

struct Runner {
    disk: SimDisk,
    store: Store,
    model: Model,
    states: BTreeMap<u64, Model>,
    chance: Chance,
    refused: usize,
}

impl Work {
    pub(super) fn run(seed: u64) -> Self {
        let disk = SimDisk::default();
        disk.record();
        let store = open(&disk, &config());
        let model = model_of(&store);
        let states = BTreeMap::from([(model.revision, model.clone())]);
        let mut runner = Runner {
            disk,
            store,
            model,
            states,
            chance: Chance::new(seed),
            refused: 0,
        };
        let place = place_of(&runner.store);
        runner.acknowledged();
        let mut checkpoints = 0;
        for opening in 0..OPENINGS {
            if opening < policies().len() {
                runner.create(opening);
            }
            for _ in 0..STEPS {
                runner.step();
            }
            checkpoints += runner.store.status().counted.checkpoints;
            runner.store.close().unwrap();
            runner.store = open(&runner.disk, &config());
            assert_eq!(runner.store.revision().get(), runner.model.revision);
            runner.acknowledged();
        }
        runner.store.close().unwrap();
        Self {
            trace: runner.disk.recorded(),
            states: runner.states,
            place,
            checkpoints,
            refused: runner.refused,
        }
    }

    pub(super) const fn trace(&self) -> &Trace {
        &self.trace
    }
}

impl Runner {
    fn acknowledged(&self) {
        self.disk.mark(self.model.revision << 1 | ACKNOWLEDGED);
    }

    fn create(&mut self, number: usize) {
        let (name, policy) = policies()[number];
        self.disk.mark((self.model.revision + 1) << 1);
        create(&self.store, &mut self.model, name, policy);
        self.states.insert(self.model.revision, self.model.clone());
        self.acknowledged();
    }

    /// Sends one commit, or a group that may share its syncs, and waits for the answers in order.
    fn step(&mut self) {
        let count = self.chance.pick(&[1, 1, 1, 4, 9]);
        let names: Vec<_> = self.model.worlds.keys().cloned().collect();
        let before = self.model.clone();
        let mut sent: Vec<(Request, Ticket)> = Vec::new();
        for _ in 0..count {
            let name = self.chance.pick(&names);
            let request = request(&mut self.chance, &self.model, &name, SHAPE);
            if self.model.judge(&request).is_ok() {
                self.model.apply(&request);
                self.states.insert(self.model.revision, self.model.clone());
            }
            self.disk.mark(self.model.revision << 1);
            let typed = request.typed().unwrap();
            sent.push((request, self.store.submit(typed).unwrap()));
        }
        let mut model = before;
        for (request, ticket) in sent {
            let expected = opinion(&model, &request);
            assert_eq!(answer(ticket.wait()), expected, "{request:?}");
            match model.judge(&request) {
                Ok(_) => {
                    model.apply(&request);
                }
                Err(_) => self.refused += 1,
            }
            self.disk.mark(model.revision << 1 | ACKNOWLEDGED);
        }
    }
}
