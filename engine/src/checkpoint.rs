//! The checkpointer: writes closed layers into the index, then gives their log segments back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use highwater_core::Domain;
use highwater_wal::Lsn;

use crate::apply::apply;
use crate::audit::Audit;
use crate::base::Base;
use crate::counters::Counters;
use crate::error::StorageError;
use crate::faults::{Fault, Faults};
use crate::index::{Index, IndexSnapshot, not_open};
use crate::layer::Layer;
use crate::shared::Shared;
use crate::tables::Applied;

/// How long to wait before a checkpoint that failed for want of space is tried again, and for the
/// last group of a closed layer to become durable.
const RETRY: Duration = Duration::from_millis(200);
const SETTLE: Duration = Duration::from_millis(2);

/// The one who owns the index.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    /// Dropped before what it tells its faults to.
    index: Option<Index>,
    shared: Arc<Shared>,
}

/// What became of an attempt.
enum Step {
    /// There is nothing to write.
    Idle,
    /// One layer was written.
    Done,
    /// Try again a little later.
    Later(Duration),
    /// Never again in this opening.
    Stop,
}

impl Checkpointer {
    /// Owns an opened index. From now on the store takes no more writes once reading or writing it
    /// fails, whoever finds that out.
    pub(crate) fn new(shared: Arc<Shared>, index: Index) -> Self {
        shared.watch_index(&index.faults());
        Self {
            index: Some(index),
            shared,
        }
    }

    /// Serves until the store stops; then writes what is left, unless the store is poisoned.
    pub(crate) fn run(mut self) {
        self.shared.checkpoint_signal.attach();
        let mut limit = None;
        while !self.shared.is_stopping() {
            self.shared.checkpoint_signal.wait(limit);
            limit = loop {
                match self.step() {
                    Step::Done => {}
                    Step::Idle | Step::Stop => break None,
                    Step::Later(wait) => break Some(wait),
                }
            };
        }
        if self.shared.latch.is_poisoned() {
            return;
        }
        self.shared
            .with_writer(|writer| writer.group.layer = self.shared.begin_layer(writer));
        while matches!(self.step(), Step::Done) {}
    }

    /// Writes the lowest layer, if it is closed and durable.
    fn step(&mut self) -> Step {
        if self.shared.latch.is_poisoned() {
            return Step::Stop;
        }
        let base = self.shared.base.load_full();
        let Some(layer) = base.layers.last().filter(|_| base.layers.len() > 1) else {
            return Step::Idle;
        };
        if layer
            .last_revision()
            .is_some_and(|last| last > self.shared.durable())
        {
            return Step::Later(SETTLE);
        }
        if let Some(step) = self.wait_for_room() {
            return step;
        }
        match self.write(&base, layer) {
            Ok(index) => {
                self.publish(index);
                self.shared.latch.set_index_away(false);
                self.shared.latch.set_index_full(false);
                self.recycle(layer);
                Counters::add(&self.shared.counters.checkpoints, 1);
                self.shared.judge_signal.raise();
                Step::Done
            }
            Err(error) => self.failed(&error),
        }
    }

    /// After an attempt that had no room, the next begins when there is some: each that fails
    /// closes the index for as long as redb takes to open it.
    fn wait_for_room(&self) -> Option<Step> {
        let index = self.index.as_ref()?;
        if !self.shared.latch.is_index_full() {
            return None;
        }
        match index.finds_room() {
            Ok(true) => None,
            Ok(false) => Some(Step::Later(RETRY)),
            Err(error) => {
                self.shared.lose_index(&error);
                Some(Step::Stop)
            }
        }
    }

    /// Applies the layer to the index; an empty one changes nothing.
    fn write(&self, base: &Base, layer: &Layer) -> Result<Option<IndexSnapshot>, StorageError> {
        let Some(last) = layer.last_revision() else {
            return Ok(None);
        };
        let index = self.index.as_ref().ok_or_else(not_open)?;
        let before = base.index.as_ref().map(|index| index.applied);
        let applied = Applied {
            destination: self.shared.destination,
            incarnation: self.shared.incarnation,
            revision: last,
            lsn: layer.last_lsn(),
            remembers_since: base.remembers_since,
            deletions: before.map_or(0, |before| before.deletions),
        };
        let domains = self.shared.domains.load();
        let new = |domain: &&Arc<Domain>| before.is_none() || domain.created_at > base.indexed;
        let domains: Vec<_> = domains.all_at(last).filter(new).cloned().collect();
        apply(
            index,
            layer,
            &domains,
            applied,
            self.shared.config.deletions_max,
        )?;
        index.believed()?;
        index.snapshot()
    }

