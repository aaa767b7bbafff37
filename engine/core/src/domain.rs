//! A domain: its policy, its epochs, and whether it takes effects.

use alloc::vec::Vec;

use crate::counters::{DomainId, Epoch, Revision};
use crate::names::DomainName;
use crate::policy::Policy;

/// Whether a domain takes effects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DomainState {
    /// It does.
    #[default]
    Active,
    /// An epoch transition has frozen it.
    Frozen,
    /// The store was restored or found behind its witness; an epoch transition must come first.
    RecoveryRequired,
}

/// One epoch that was installed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEntry {
    /// Its number and mark.
    pub epoch: Epoch,
    /// The revision of the commit that installed it.
    pub installed_at: Revision,
}

/// How a presented epoch stands against a domain's table. Every case must be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochStanding {
    /// It is the current epoch, mark included.
    Current,
    /// It was installed here and is retired.
    Retired,
    /// It was never installed here: newer, or a stranger with a number that we know.
    Unknown,
}

/// Every epoch of a domain, oldest first. The last one is current, all others are retired. Never
/// empty; numbers strictly rise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EpochTable {
    retired: Vec<EpochEntry>,
    current: EpochEntry,
}

impl EpochTable {
    /// A table with its first epoch.
    #[must_use]
    pub const fn new(first: EpochEntry) -> Self {
        Self {
            retired: Vec::new(),
            current: first,
        }
    }

    /// A table with retired epochs, oldest first, and a current one. What it must hold is checked
    /// by [`crate::check_domain`].
    #[must_use]
    pub const fn with_retired(retired: Vec<EpochEntry>, current: EpochEntry) -> Self {
        Self { retired, current }
    }

    /// The current epoch.
    #[must_use]
    pub const fn current(&self) -> EpochEntry {
        self.current
    }

    /// The retired epochs, oldest first.
    #[must_use]
    pub fn retired(&self) -> &[EpochEntry] {
        &self.retired
    }

    /// Where a presented epoch stands: the only comparison of epochs there is. Number and mark must
    /// both be ones that were installed here; anything else is unknown.
    #[must_use]
    pub fn standing(&self, presented: &Epoch) -> EpochStanding {
        if *presented == self.current.epoch {
            EpochStanding::Current
        } else if self.retired.iter().any(|entry| entry.epoch == *presented) {
            EpochStanding::Retired
        } else {
            EpochStanding::Unknown
        }
    }
}

/// One comparison domain: terms are ordered inside it and mean nothing outside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    /// The destination's short number of it.
    pub id: DomainId,
    /// Its name.
    pub name: DomainName,
    /// What it demands.
    pub policy: Policy,
    /// Its epochs.
    pub epochs: EpochTable,
    /// Whether it takes effects.
    pub state: DomainState,
    /// The revision of the commit that created it.
    pub created_at: Revision,
}
