//! What a destination states about one accepted decision.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::authority::Fence;
use crate::counters::{DestinationId, Generation, Incarnation, Metageneration, Revision};
use crate::intent::IntentStep;
use crate::lease::{EndCause, Lease};
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
    /// The guards that were written under an authority, or sealed, ordered by name.
    pub guards: Vec<GuardReceipt>,
    /// The keys that conditions looked at, ordered by name, as they were.
    pub inputs: Vec<InputReceipt>,
    /// The keys that mutations named, in the order of the mutations.
    pub writes: Vec<WriteReceipt>,
    /// The leases that were granted, renewed or ended, in the order of the mutations.
    pub leases: Vec<LeaseReceipt>,
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
    /// Its fence after the commit: the authority that was presented, or the one that was granted.
    pub fence: Fence,
    /// Its fence before the commit.
    pub previous: Option<Fence>,
}

/// One lease's part of a receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseReceipt {
    /// The guard.
    pub guard: Guard,
    /// The lease as it is after the commit, or was when it ended. How long it lasts is advisory for
    /// whoever is told: the store's own clock judges it.
    pub lease: Arc<Lease>,
    /// Why it ended, if the commit ended it.
    pub ended: Option<EndCause>,
    /// Why the lease before it ended, if the commit granted this one and had to end that one.
    pub replaced: Option<EndCause>,
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
