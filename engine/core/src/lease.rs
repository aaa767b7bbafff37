//! Leases: the destination itself grants terms, for a time.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::authority::{Authority, Term};
use crate::counters::{Epoch, LeaseId, Revision, Sequence};
use crate::lease_clock::LeaseClock;
use crate::limits::{TTL_MS_MAX, TTL_MS_MIN};
use crate::names::{Holder, Owner};

/// How long a lease lasts unless it is renewed: 100 ms to 7 days, in whole milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ttl(u64);

impl Ttl {
    /// A time of so many milliseconds; `None` below 100 ms and above 7 days. Nothing is rounded.
    #[must_use]
    pub const fn new(milliseconds: u64) -> Option<Self> {
        if milliseconds < TTL_MS_MIN || milliseconds > TTL_MS_MAX {
            return None;
        }
        Some(Self(milliseconds))
    }

    /// The number of milliseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// A lease that was granted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    /// Its id: the revision of the grant.
    pub id: LeaseId,
    /// The term that was issued with it.
    pub term: Term,
    /// Who holds it.
    pub holder: Holder,
    /// How long it lasts from its last renewal on.
    pub ttl: Ttl,
    /// The revision that renewed it last; that of the grant, if none has.
    pub renewed_at: Revision,
    /// What the lease clock showed then, in milliseconds of the store's run time.
    pub renewed_clock_ms: u64,
}

impl Lease {
    /// The authority that it granted.
    #[must_use]
    pub fn authority(&self) -> Authority {
        Authority::new(self.term, self.holder.clone())
    }

    /// Whether it granted this authority: term and holder both.
    #[must_use]
    pub fn is_of(&self, authority: &Authority) -> bool {
        self.term == authority.term() && self.holder == *authority.holder()
    }
}

/// Why a lease ended. That it isn't there is no cause.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum EndCause {
    /// It lapsed by the store's clock, and wasn't renewed.
    Expired,
    /// Its holder let it go.
    Released,
    /// Somebody took it away.
    Revoked {
        /// Who, as they said.
        by: Owner,
    },
    /// Its holder acquired anew.
    Superseded,
    /// Its epoch was retired.
    EpochTransition,
    /// It stood in a backup, and no lease of a backup comes back.
    Restore,
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("expired"),
            Self::Released => f.write_str("released"),
            Self::Revoked { by } => write!(f, "revoked by '{by}'"),
            Self::Superseded => f.write_str("superseded by its own holder"),
            Self::EpochTransition => f.write_str("ended with its epoch"),
            Self::Restore => f.write_str("ended by a restore"),
        }
    }
}

/// The end of a lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeaseEnd {
    /// The lease as it was.
    pub lease: Arc<Lease>,
    /// Why it ended.
    pub cause: EndCause,
    /// The revision that recorded it.
    pub at: Revision,
    /// The time on the lease clock at which it ended; for an expired one, that at which it lapsed,
    /// however much later that was recorded.
    pub clock_ms: u64,
}

/// A term that was issued, and to whom.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Grant {
    /// Its sequence.
    pub sequence: Sequence,
    /// Its holder.
    pub holder: Holder,
}

/// What is stored of one guard's leases. It stays for ever, as a fence does, so that no term is
/// issued twice.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeaseRecord {
    /// The epoch of the terms in it.
    pub epoch: Epoch,
    /// The terms that were issued last in that epoch, at least one, at most 8, in rising order. The
    /// last one is the highest that ever was.
    pub grants: Vec<Grant>,
    /// The lease that hasn't been ended. It may have lapsed, or be of a retired epoch.
    pub current: Option<Arc<Lease>>,
    /// The end of the last lease that was ended.
    pub last_end: Option<LeaseEnd>,
    /// The revision that last changed any of it.
    pub changed_at: Revision,
}

/// What is to be said of a guard's current lease. Every case must be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseStanding {
    /// It is live.
    Live {
        /// For how long yet, in milliseconds.
        remaining_ms: u64,
    },
    /// It has lapsed, and nobody has recorded that yet.
    Lapsed {
        /// Since which time on the lease clock.
        since_ms: u64,
    },
    /// Its epoch isn't the current one.
    Retired,
}

impl LeaseRecord {
    /// The highest sequence that was issued for the guard in the record's epoch.
    #[must_use]
    pub fn issued(&self) -> Option<Sequence> {
        self.grants.last().map(|grant| grant.sequence)
    }

    /// Whether this term is known as issued to this holder.
    #[must_use]
    pub fn granted(&self, authority: &Authority) -> bool {
        let term = authority.term();
        let same =
            |grant: &Grant| grant.sequence == term.sequence && grant.holder == *authority.holder();
        self.epoch == term.epoch && self.grants.iter().any(same)
    }

    /// How the current lease stands in this epoch at this time; `None` if there is none.
    #[must_use]
    pub fn standing(&self, epoch: &Epoch, clock: &LeaseClock) -> Option<LeaseStanding> {
        let lease = self.current.as_ref()?;
        let deadline = clock.deadline_ms(lease);
        Some(if lease.term.epoch != *epoch {
            LeaseStanding::Retired
        } else if deadline <= clock.now_ms {
            LeaseStanding::Lapsed { since_ms: deadline }
        } else {
            let remaining_ms = clock.remaining_ms(lease);
            LeaseStanding::Live { remaining_ms }
        })
    }

    /// The latest time on the lease clock that is noted in it, in milliseconds.
    #[must_use]
    pub fn clock_ms(&self) -> u64 {
        let current = self.current.as_ref();
        let current = current.map_or(0, |lease| lease.renewed_clock_ms);
        let ended = self.last_end.as_ref().map_or(0, |end| end.clock_ms);
        current.max(ended)
    }
}

/// A guard's leases as they were seen at a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedLease {
    /// What is stored; `None` if nothing is.
    pub record: Option<Arc<LeaseRecord>>,
    /// For how long the current lease lasted yet, in milliseconds; 0 for a lapsed one.
    pub remaining_ms: Option<u64>,
}
