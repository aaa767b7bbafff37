//! What the threads of a store share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use highwater_core::{
    Availability, DestinationId, DestinationView, Fence, Guard, Incarnation, IntentId,
    IntentRecord, Key, LeaseRecord, Record, Revision,
};
use highwater_core::{DomainId, Observed, Reason, Rejection, Unavailable, View};
use highwater_wal::{FrameBuf, Lacking, Log, LogStatus, SegmentPool};
use parking_lot::Mutex;

use crate::audit::Audit;
use crate::base::Base;
use crate::config::Config;
use crate::counters::Counters;
use crate::domains::Domains;
use crate::error::Error;
use crate::group::Group;
use crate::history::History;
use crate::hot::Hot;
use crate::latch::Latch;
use crate::layer::Slot;
use crate::leases::Leases;
use crate::queue::{Pending, Queue};
use crate::room::Room;
use crate::snapshot::Registry;
use crate::wait::Signal;

/// How many frame buffers are kept for reuse: one being written, one being filled.
const BUFFERS_MAX: usize = 2;
/// Beside the records, the latest fences, intents and leases have such a part of the memory that is
/// set for hot rows each.
const HOT_FENCES_SHARE: usize = 4;
const HOT_INTENTS_SHARE: usize = 4;
const HOT_LEASES_SHARE: usize = 4;
/// A frame buffer that has grown beyond this isn't kept.
const BUFFER_BYTES_MAX: usize = 4 << 20;

/// Everything of a store that is used from more than one thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) destination: DestinationId,
    pub(crate) incarnation: Incarnation,
    /// The state; replaced only under the lock of [`Shared::writer`].
    pub(crate) base: ArcSwap<Base>,
    pub(crate) domains: ArcSwap<Domains>,
    durable: AtomicU64,
    pub(crate) queue: Queue,
    pub(crate) writer: Mutex<Writer>,
    /// How many answers the open group holds.
    pub(crate) open_answers: AtomicUsize,
    /// Whether the writer stopped because the open group, the memory or the log was full.
    pub(crate) blocked: AtomicBool,
    pub(crate) log: Mutex<Option<Log>>,
    /// Whether somebody is making groups durable, and will judge what waits before the next one.
    pub(crate) syncing: AtomicBool,
    pub(crate) pool: Arc<SegmentPool>,
    pub(crate) room: Room,
    /// The log's figures after its last append.
    pub(crate) log_figures: Mutex<LogStatus>,
    pub(crate) buffers: Mutex<Vec<FrameBuf>>,
    pub(crate) judge_signal: Signal,
    pub(crate) log_signal: Signal,
    pub(crate) checkpoint_signal: Signal,
    pub(crate) spare_signal: Signal,
    pub(crate) leases: Leases,
    /// Set once the service threads have to end.
    pub(crate) stopping: AtomicBool,
    pub(crate) latch: Latch,
    pub(crate) history: History,
    pub(crate) snapshots: Registry,
    pub(crate) counters: Counters,
    /// The audit trail, where there is one.
    pub(crate) audit: Option<Audit>,
}

/// What only the one who judges uses, under its lock.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The last revision judged; ahead of what is durable.
    pub(crate) revision: Revision,
    pub(crate) hot_records: Hot<(DomainId, Key), HotRow>,
    pub(crate) hot_fences: Hot<(DomainId, Guard), Option<Fence>>,
    pub(crate) hot_intents: Hot<(DomainId, IntentId), Option<Arc<IntentRecord>>>,
    pub(crate) hot_leases: Hot<(DomainId, Guard), Option<Arc<LeaseRecord>>>,
    pub(crate) group: Group,
    pub(crate) inbox: VecDeque<Pending>,
    /// Somebody judges, and has only let others have the lock for a moment.
    pub(crate) judging: bool,
    /// Log bytes written since the layer below was begun.
    pub(crate) log_bytes: u64,
}

/// The latest state of a key, and where its layer keeps it.
#[derive(Debug)]
pub(crate) struct HotRow {
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) slot: Option<Slot>,
}

impl Shared {
    /// The last durable revision.
    pub(crate) fn durable(&self) -> Revision {
        let raw = self.durable.load(Ordering::SeqCst);
        Revision::new(raw).unwrap_or(Revision::start(self.incarnation.number()))
    }

