//! The store: open, commit, read, close.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use highwater_core::{
    Commit, CreateDomain, Domain, DomainName, EpochMark, ExpectedDestination, Key, Policy, Receipt,
    Record, Revision, Unavailable,
};
use highwater_wal::{Disk, OsDisk};
use parking_lot::Mutex;

use crate::checkpoint::Checkpointer;
use crate::config::Config;
use crate::error::{Error, OpenError, StorageError};
use crate::lock::DirLock;
use crate::queue::Request;
use crate::recovery::{Recovered, recover};
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::status::Status;
use crate::threads;
use crate::ticket::{Outcome, Ticket, Waiting, promise};
use crate::wait::block_on;
use crate::watch::{Watch, WatchRequest};

/// How long to wait between two looks at whether everything accepted is answered.
const DRAIN_POLL: Duration = Duration::from_millis(1);

/// A durable key-value store that fences. Cheap to clone; safe to use from any number of threads
/// and tasks.
///
/// Every call that changes something returns only when the change is on disk. Dropping the last
/// clone closes the store; [`Store::close`] does so with a result.
///
/// ```
/// use highwater::{Authority, Commit, Config, DomainName, Key, Policy, Store, Value};
///
/// # let dir = tempfile::tempdir()?;
/// # let config = Config { segment_bytes: 1 << 20, log_bytes: 4 << 20, ..Config::default() };
/// let store = Store::open(dir.path(), config)?;
/// let jobs = DomainName::new("jobs")?;
/// let domain = store.create_domain(jobs.clone(), Policy::default(), None)?;
/// let epoch = domain.epochs.current().epoch;
///
/// // Whoever issues terms hands out whole authorities; here two, one newer than the other.
/// let a = Authority::parse(&format!("{epoch}/41@a"))?;
/// let b = Authority::parse(&format!("{epoch}/42@b"))?;
/// let put = Commit::new(jobs.clone()).put(Key::new("job-7")?, Value::new("done by b")?);
/// store.commit(put.clone().under(b))?;
///
/// // The old holder wakes up and writes. It is refused, with what was observed.
/// let refused = store.commit(put.under(a)).unwrap_err();
/// assert_eq!(refused.kind(), highwater::ErrorKind::LostAuthority);
/// assert_eq!(refused.rejection().unwrap().reason.code(), "StaleTerm");
/// store.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Store(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    lock: Mutex<Option<DirLock>>,
}

/// So many waiting requests are worth waking the judge for while a group is being synced.
const JUDGE_BATCH: usize = 16;

impl Store {
    /// Opens the store in a directory, or makes one there. Recovers first: afterwards the state is
    /// what was acknowledged, and nothing that was refused.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; a store that is damaged, or open elsewhere, is left as it is.
    pub fn open(dir: impl AsRef<Path>, config: Config) -> Result<Self, OpenError> {
        config.validate().map_err(OpenError::Config)?;
        let dir = dir.as_ref();
        let io = |what| {
            move |source| OpenError::Io {
                what,
                file: dir.display().to_string(),
                source,
            }
        };
        create_durably(dir).map_err(io("create"))?;
        let lock = DirLock::take(dir)?;
        let disk = OsDisk::open(dir).map_err(io("open"))?;
        Self::start(Arc::new(disk), config, Some(lock))
    }