    /// Puts the new index below the layers that are still open. `None` leaves the index as it is.
    fn publish(&self, index: Option<IndexSnapshot>) {
        self.shared.with_writer(|_| {
            let base = self.shared.base.load_full();
            let mut layers = base.layers.clone();
            layers.pop();
            let next = with_index(&base, layers, index);
            self.shared.base.store(Arc::new(next));
        });
    }

    /// Gives back the log up to the layer's end, except what watches may still ask for, and what
    /// the audit trail has no lines of yet.
    fn recycle(&self, layer: &Layer) {
        let kept = self
            .shared
            .history
            .oldest_lsn()
            .map_or(u64::MAX, |oldest| oldest - 1);
        let audited = self.shared.audit.as_ref().map_or(u64::MAX, Audit::through);
        let kept = kept.min(audited);
        let Some(through) = Lsn::from_raw(layer.last_lsn().min(kept)) else {
            return;
        };
        if let Err(error) = self.shared.pool.recycle_through(through) {
            tracing::warn!(%error, "log segments couldn't be recycled; the next checkpoint will");
        }
        self.shared.spare_signal.raise();
    }

    /// Only for want of space is a checkpoint tried again. Nothing had been written then: the index
    /// is opened anew, since it answers nothing any more, and the same layer is tried later. After
    /// a failed write or sync nobody knows what the disk holds, and the log may not be given back
    /// ever again; after a failed read or damage the next attempt would meet the same: poisoned.
    fn failed(&mut self, error: &StorageError) -> Step {
        let lacks_room = |index: &Index| index.faults().only_lacks_room();
        let Some(index) = self.index.take_if(|index| lacks_room(index)) else {
            self.shared.lose_index(error);
            return Step::Stop;
        };
        if self.shared.latch.set_index_full(true) {
            let needed_bytes = index.lacks();
            tracing::warn!(%error, needed_bytes, "no room for the checkpoint: data is refused");
        }
        self.shared.judge_signal.raise();
        let reopened = self.reopen(index);
        self.shared.latch.set_index_away(false);
        match reopened {
            Ok(()) => Step::Later(RETRY),
            Err(error) => {
                self.shared.lose_index(&error);
                Step::Stop
            }
        }
    }

    /// Until the new one is published under the writer's lock, whoever judges lets requests wait
    /// that need it.
    fn reopen(&mut self, index: Index) -> Result<(), StorageError> {
        let index = index.reopen()?;
        self.shared.watch_index(&index.faults());
        let snapshot = index.snapshot()?;
        self.index = Some(index);
        self.shared.with_writer(|_| {
            let base = self.shared.base.load_full();
            let next = with_index(&base, base.layers.clone(), snapshot);
            self.shared.base.store(Arc::new(next));
        });
        Ok(())
    }
}

/// A base with these layers over a new index; without a new one, over the old.
fn with_index(base: &Base, layers: Vec<Arc<Layer>>, index: Option<IndexSnapshot>) -> Base {
    match index {
        Some(index) => Base {
            layers,
            indexed: index.applied.revision,
            remembers_since: index.applied.remembers_since,
            index: Some(Arc::new(index)),
        },
        None => Base {
            layers,
            indexed: base.indexed,
            remembers_since: base.remembers_since,
            index: base.index.clone(),
        },
    }
}

impl Shared {
    /// Sees to it that the store stops writing once something is wrong with the index.
    fn watch_index(self: &Arc<Self>, faults: &Faults) {
        let shared = Arc::downgrade(self);
        faults.watch(Box::new(move |fault| match (fault, shared.upgrade()) {
            (Fault::Lost(error), Some(shared)) => shared.lose_index(error),
            // Whoever reads from now on knows that the index will be back.
            (Fault::NoRoom, Some(shared)) => shared.latch.set_index_away(true),
            (_, None) => {}
        }));
    }

    /// Latches that the index failed: nothing is judged on it, or given back of the log, any more.
    fn lose_index(&self, error: &StorageError) {
        self.stop_writing();
        tracing::error!(%error, "the index failed: no more writes are accepted until a reopen");
    }

    /// Whether the service threads have to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}
