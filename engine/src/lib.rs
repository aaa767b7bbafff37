//! Highwater: a durable key-value store that fences.
//!
//! A lease or a leader election says who *should* write now. It can't reach into a paused process:
//! the old holder wakes up and writes anyway. Only the place where the effect happens can stop it.
//! This store is that place. For each guard (a key, a path prefix, or a whole domain) it remembers
//! the highest term that it accepted and whose that was; every write is judged against it in the
//! commit path, in one atomic, durable step.
//!
//! * [`Store`] opens, commits, reads and closes; see its example.
//! * [`Commit`] is what is asked, [`Receipt`] the answer, [`Rejection`] the refusal with evidence.
//! * [`Snapshot`] reads at one revision, [`Watch`] follows from one.
//! * The rules are in the package `highwater-core`, in one pure function.
//!
//! What is acknowledged is on disk. A rejection is released only when the state that it was judged
//! on is on disk, too. Reads show durable state alone, and every commit acknowledged before.

mod apply;
mod audit;
mod backend;
mod base;
mod checkpoint;
mod clock;
mod commit;
mod config;
mod counters;
mod digest;
mod domains;
mod error;
mod faults;
mod group;
mod history;
mod hot;
mod identity;
mod index;
mod judge;
mod latch;
mod layer;
mod leases;
mod listing;
mod lock;
mod merge;
mod queue;
mod reconcile;
mod recovery;
mod replay;
mod room;
mod shared;
mod sizes;
mod snapshot;
mod status;
mod store;
mod sums;
mod tables;
mod take_over;
mod threads;
mod ticket;
mod versions;
mod wait;
mod watch;
mod weight;
mod writer;

pub use highwater_core::{
    Admission, Authorities, Authority, AuthorityError, Availability, Binding, BindingSummary,
    Commit, Condition, Configuration, DestinationId, Digest, Domain, DomainId, DomainName,
    DomainState, Effects, EndCause, Ending, Epoch, EpochEntry, EpochMark, EpochNumber, EpochTable,
    ExpectedDestination, Fence, Finding, Generation, Grant, Guard, GuardReceipt, GuardRule,
    GuardedRead, Holder, HolderBinding, Identity, Incarnation, IncarnationMark, IncarnationNumber,
    Input, InputName, InputReceipt, IntentConflict, IntentId, IntentRecord, IntentState,
    IntentStep, IntentSummary, IntentUse, Key, KeyRange, Lease, LeaseClock, LeaseEnd, LeaseId,
    LeaseReceipt, LeaseRecord, LeaseStanding, Limits, Malformed, Metadata, MetadataError,
    Metageneration, Mutation, NameError, Observed, ObservedIntent, ObservedLease, Owner, Policy,
    PolicyError, Prefix, Reason, Receipt, Record, Rejection, Revision, Rule, Sequence, Step,
    StepRecord, StepSummary, Term, Terms, Ttl, Unavailable, Value, Work, WriteReceipt, escape,
    unescape,
};
pub use highwater_wal::{Disk, DiskFile, LogError, OsDisk, SaltSource};

pub use audit::{
    AuditConfig, AuditFailure, AuditFault, AuditFigures, AuditVerified, AuditVerifyError,
    audit_files, verify_audit, verify_audit_on,
};
pub use config::{Config, ConfigError};
pub use digest::digest;
pub use error::{Error, ErrorKind, OpenError, StorageError};
pub use leases::{Acquire, Line};
pub use listing::{IntentPage, LeasePage};
pub use reconcile::{Found, Reconcile, Reconciled};
pub use snapshot::{PAGE_BYTES_MAX, PAGE_ROWS_MAX, Page, Snapshot};
pub use status::{Counted, LogFigures, Status};
pub use store::Store;
pub use take_over::{TakeOver, TakenOver};
pub use ticket::Ticket;
pub use watch::{Watch, WatchChange, WatchEvent, WatchRequest};

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
