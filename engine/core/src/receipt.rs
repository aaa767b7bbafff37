//! What a destination states about one accepted decision.

use alloc::vec::Vec;

use crate::authority::Fence;
use crate::counters::{DestinationId, Generation, Incarnation, Metageneration, Revision};
use crate::intent::IntentStep;
use crate::names::{DomainName, Guard, Key};

/// The statement about one accepted commit. It says what this destination knows and no more: there
/// is no field for what another process did or stopped doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The destination that decided.
    pub destination: DestinationId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The domain.
    pub domain: DomainName,
    /// The revision of the commit.
    pub revision: Revision,
    /// The step of an intent that the commit was.
    pub intent: Option<IntentStep>,
    /// The guards that were touched under an authority, ordered by name.
    pub guards: Vec<GuardReceipt>,
    /// The keys that conditions looked at, ordered by name, as they were.
    pub inputs: Vec<InputReceipt>,
    /// The keys that mutations named, in the order of the mutations.
    pub writes: Vec<WriteReceipt>,
    /// Whether this is the stored answer to an earlier request.
    pub replayed: bool,
    /// The wall clock at the decision in milliseconds since 1970, advisory; as the shell told it.
    pub advisory_time_ms: Option<u64>,
}

/// One guard's part of a receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuardReceipt {
    /// The guard.
    pub guard: Guard,
    /// Its fence after the commit: the authority that was presented.
    pub fence: Fence,
    /// Its fence before the commit.
    pub previous: Option<Fence>,
}

/// The version of one key that a condition looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputReceipt {
    /// The key.
    pub key: Key,
    /// Its generation before the commit; `None` if it didn't exist.
    pub generation: Option<Generation>,
}

/// One written key's part of a receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteReceipt {
    /// The key.
    pub key: Key,
    /// Its generation after the commit; `None` if it doesn't exist any more.
    pub generation: Option<Generation>,
    /// Its metageneration after the commit; `None` if it doesn't exist any more.
    pub metageneration: Option<Metageneration>,
    /// Its generation before the commit; `None` if it didn't exist.
    pub previous: Option<Generation>,
}
