//! Following what changes, from a revision on.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use highwater_core::{
    Change, Domain, DomainName, Effect, Fence, Guard, Key, KeyRange, LeaseRecord, Record, Revision,
};

use crate::error::Error;
use crate::history::Look;
use crate::shared::Shared;
use crate::wait::block_on_for;

/// How many effects a watch takes from the history at once.
const BATCH_EFFECTS: usize = 256;

/// What to follow.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// The domain.
    pub domain: DomainName,
    /// The keys.
    pub range: KeyRange,
    /// Whether fence changes of the domain are told too.
    pub fences: bool,
    /// Whether changes of the domain's leases are told too: grants, renewals and ends.
    pub leases: bool,
    /// The last revision already seen: events after it follow. `None`: only what comes from now on.
    pub after: Option<Revision>,
}

/// One commit's changes that match a watch. A commit is never split.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// The revision of the commit.
    pub revision: Revision,
    /// What it changed, keys before fences, and fences before leases.
    pub changes: Vec<WatchChange>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchChange {
    /// A value was written.
    Put {
        /// The key.
        key: Key,
        /// What is stored now.
        record: Arc<Record>,
    },
    /// Metadata was replaced.
    Metadata {
        /// The key.
        key: Key,
        /// What is stored now.
        record: Arc<Record>,
    },
    /// A key was deleted.
    Deleted {
        /// The key.
        key: Key,
    },
    /// A fence rose.
    Fenced {
        /// The guard.
        guard: Guard,
        /// Its fence now.
        fence: Fence,
    },
    /// A lease was granted, renewed or ended.
    Leased {
        /// The guard.
        guard: Guard,
        /// What is stored of its leases now.
        record: Arc<LeaseRecord>,
    },
}

/// A watch: gives each matching commit once, in order, without a gap. It holds no buffer of its
/// own; one that falls too far behind is told so by [`Error::TooOld`].
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    number: u64,
    domain: Arc<Domain>,
    range: KeyRange,
    fences: bool,
    leases: bool,
    position: Revision,
    ready: VecDeque<Arc<Effect>>,
}

impl Watch {
    /// Begins a watch.
    ///
    /// # Errors
    ///
    /// [`Error::NotReached`] for a revision that this store hasn't had, [`Error::TooOld`] for one
    /// that the history doesn't reach back to.
    pub(crate) fn begin(
        shared: Arc<Shared>,
        domain: Arc<Domain>,
        request: WatchRequest,
    ) -> Result<Self, Error> {
        let current = shared.now().1;
        let position = request.after.unwrap_or(current);
        if position > current {
            return Err(Error::NotReached {
                requested: position,
                current,
            });
        }
        let oldest = shared.history.oldest();
        if position < oldest {
            return Err(Error::TooOld {
                requested: position,
                oldest,
            });
        }
        let WatchRequest {
            range,
            fences,
            leases,
            ..
        } = request;
        Ok(Self {
            number: shared.history.number(),
            shared,
            domain,
            range,
            fences,
            leases,
            position,
            ready: VecDeque::new(),
        })
    }

    /// The revision up to which everything that matches was given. A new watch may begin after it.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.position
    }

    /// Waits for the next matching commit. Cancel-safe: an event is given or kept.
    ///
    /// # Errors
    ///
    /// [`Error::TooOld`] if the history has gone past this watch, [`Error::Closed`] at the end.
    pub async fn next(&mut self) -> Result<WatchEvent, Error> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Blocks the thread until the next matching commit, at most for `limit`. `None` if there was
    /// none in that time.
    ///
    /// # Errors
    ///
    /// As [`Watch::next`].
    pub fn next_timeout(&mut self, limit: Duration) -> Result<Option<WatchEvent>, Error> {
        block_on_for(self.next(), limit).transpose()
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<WatchEvent, Error>> {
        loop {
            while let Some(effect) = self.ready.pop_front() {
                self.position = effect.revision();
                if let Some(event) = self.matching(&effect) {
                    return Poll::Ready(Ok(event));
                }
            }
            match self.shared.history.after(
                self.number,
                self.position,
                BATCH_EFFECTS,
                context.waker(),
            ) {
                Look::Found(effects) => self.ready.extend(effects),
                Look::TooOld(oldest) => {
                    return Poll::Ready(Err(Error::TooOld {
                        requested: self.position,
                        oldest,
                    }));
                }
                Look::Later if self.shared.latch.is_closed() => {
                    return Poll::Ready(Err(Error::Closed));
                }
                Look::Later => return Poll::Pending,
            }
        }
    }

    /// What of an effect matches; `None` if nothing does.
    fn matching(&self, effect: &Effect) -> Option<WatchEvent> {
        let Change::Commit {
            domain,
            records,
            fences,
            leases,
            ..
        } = effect.change()
        else {
            return None;
        };
        if *domain != self.domain.id {
            return None;
        }
        let wanted = records
            .iter()
            .filter(|change| self.range.contains(change.key.as_bytes()));
        let mut changes: Vec<_> = wanted
            .map(|change| {
                let key = change.key.clone();
                match &change.record {
                    None => WatchChange::Deleted { key },
                    Some(record) if record.generation.revision() == effect.revision() => {
                        WatchChange::Put {
                            key,
                            record: Arc::clone(record),
                        }
                    }
                    Some(record) => WatchChange::Metadata {
                        key,
                        record: Arc::clone(record),
                    },
                }
            })
            .collect();
        if self.fences {
            changes.extend(fences.iter().map(|change| WatchChange::Fenced {
                guard: change.guard.clone(),
                fence: change.fence.clone(),
            }));
        }
        if self.leases {
            changes.extend(leases.iter().map(|change| WatchChange::Leased {
                guard: change.guard.clone(),
                record: Arc::clone(&change.record),
            }));
        }
        (!changes.is_empty()).then(|| WatchEvent {
            revision: effect.revision(),
            changes,
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.history.forget(self.number);
    }
}
