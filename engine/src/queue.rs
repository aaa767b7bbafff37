//! What waits to be judged. Bounded in number and in bytes; full means wait, or a typed refusal.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use highwater_core::{Commit, CreateDomain, Mutation};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::error::Error;
use crate::ticket::Promise;

/// What every request counts beside its keys and values, in bytes.
const REQUEST_OVERHEAD_BYTES: usize = 256;
/// What every part of a request counts beside its keys and values, in bytes. Its share of the log:
/// record header, term, fence, holder, and the guard's name where that isn't the key's.
pub(crate) const PART_OVERHEAD_BYTES: usize = 2_048;

/// A request to the writer.
#[derive(Debug)]
pub(crate) enum Request {
    /// Judge and commit.
    Commit(Box<Commit>),
    /// Make a domain.
    CreateDomain(Box<CreateDomain>),
}

/// A request, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) request: Request,
    pub(crate) promise: Promise,
    /// An upper bound for the bytes that its effect takes in the log.
    pub(crate) log_bytes: usize,
    permits: u32,
}

/// The queue before the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<VecDeque<Pending>>,
    len: AtomicUsize,
    room: Semaphore,
    permits_max: u32,
    bytes_per_permit: usize,
}

impl Queue {
    /// An empty queue with the bounds of the settings.
    pub(crate) fn new(config: &Config) -> Self {
        let permits_max = u32::try_from(config.queue_commits).unwrap_or(u32::MAX);
        let share = config.queue_bytes / config.queue_commits.max(1);
        Self {
            waiting: Mutex::new(VecDeque::new()),
            len: AtomicUsize::new(0),
            room: Semaphore::new(config.queue_commits),
            permits_max,
            bytes_per_permit: share.max(1),
        }
    }

    /// How much of the queue a request takes. Never more than there is, so that it can pass alone.
    fn permits(&self, bytes: usize) -> u32 {
        let permits = bytes.div_ceil(self.bytes_per_permit).max(1);
        u32::try_from(permits)
            .unwrap_or(u32::MAX)
            .min(self.permits_max)
    }

    /// Queues a request if there is room now; gives it back if there isn't.
    ///
    /// # Errors
    ///
    /// The request and the promise.
    pub(crate) fn try_push(
        &self,
        request: Request,
        promise: Promise,
    ) -> Result<(), (Request, Promise)> {
        let (bytes, log_bytes) = sizes(&request);
        let permits = self.permits(bytes);
        match self.room.try_acquire_many(permits) {
            Ok(permit) => {
                permit.forget();
                self.push(Pending {
                    request,
                    promise,
                    log_bytes,
                    permits,
                });
                Ok(())
            }
            Err(_) => Err((request, promise)),
        }
    }

    /// Waits for room and queues a request.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the store was closed meanwhile.
    pub(crate) async fn push_when_room(
        &self,
        request: Request,
        promise: Promise,
    ) -> Result<(), Error> {
        let (bytes, log_bytes) = sizes(&request);
        let permits = self.permits(bytes);
        match self.room.acquire_many(permits).await {
            Ok(permit) => {
                permit.forget();
                self.push(Pending {
                    request,
                    promise,
                    log_bytes,
                    permits,
                });
                Ok(())
            }
            Err(_) => {
                promise.answer(Err(Error::Closed));
                Err(Error::Closed)
            }
        }
    }

    fn push(&self, pending: Pending) {
        let mut waiting = self.waiting.lock();
        waiting.push_back(pending);
        self.len.store(waiting.len(), Ordering::SeqCst);
    }

    /// Moves all that waits to the back of `inbox`.
    pub(crate) fn drain_into(&self, inbox: &mut VecDeque<Pending>) {
        let mut waiting = self.waiting.lock();
        if inbox.is_empty() {
            std::mem::swap(&mut *waiting, inbox);
        } else {
            inbox.append(&mut waiting);
        }
        self.len.store(0, Ordering::SeqCst);
    }

    /// Gives back the room of a request that was judged.
    pub(crate) fn release(&self, pending: &Pending) {
        self.room.add_permits(pending.permits as usize);
    }

    /// How many requests wait. Those that the writer has taken to judge don't count.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    /// Takes no more requests; who waits for room is refused.
    pub(crate) fn close(&self) {
        self.room.close();
    }
}

/// The bytes of a request in memory, and an upper bound for its effect in the log.
fn sizes(request: &Request) -> (usize, usize) {
    let commit = match request {
        Request::CreateDomain(_) => return (REQUEST_OVERHEAD_BYTES, PART_OVERHEAD_BYTES),
        Request::Commit(commit) => commit,
    };
    let mut bytes = REQUEST_OVERHEAD_BYTES;
    let mut log_bytes = PART_OVERHEAD_BYTES;
    for mutation in &commit.mutations {
        let content = match mutation {
            Mutation::Put {
                key,
                value,
                metadata,
            } => key.as_bytes().len() + value.as_bytes().len() + metadata.bytes(),
            Mutation::SetMetadata { key, metadata } => key.as_bytes().len() + metadata.bytes(),
            Mutation::Delete { key } => key.as_bytes().len(),
            Mutation::Advance { guard } => guard.as_bytes().len(),
        };
        bytes += content + 64;
        log_bytes += content + PART_OVERHEAD_BYTES;
    }
    bytes += commit.conditions.len() * 128;
    (bytes, log_bytes)
}
