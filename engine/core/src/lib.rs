//! The decision core of Highwater: every rule of fencing, and nothing else.
//!
//! The core is pure. It has no files, threads, clocks or randomness (the package is `no_std` with
//! `alloc` and has no dependency), so that the same judge can drive any backend and any test.
//!
//! ```text
//!            Footprint (which rows?)
//!   Commit ──────────────────────────▶ shell fetches rows ──▶ View
//!      │                                                       │
//!      └──────────────▶ decide(&View, &Commit) ◀───────────────┘
//!                            │
//!     Rejected(Rejection)    │    Replayed(receipt of the step's first time)
//!                            │
//!              Accepted { effect, receipt }
//!                            │
//!                    log, sync, then apply(effect): fold, no rule, no failure
//! ```
//!
//! * [`decide`] owns the order of the nine steps; each step is a straight-line function.
//! * [`Authority::standing`] is the only comparison of two authorities in the whole product.
//! * An [`Effect`] can be made only by a decision or by decoding one that was logged.
//! * [`State`] is the whole safety state as plain values: the reference for every backend.
//!
//! # Example
//!
//! ```
//! use highwater_core::{
//!     Authority, Commit, CreateDomain, DestinationId, DomainName, EpochMark, Incarnation,
//!     IncarnationMark, IncarnationNumber, Key, Limits, Policy, State, Value, Verdict,
//! };
//!
//! let incarnation = Incarnation::new(IncarnationNumber::FIRST, IncarnationMark::new(7));
//! let mut state = State::new(DestinationId::new([1; 16]), incarnation, Limits::default());
//! let jobs = DomainName::new("jobs")?;
//! state.create_domain(&CreateDomain::new(jobs.clone(), Policy::default(), EpochMark::new(9)));
//!
//! let newer = Authority::parse("1.0000000000000009/42@b")?;
//! let stale = Authority::parse("1.0000000000000009/41@a")?;
//! let (key, value) = (Key::new("job/1")?, Value::new("done")?);
//! let put = Commit::new(jobs).put(key, value);
//! assert!(matches!(state.commit(&put.clone().under(newer)), Verdict::Accepted(_)));
//! assert!(matches!(state.commit(&put.under(stale)), Verdict::Rejected(_)));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
#![no_std]
#![deny(clippy::arithmetic_side_effects)]

extern crate alloc;

mod accept;
mod authority;
pub mod codec;
mod command;
mod conditions;
mod counters;
mod decide;
mod domain;
mod duplicates;
mod effect;
mod granting;
mod guard;
mod intent;
mod intents;
mod invariant;
mod invariant_lease;
mod lease;
mod lease_clock;
mod lease_text;
mod leases;
pub mod limits;
mod metadata;
mod names;
mod policy;
mod receipt;
mod reconcile;
mod record;
mod rejection;
mod rejection_text;
mod rules;
mod state;
mod summary;
mod text;
mod view;

pub use authority::{Authority, AuthorityError, Fence, Standing, Term};
pub use command::{
    Authorities, Commit, Condition, CreateDomain, ExpectedDestination, GuardedRead, Mutation,
};
pub use counters::{
    DestinationId, DomainId, Epoch, EpochMark, EpochNumber, Generation, Incarnation,
    IncarnationMark, IncarnationNumber, LeaseId, Metageneration, Revision, Sequence,
};
pub use decide::{Accepted, Verdict, admit_read, create_domain, decide};
pub use domain::{Domain, DomainState, EpochEntry, EpochStanding, EpochTable};
pub use effect::{Change, Effect, FenceChange, IntentChange, LeaseChange, RecordChange};
pub use guard::KeySpan;
pub use intent::{
    Binding, Ending, Input, IntentRecord, IntentState, IntentStep, IntentUse, Step, StepRecord,
    Work,
};
pub use invariant::{
    Violation, check_domain, check_effect, check_fence, check_intent, check_record,
};
pub use invariant_lease::check_lease;
pub use lease::{EndCause, Grant, Lease, LeaseEnd, LeaseRecord, LeaseStanding, ObservedLease, Ttl};
pub use lease_clock::{LeaseClock, advance_clock};
pub use limits::Limits;
pub use metadata::{Metadata, MetadataError};
pub use names::{
    Configuration, Digest, DomainName, Guard, Holder, Identity, InputName, IntentId, Key, KeyRange,
    NameError, Owner, Prefix, Value,
};
pub use policy::{Admission, GuardRule, HolderBinding, Policy, PolicyError, Terms};
pub use receipt::{GuardReceipt, InputReceipt, LeaseReceipt, Receipt, WriteReceipt};
pub use reconcile::{Effects, Finding};
pub use record::Record;
pub use rejection::{IntentConflict, Malformed, Observed, Reason, Rejection, Rule, Unavailable};
pub use state::State;
pub use summary::{BindingSummary, IntentSummary, ObservedIntent, StepSummary};
pub use text::{escape, unescape};
pub use view::{
    Availability, DestinationView, Footprint, KeyNeed, KeyRow, PrefixNeed, PrefixRow, View,
};
