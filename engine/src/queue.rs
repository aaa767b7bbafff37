//! What waits to be judged. Bounded in number and in bytes; full means wait, or a typed refusal.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use highwater_core::{Commit, CreateDomain, Digest};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::digest::of_command;
use crate::error::Error;
use crate::sizes::sizes;
use crate::ticket::Promise;

/// A request to the writer.
#[derive(Debug)]
pub(crate) enum Request {
    /// Judge and commit.
    Commit(Box<Asked>),
    /// Make a domain.
    CreateDomain(Box<CreateDomain>),
    /// Note what the lease clock shows.
    NoteClock,
}

/// A commit, and the digest of what it asks for, if that is needed.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) commit: Commit,
    pub(crate) digest: Option<Digest>,
}

impl Request {
    /// A commit with its digest, which the one who asks has the time to make.
    pub(crate) fn commit(commit: Commit) -> Self {
        let digest = of_command(&commit);
        Self::Commit(Box::new(Asked { commit, digest }))
    }
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

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Pending>,
    closed: bool,
}

/// The queue before the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
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
            waiting: Mutex::default(),
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

    /// Queues a request that has room. It is answered at once if the queue was closed since it got
    /// that room: nobody looks at the queue any more.
    fn push(&self, pending: Pending) {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            drop(waiting);
            pending.promise.answer(Err(Error::Closed));
            return;
        }
        waiting.requests.push_back(pending);
        self.len.store(waiting.requests.len(), Ordering::SeqCst);
    }

    /// Moves all that waits to the back of `inbox`.
    pub(crate) fn drain_into(&self, inbox: &mut VecDeque<Pending>) {
        let mut waiting = self.waiting.lock();
        if inbox.is_empty() {
            std::mem::swap(&mut waiting.requests, inbox);
        } else {
            inbox.append(&mut waiting.requests);
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

    /// Takes no more requests from here on; who waits for room is refused.
    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ticket::promise;
    use crate::wait::block_on_for;
    use highwater_core::limits::INTENT_CHANGE_BYTES_MAX;
    use highwater_core::{
        Authorities, Authority, Condition, Configuration, DomainName, Ending, Generation, Guard,
        Identity, Input, InputName, IntentId, Key, Metadata, Metageneration, Mutation, Owner,
        Prefix, Revision, Step, Value, Work,
    };

    /// What a part may count beside the bytes that it holds: itself, and what its bytes take.
    const PART_MAX: usize = 512;

    fn bytes(commit: Commit) -> usize {
        sizes(&Request::commit(commit)).0
    }

    fn bare() -> Commit {
        Commit::new(DomainName::new("d").unwrap())
    }

    /// A commit with this part counts what the part holds: not less, and not much more.
    #[track_caller]
    fn counts(with: Commit, held: usize) {
        let counted = bytes(with) - bytes(bare());
        assert!(counted >= held, "{counted} for {held} bytes");
        assert!(counted <= held + PART_MAX, "{counted} for {held} bytes");
    }

    fn authority(holder: usize) -> Authority {
        Authority::parse(&format!("7.0000000000000001/9@{}", "h".repeat(holder))).unwrap()
    }

    #[test]
    fn a_request_that_had_room_before_the_queue_was_closed_is_answered() {
        let queue = Queue::new(&Config::default());
        let with_room = |promise| Pending {
            request: Request::commit(bare()),
            promise,
            log_bytes: 0,
            permits: 1,
        };
        let (before, after) = (promise(), promise());
        queue.push(with_room(before.0));
        queue.close();
        queue.push(with_room(after.0));
        assert_eq!(queue.len(), 1, "what came before is still to be judged");
        let answer = block_on_for(after.1, Duration::from_secs(60)).unwrap();
        assert!(matches!(answer, Err(Error::Closed)), "{answer:?}");
    }

    #[test]
    fn a_condition_counts_its_key_or_prefix_and_what_it_is_compared_with() {
        let revision = Revision::new((1 << 48) | 9).unwrap();
        let term = authority(1).term();
        for len in [1, 1_024] {
            let key = || Key::new(vec![b'k'; len]).unwrap();
            let prefix = Prefix::new(vec![b'p'; len]).unwrap();
            let conditions = [
                (
                    Condition::GenerationIs {
                        key: key(),
                        generation: Generation::new(9),
                    },
                    8,
                ),
                (
                    Condition::GenerationIsNot {
                        key: key(),
                        generation: None,
                    },
                    8,
                ),
                (
                    Condition::MetagenerationIs {
                        key: key(),
                        metageneration: Some(Metageneration::FIRST),
                    },
                    8,
                ),
                (
                    Condition::MetagenerationIsNot {
                        key: key(),
                        metageneration: None,
                    },
                    8,
                ),
                (Condition::WrittenUnder { key: key(), term }, 24),
                (
                    Condition::ValueDigestIs {
                        key: key(),
                        digest: Digest::new([7; 32]),
                    },
                    32,
                ),
                (
                    Condition::KeyUnchangedSince {
                        key: key(),
                        revision,
                    },
                    8,
                ),
                (Condition::PrefixUnchangedSince { prefix, revision }, 8),
            ];
            for (condition, compared) in conditions {
                counts(bare().when(condition), len + compared);
            }
        }
    }

    #[test]
    fn what_is_said_of_an_intent_counts_and_its_record_has_room_in_the_log() {
        for len in [1, 256] {
            let id = || IntentId::new(vec![b'i'; len]).unwrap();
            let guard = || Guard::new(vec![b'g'; len]).unwrap();
            let work = Work::under(guard())
                .configured(Configuration::new(vec![b'c'; len]).unwrap())
                .from_input(Input::Key {
                    key: Key::new(vec![b'k'; len]).unwrap(),
                    generation: None,
                })
                .from_input(Input::Named {
                    name: InputName::new(vec![b'n'; len]).unwrap(),
                    digest: Digest::new([7; 32]),
                });
            let bind = Mutation::BindIntent { intent: id(), work };
            let close = Mutation::CloseIntent {
                intent: id(),
                guard: Some(guard()),
                ending: Ending::Cancelled,
            };
            let suspend = Mutation::SuspendIntent {
                intent: id(),
                guard: None,
                owner: Owner::new(vec![b'o'; len]).unwrap(),
                review_at_ms: 9,
            };
            let step = bare().for_intent(id(), Step::FIRST);
            for (with, held) in [
                (step, len),
                (bare().with(bind), 5 * len + 40),
                (bare().with(close), 2 * len),
                (bare().with(suspend), 2 * len + 8),
            ] {
                let in_log = |commit: Commit| sizes(&Request::commit(commit)).1;
                let more = in_log(with.clone()) - in_log(bare());
                assert!(more >= INTENT_CHANGE_BYTES_MAX, "{more}");
                counts(with, held);
            }
        }
    }

    #[test]
    fn authorities_count_their_holders_and_guards() {
        for len in [1, 256] {
            counts(bare().under(authority(len)), len);
            let guard = |number: usize| Guard::new(format!("{number:0>len$}")).unwrap();
            let mut commit = bare();
            let list = (0..100).map(|number| (guard(number), authority(len)));
            commit.authority = Authorities::PerGuard(list.collect());
            let counted = bytes(commit) - bytes(bare());
            let held = 100 * (2 * len + 24);
            assert!(
                counted >= held && counted <= held + 100 * PART_MAX,
                "{counted}"
            );
        }
    }

    #[test]
    fn a_mutation_counts_key_value_and_metadata() {
        let key = |len: usize| Key::new(vec![b'k'; len]).unwrap();
        for len in [1, 1_000] {
            counts(bare().delete(key(len)), len);
            counts(bare().advance(Guard::new(vec![b'g'; len]).unwrap()), len);
            counts(
                bare().put(key(len), Value::new(vec![7; 5_000]).unwrap()),
                len + 5_000,
            );
        }
        let mut metadata = Metadata::default();
        for number in 0..64 {
            let name = format!("{number:0128}");
            metadata = metadata.with_label(&name, &"v".repeat(1_024)).unwrap();
        }
        let labelled = Mutation::SetMetadata {
            key: key(1),
            metadata,
        };
        let counted = bytes(bare().with(labelled)) - bytes(bare());
        let held = 64 * (128 + 1_024);
        assert!(counted >= held && counted <= held + 65 * 1_024, "{counted}");
    }

    #[test]
    fn the_caller_counts() {
        let mut commit = bare();
        commit.caller = Some(Identity::new(vec![b'c'; 200]).unwrap());
        counts(commit, 200);
    }
}
