//! What an accepted decision changes. Made by a decision, or by decoding what one had logged; there
//! is no other constructor, so an unjudged change can't be written down.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::authority::Fence;
use crate::counters::{DestinationId, Incarnation, Revision};
use crate::domain::Domain;
use crate::intent::IntentRecord;
use crate::lease::LeaseRecord;
use crate::names::{Guard, IntentId, Key};
use crate::record::Record;

/// The change of one decision, at its revision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    revision: Revision,
    change: Change,
}

/// What changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The store begins: its identity, in the first record of its log. Its revision is the start of
    /// the incarnation; it uses none.
    Genesis {
        /// The identity.
        destination: DestinationId,
        /// The incarnation.
        incarnation: Incarnation,
    },
    /// A domain appears.
    DomainCreated(Arc<Domain>),
    /// Keys, fences, intents and leases of one domain change.
    Commit {
        /// The domain, by its short number.
        domain: crate::counters::DomainId,
        /// The keys that change.
        records: Vec<RecordChange>,
        /// The fences that rise.
        fences: Vec<FenceChange>,
        /// The intents that change, ordered by id.
        intents: Vec<IntentChange>,
        /// The guards whose lease changes, ordered by name.
        leases: Vec<LeaseChange>,
    },
    /// The lease clock is noted, so that a restart goes on from there.
    LeaseClock {
        /// What it shows, in milliseconds of the store's run time.
        now_ms: u64,
        /// Whether the store was opened at that time.
        opened: bool,
    },
}

/// One key's new content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordChange {
    /// The key.
    pub key: Key,
    /// What is stored from now on; `None` if the key is deleted.
    pub record: Option<Arc<Record>>,
}

/// One guard's new fence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FenceChange {
    /// The guard.
    pub guard: Guard,
    /// Its fence from now on.
    pub fence: Fence,
}

/// One intent's new record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentChange {
    /// The intent.
    pub id: IntentId,
    /// What is stored from now on.
    pub record: Arc<IntentRecord>,
}

/// What is stored of one guard's leases from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseChange {
    /// The guard.
    pub guard: Guard,
    /// What is stored from now on.
    pub record: Arc<LeaseRecord>,
}

impl Effect {
    /// For the decision and the codec of this crate only.
    pub(crate) const fn new(revision: Revision, change: Change) -> Self {
        Self { revision, change }
    }

    /// The effect that begins a store: to be logged before anything else, once.
    #[must_use]
    pub const fn genesis(destination: DestinationId, incarnation: Incarnation) -> Self {
        let revision = Revision::start(incarnation.number());
        Self::new(
            revision,
            Change::Genesis {
                destination,
                incarnation,
            },
        )
    }

    /// The revision at which it happens.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// What changes.
    #[must_use]
    pub const fn change(&self) -> &Change {
        &self.change
    }
}
