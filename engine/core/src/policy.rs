//! What a domain demands, set when it is made.

use core::fmt;
use core::num::NonZeroU64;

use crate::limits::{GRACE_MS_MAX, GUARD_DEPTH_MAX};

/// Which keys share one fence. The destination applies it; a writer never chooses its guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GuardRule {
    /// Every key is its own guard.
    #[default]
    Key,
    /// The first `depth` components of the path share a guard. A key with fewer components is its
    /// own guard, so with depth 1 the key `job-7` and every `job-7/…` share the guard `job-7`.
    Prefix {
        /// The byte between two components.
        delimiter: u8,
        /// How many components make the guard, 1 to 32.
        depth: u8,
    },
    /// The whole domain is one guard.
    Domain,
}

/// What every mutation must carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Admission {
    /// An authority for its guard.
    #[default]
    Fenced,
    /// A generation match on its key. An authority is still judged when it is present.
    Versioned,
    /// Nothing. An authority is still judged when it is present.
    Open,
}

/// How the holder must relate to the caller's authenticated identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HolderBinding {
    /// Not at all.
    #[default]
    None,
    /// The holder is the identity, or begins with the identity and a `/`.
    Prefix,
    /// The holder is the identity, byte for byte.
    Exact,
}

/// Which terms are admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Terms {
    /// Every well-formed one: some other coordinator issues them.
    #[default]
    External,
    /// Those alone that this destination issued to that holder with a lease.
    Issued,
}

/// A domain's policy. The default is one fence for each key, an authority for every mutation, no
/// binding to identities, no bound on the step of a sequence, terms from anywhere, and no grace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    guard: GuardRule,
    admission: Admission,
    holder_binding: HolderBinding,
    max_sequence_step: Option<NonZeroU64>,
    terms: Terms,
    strict: bool,
    grace_ms: u64,
}

/// Why settings don't make a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyError {
    /// The depth of a prefix guard is 0 or above the limit.
    Depth {
        /// The depth that was asked for.
        depth: u8,
    },
    /// The grace after an expiry is above the limit.
    Grace {
        /// The grace that was asked for, in milliseconds.
        grace_ms: u64,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth { depth } => write!(
                f,
                "a prefix guard has 1 to {GUARD_DEPTH_MAX} components, not {depth}"
            ),
            Self::Grace { grace_ms } => write!(
                f,
                "the grace after an expiry is at most {GRACE_MS_MAX} ms, not {grace_ms}"
            ),
        }
    }
}

impl core::error::Error for PolicyError {}

impl Policy {
    /// This policy with another guard rule.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Depth`] for a prefix of 0 or more than 32 components.
    pub const fn with_guard(mut self, guard: GuardRule) -> Result<Self, PolicyError> {
        if let GuardRule::Prefix { depth, .. } = guard
            && (depth == 0 || depth > GUARD_DEPTH_MAX)
        {
            return Err(PolicyError::Depth { depth });
        }
        self.guard = guard;
        Ok(self)
    }

    /// This policy with another admission.
    #[must_use]
    pub const fn with_admission(mut self, admission: Admission) -> Self {
        self.admission = admission;
        self
    }

    /// This policy with another binding of holders to identities.
    #[must_use]
    pub const fn with_holder_binding(mut self, binding: HolderBinding) -> Self {
        self.holder_binding = binding;
        self
    }

    /// This policy with another bound on how far a sequence may rise above a fence in one step;
    /// `None` is unlimited.
    #[must_use]
    pub const fn with_max_sequence_step(mut self, step: Option<NonZeroU64>) -> Self {
        self.max_sequence_step = step;
        self
    }

    /// This policy with another say on which terms are admitted.
    #[must_use]
    pub const fn with_terms(mut self, terms: Terms) -> Self {
        self.terms = terms;
        self
    }

    /// This policy, under which an authority is admitted only while its lease is live. It never
    /// takes the place of the fence: what was on its way when the lease lapsed is fenced out by
    /// the next term alone.
    #[must_use]
    pub const fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// This policy with a grace in milliseconds: for so long after a lease has lapsed nobody but
    /// its holder can acquire the guard.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Grace`] above 7 days.
    pub const fn with_grace_ms(mut self, grace_ms: u64) -> Result<Self, PolicyError> {
        if grace_ms > GRACE_MS_MAX {
            return Err(PolicyError::Grace { grace_ms });
        }
        self.grace_ms = grace_ms;
        Ok(self)
    }

    /// Which terms are admitted.
    #[must_use]
    pub const fn terms(&self) -> Terms {
        self.terms
    }

    /// Whether an authority is admitted only while its lease is live.
    #[must_use]
    pub const fn strict(&self) -> bool {
        self.strict
    }

    /// For how long after a lease has lapsed nobody but its holder can acquire, in milliseconds.
    #[must_use]
    pub const fn grace_ms(&self) -> u64 {
        self.grace_ms
    }

    /// Whether an authority is judged by the leases of the guards that it touches.
    #[must_use]
    pub const fn judges_by_leases(&self) -> bool {
        self.strict || matches!(self.terms, Terms::Issued)
    }

    /// Which keys share one fence.
    #[must_use]
    pub const fn guard(&self) -> GuardRule {
        self.guard
    }

    /// What every mutation must carry.
    #[must_use]
    pub const fn admission(&self) -> Admission {
        self.admission
    }

    /// How holders are bound to identities.
    #[must_use]
    pub const fn holder_binding(&self) -> HolderBinding {
        self.holder_binding
    }

    /// How far a sequence may rise above a fence in one step.
    #[must_use]
    pub const fn max_sequence_step(&self) -> Option<NonZeroU64> {
        self.max_sequence_step
    }
}
