//! What a store says of itself.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use highwater_core::{Availability, DestinationId, Incarnation, Limits, Revision};

use crate::audit::{Audit, AuditFigures};
use crate::shared::Shared;

/// A store's identity, state and figures at one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// The destination's id.
    pub destination: DestinationId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The last durable revision.
    pub revision: Revision,
    /// The revision after which watches can begin.
    pub history_since: Revision,
    /// The revision from which on deletions are remembered.
    pub remembers_since: Revision,
    /// The revision up to which the index goes; what is later lies in the log.
    pub indexed: Revision,
    /// Whether effects are taken. A destination that can't write its audit trail, and refuses
    /// changes for that, shows as overloaded; `audit` says so.
    pub availability: Availability,
    /// The configured bounds.
    pub limits: Limits,
    /// How many domains there are.
    pub domains: u32,
    /// How many requests wait to be judged.
    pub queued: usize,
    /// Memory taken by effects that aren't in the index, in bytes, as estimated.
    pub memory_bytes: usize,
    /// How many snapshots are open.
    pub snapshots: usize,
    /// How many leases haven't been ended.
    pub leases: usize,
    /// How many callers wait in line for a guard.
    pub waiting: usize,
    /// The audit trail's figures; `None` where there is no trail.
    pub audit: Option<AuditFigures>,
    /// The log's files.
    pub log: LogFigures,
    /// What was counted since the store was opened.
    pub counted: Counted,
}

/// The log's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogFigures {
    /// Segments with frames, the active one included.
    pub segments: usize,
    /// Segments ready to be used.
    pub spares: usize,
    /// Bytes that all of them take on disk.
    pub disk_bytes: u64,
}

/// What was counted since the store was opened.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Requests accepted and made durable.
    pub accepted: u64,
    /// Steps of intents that were asked again and got the receipt of before.
    pub replayed: u64,
    /// Requests refused, by the code of the reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Requests whose outcome is unknown, and reads in the writer that failed.
    pub indeterminate: u64,
    /// Groups made durable; each cost one sync.
    pub groups: u64,
    /// Bytes of effects written to the log.
    pub log_bytes: u64,
    /// Checkpoints finished.
    pub checkpoints: u64,
}

impl Shared {
    /// The figures at this moment.
    pub(crate) fn status(&self) -> Status {
        let (base, revision) = self.now();
        let log = *self.log_figures.lock();
        let counters = &self.counters;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Status {
            destination: self.destination,
            incarnation: self.incarnation,
            revision,
            history_since: self.history.oldest(),
            remembers_since: base.remembers_since,
            indexed: base.indexed,
            availability: self.availability(),
            limits: self.config.limits,
            domains: self.domains.load().len(),
            queued: self.queue.len(),
            memory_bytes: base.layers.iter().map(|layer| layer.bytes()).sum(),
            snapshots: self.snapshots.len(),
            leases: self.leases.live(),
            waiting: self.leases.lines.waiting(),
            audit: self.audit.as_ref().map(Audit::figures),
            log: LogFigures {
                segments: log.segments,
                spares: self.pool.spares(),
                disk_bytes: log.disk_bytes,
            },
            counted: Counted {
                accepted: get(&counters.accepted),
                replayed: get(&counters.replayed),
                rejected: counters.rejected(),
                indeterminate: get(&counters.indeterminate),
                groups: get(&counters.groups),
                log_bytes: get(&counters.log_bytes),
                checkpoints: get(&counters.checkpoints),
            },
        }
    }

    /// Whether effects are taken, as far as the store itself is concerned.
    pub(crate) fn availability(&self) -> Availability {
        if self.latch.is_poisoned() {
            Availability::Poisoned
        } else if self.is_full() {
            Availability::DiskFull
        } else if self.audit.as_ref().is_some_and(Audit::is_refusing) {
            Availability::Overloaded
        } else {
            Availability::Ready
        }
    }
}