    /// Opens the store on a disk of the caller's. It isn't locked: the caller sees to it that there
    /// is one store on it at a time. For simulations and for other kinds of storage.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn open_on(disk: Arc<dyn Disk>, config: Config) -> Result<Self, OpenError> {
        config.validate().map_err(OpenError::Config)?;
        Self::start(disk, config, None)
    }

    fn start(
        disk: Arc<dyn Disk>,
        config: Config,
        lock: Option<DirLock>,
    ) -> Result<Self, OpenError> {
        let Recovered { parts, index } = recover(disk, config)?;
        let shared = Arc::new(Shared::assemble(parts));
        let checkpointer = Checkpointer::new(Arc::clone(&shared), index);
        let threads = threads::start(&shared, checkpointer).map_err(|source| {
            shared.stop();
            OpenError::Io {
                what: "start a thread for",
                file: "the store".into(),
                source,
            }
        })?;
        let (threads, lock) = (Mutex::new(threads), Mutex::new(lock));
        Ok(Self(Arc::new(Handle {
            shared,
            threads,
            lock,
        })))
    }

    /// Commits, and blocks the thread until the outcome is durable. Waits for room in the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] with the reason and what was observed: nothing was written.
    /// [`Error::Indeterminate`] if storage failed meanwhile: reopen and look. [`Error::Closed`].
    pub fn commit(&self, commit: Commit) -> Result<Receipt, Error> {
        let waiting = block_on(self.enqueue(Request::commit(commit)))?;
        self.help();
        Ticket(waiting).wait()
    }

    /// Commits, without blocking a thread. Dropping the future leaves the outcome unknown.
    ///
    /// # Errors
    ///
    /// As [`Store::commit`].
    pub async fn commit_async(&self, commit: Commit) -> Result<Receipt, Error> {
        self.submit_async(commit).await?.await
    }

    /// Queues a commit and returns at once with a ticket for its outcome. A step of an intent that
    /// was accepted before needs no place in the queue.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] as `Overloaded` if the queue is full, [`Error::Closed`].
    pub fn submit(&self, commit: Commit) -> Result<Ticket, Error> {
        let shared = &self.0.shared;
        if shared.latch.is_closed() {
            return Err(Error::Closed);
        }
        let (promise, waiting) = promise();
        match shared.queue.try_push(Request::commit(commit), promise) {
            Ok(()) => {
                self.alert();
                Ok(Ticket(waiting))
            }
            Err((request, promise)) => match shared.replayed(&request) {
                Some(receipt) => {
                    promise.answer(Ok(Outcome::Committed(receipt)));
                    Ok(Ticket(waiting))
                }
                None => {
                    promise.answer(Err(Error::Closed));
                    Err(shared.unavailable(Unavailable::Overloaded))
                }
            },
        }
    }

    /// Waits for room in the queue, and returns a ticket for the outcome.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub async fn submit_async(&self, commit: Commit) -> Result<Ticket, Error> {
        let waiting = self.enqueue(Request::commit(commit)).await?;
        self.alert();
        Ok(Ticket(waiting))
    }

    /// Makes a domain, and blocks the thread until it is durable.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] with the reason, `DomainExists` among them.
    pub fn create_domain(
        &self,
        name: DomainName,
        policy: Policy,
        destination: Option<ExpectedDestination>,
    ) -> Result<Arc<Domain>, Error> {
        block_on(self.create_domain_async(name, policy, destination))
    }

    /// Makes a domain, without blocking a thread.
    ///
    /// # Errors
    ///
    /// As [`Store::create_domain`].
    pub async fn create_domain_async(
        &self,
        name: DomainName,
        policy: Policy,
        destination: Option<ExpectedDestination>,
    ) -> Result<Arc<Domain>, Error> {
        let mut bits = [0; 8];
        getrandom::fill(&mut bits).map_err(|error| StorageError::NoRandom {
            detail: error.to_string(),
        })?;
        let mark = EpochMark::new(u64::from_be_bytes(bits));
        let create = CreateDomain {
            name,
            policy,
            mark,
            destination,
        };
        let waiting = self
            .enqueue(Request::CreateDomain(Box::new(create)))
            .await?;
        self.alert();
        match waiting.await? {
            Outcome::Created(domain) => Ok(domain),
            Outcome::Committed(_) | Outcome::Noted => Err(Error::Indeterminate),
        }
    }

    async fn enqueue(&self, request: Request) -> Result<Waiting, Error> {
        let shared = &self.0.shared;
        if shared.latch.is_closed() {
            return Err(Error::Closed);
        }
        let (promise, waiting) = promise();
        shared.queue.push_when_room(request, promise).await?;
        Ok(waiting)
    }

    /// Lets the calling thread do the writer's work, so that a lone writer waits for no other one.
    fn help(&self) {
        if self.0.shared.drive() {
            self.0.shared.judge_signal.raise();
        }
    }

    /// Leaves the writer's work to its thread. While a group is being synced nothing can be
    /// answered anyway: the thread is woken for a batch only.
    fn alert(&self) {
        let shared = &self.0.shared;
        if !shared.syncing.load(Ordering::SeqCst) || shared.queue.len() >= JUDGE_BATCH {
            shared.judge_signal.raise();
        }
    }

    /// The durable state now. Later commits don't show in it.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySnapshots`], [`Error::Closed`].
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        if self.0.shared.latch.is_closed() {
            return Err(Error::Closed);
        }
        self.0.shared.snapshots.open(&self.0.shared)
    }

    /// What is stored under a key now. Sees every commit that was acknowledged before.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] as `UnknownDomain`, or what storage says.
    pub fn get(&self, domain: &DomainName, key: &Key) -> Result<Option<Arc<Record>>, Error> {
        self.snapshot()?.get(domain, key)
    }

    /// What a commit would get now. Changes nothing.
    ///
    /// # Errors
    ///
    /// As the commit would get it.
    pub fn judge(&self, commit: &Commit) -> Result<Receipt, Error> {
        self.snapshot()?.judge(commit)
    }

    /// The domain of this name.
    #[must_use]
    pub fn domain(&self, name: &DomainName) -> Option<Arc<Domain>> {
        let (_, revision) = self.0.shared.now();
        self.0.shared.domains.load().at(name, revision).cloned()
    }

    /// Every domain, by name.
    #[must_use]
    pub fn domains(&self) -> Vec<Arc<Domain>> {
        let (_, revision) = self.0.shared.now();
        self.0
            .shared
            .domains
            .load()
            .all_at(revision)
            .cloned()
            .collect()
    }

    /// Follows the changes of a domain.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] as `UnknownDomain`, [`Error::TooOld`], [`Error::NotReached`].
    pub fn watch(&self, request: WatchRequest) -> Result<Watch, Error> {
        let domain = self.snapshot()?.domain(&request.domain)?;
        Watch::begin(Arc::clone(&self.0.shared), domain, request)
    }

    /// The store's identity, state and figures.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.shared.status()
    }

    /// The last durable revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.shared.now().1
    }

    /// Closes the store: answers everything that was accepted, writes the index up to date, and
    /// says on disk that the log is complete. Calling it again does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Indeterminate`] if the store was poisoned, or if the log couldn't be closed: what
    /// was acknowledged is durable all the same.
    pub fn close(&self) -> Result<(), Error> {
        self.0.close()
    }
}