    /// Publishes that all effects up to a revision are durable.
    pub(crate) fn set_durable(&self, revision: Revision) {
        self.durable.store(revision.get(), Ordering::SeqCst);
    }

    /// The destination as a view shows it.
    pub(crate) fn destination_view(
        &self,
        base: &Base,
        revision: Revision,
        availability: Availability,
    ) -> DestinationView {
        DestinationView {
            id: self.destination,
            incarnation: self.incarnation,
            revision,
            remembers_since: base.remembers_since,
            availability,
            limits: self.config.limits,
        }
    }

    /// A refusal that says no more than the durable state does.
    pub(crate) fn unavailable(&self, why: Unavailable) -> Error {
        let base = self.base.load();
        let view = self.destination_view(&base, self.durable(), Availability::Ready);
        let observed = Observed::of(&View::new(view, None));
        Error::Rejected(Box::new(Rejection {
            reason: Reason::Unavailable(why),
            observed,
        }))
    }

    /// Whether a place that data must go to has no space now.
    pub(crate) fn is_full(&self) -> bool {
        self.latch.is_index_full() || self.pool.lacking() == Some(Lacking::Space)
    }

    /// A cleared frame buffer.
    pub(crate) fn buffer(&self) -> FrameBuf {
        self.buffers.lock().pop().unwrap_or_default()
    }

    /// Keeps a frame buffer for reuse, unless it is large or there are enough.
    pub(crate) fn keep_buffer(&self, buffer: FrameBuf) {
        let mut buffers = self.buffers.lock();
        if buffers.len() < BUFFERS_MAX && buffer.len() <= BUFFER_BYTES_MAX {
            buffers.push(buffer);
        }
    }

    /// Puts a store together from what recovery found.
    pub(crate) fn assemble(parts: Parts) -> Self {
        let Parts {
            config,
            destination,
            incarnation,
            ..
        } = parts;
        let Parts {
            base,
            domains,
            revision,
            log,
            log_bytes,
            history,
            leases,
            audit,
            ..
        } = parts;
        let layer = base.layers.first().map(Arc::clone).unwrap_or_default();
        let writer = Writer {
            revision,
            hot_records: Hot::new(config.hot_bytes),
            hot_fences: Hot::new(config.hot_bytes / HOT_FENCES_SHARE),
            hot_intents: Hot::new(config.hot_bytes / HOT_INTENTS_SHARE),
            hot_leases: Hot::new(config.hot_bytes / HOT_LEASES_SHARE),
            group: Group::new(layer, FrameBuf::new()),
            inbox: VecDeque::new(),
            judging: false,
            log_bytes,
        };
        let pool = log.pool();
        let room = Room::default();
        let status = log.status();
        room.set_active_left(status.active_bytes_left);
        Self {
            queue: Queue::new(&config),
            snapshots: Registry::new(config.snapshots_max, config.snapshot_age),
            config,
            destination,
            incarnation,
            base: ArcSwap::from_pointee(base),
            domains: ArcSwap::from_pointee(domains),
            durable: AtomicU64::new(revision.get()),
            writer: Mutex::new(writer),
            open_answers: AtomicUsize::new(0),
            blocked: AtomicBool::new(false),
            log: Mutex::new(Some(log)),
            syncing: AtomicBool::new(false),
            pool,
            room,
            log_figures: Mutex::new(status),
            buffers: Mutex::new(Vec::new()),
            judge_signal: Signal::default(),
            log_signal: Signal::default(),
            checkpoint_signal: Signal::default(),
            spare_signal: Signal::default(),
            leases,
            stopping: AtomicBool::new(false),
            latch: Latch::default(),
            history,
            counters: Counters::default(),
            audit,
        }
    }
}

/// What recovery found.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) destination: DestinationId,
    pub(crate) incarnation: Incarnation,
    pub(crate) base: Base,
    pub(crate) domains: Domains,
    pub(crate) revision: Revision,
    pub(crate) log: Log,
    /// Log bytes that the index doesn't have yet.
    pub(crate) log_bytes: u64,
    pub(crate) history: History,
    pub(crate) leases: Leases,
    pub(crate) audit: Option<Audit>,
}
