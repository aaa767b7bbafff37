//! What a domain demands, set when it is made.

use core::fmt;
use core::num::NonZeroU64;

use crate::limits::GUARD_DEPTH_MAX;

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

/// A domain's policy. The default is one fence for each key, an authority for every mutation, no
/// binding to identities and no bound on the step of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    guard: GuardRule,
    admission: Admission,
    holder_binding: HolderBinding,
    max_sequence_step: Option<NonZeroU64>,
}

/// Why settings don't make a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyError {
    /// The depth of a prefix guard is 0 or above the limit.
    Depth {
        /// The depth that was asked for.
        depth: u8,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Depth { depth } = self;
        write!(
            f,
            "a prefix guard has 1 to {GUARD_DEPTH_MAX} components, not {depth}"
        )
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