impl Store {
    /// What the roles share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }
}

impl Handle {
    fn close(&self) -> Result<(), Error> {
        if !self.shared.latch.close() {
            return Ok(());
        }
        self.shared.queue.close();
        while !self.shared.is_drained() {
            self.shared.drive();
            self.shared.sync_groups(usize::MAX);
            std::thread::park_timeout(DRAIN_POLL);
        }
        self.shared.stop();
        for thread in self.threads.lock().drain(..) {
            // A thread that panicked has poisoned the store, which is looked at below.
            let _ = thread.join();
        }
        self.shared.history.wake_all();
        let log = self.shared.log.lock().take();
        let closed = match log {
            Some(log) if !self.shared.latch.is_poisoned() => log.close().is_ok(),
            _ => false,
        };
        *self.lock.lock() = None;
        if closed {
            Ok(())
        } else {
            Err(Error::Indeterminate)
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "the store wasn't closed in good order");
        }
    }
}

impl Shared {
    /// Whether everything that was queued is answered.
    fn is_drained(&self) -> bool {
        let idle = self.with_writer(|writer| {
            writer.inbox.is_empty() && writer.group.is_empty() && self.queue.len() == 0
        });
        idle && self.log.try_lock().is_some()
    }

    /// Ends the service threads.
    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.judge_signal.raise();
        self.log_signal.raise();
        self.spare_signal.raise();
        self.checkpoint_signal.raise();
        self.leases.signal.raise();
        if let Some(audit) = &self.audit {
            audit.signal.raise();
        }
    }
}

/// Creates a directory and makes its name durable.
fn create_durably(dir: &Path) -> std::io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_durably(parent)?;
    }
    match std::fs::create_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => std::fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all(),
    }
}
