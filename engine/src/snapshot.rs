//! Reads at one revision.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use highwater_core::{
    Availability, Commit, Domain, DomainName, Fence, Footprint, Guard, GuardedRead, Key, KeyRange,
    LeaseClock, Observed, Reason, Receipt, Record, Rejection, Revision, Verdict, View, admit_read,
    decide,
};
use parking_lot::Mutex;

use crate::base::{At, Base};
use crate::clock::wall_clock_ms;
use crate::digest::of_command;
use crate::error::{Error, StorageError};
use crate::shared::Shared;

/// Most rows of one page.
pub const PAGE_ROWS_MAX: usize = 10_000;
/// A page ends once it has so many bytes of keys and values; it always has at least one row.
pub const PAGE_BYTES_MAX: usize = 2 << 20;

/// How often a read is tried again while the index is being opened anew after a full disk.
const AWAY_TRIES: u32 = 100;
const FAILED_TRIES: u32 = 10;
const REOPEN_WAIT: Duration = Duration::from_millis(10);

/// The durable state at one revision. Cheap to clone. It may be held for
/// [`crate::Config::snapshot_age`]; after that every read from it is [`Error::SnapshotExpired`].
#[derive(Clone, Debug)]
pub struct Snapshot(Arc<Held>);

#[derive(Debug)]
pub(crate) struct Held {
    shared: Arc<Shared>,
    base: ArcSwapOption<Base>,
    revision: Revision,
    begun: Instant,
}

/// A part of an ordered listing.
#[derive(Clone, Debug)]
pub struct Page {
    /// The rows, ordered by key.
    pub records: Vec<(Key, Arc<Record>)>,
    /// The first key of the next page; `None` at the end.
    pub next: Option<Key>,
    /// The revision that the page shows.
    pub revision: Revision,
}

/// The snapshots that are open, so that old ones can be ended.
#[derive(Debug)]
pub(crate) struct Registry {
    open: Mutex<Vec<Weak<Held>>>,
    max: usize,
    age: Duration,
}

impl Registry {
    /// No snapshots, with bounds.
    pub(crate) const fn new(max: usize, age: Duration) -> Self {
        Self {
            open: Mutex::new(Vec::new()),
            max,
            age,
        }
    }

    /// Opens a snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySnapshots`].
    pub(crate) fn open(&self, shared: &Arc<Shared>) -> Result<Snapshot, Error> {
        let (base, revision) = shared.now();
        let mut open = self.open.lock();
        if open.len() >= self.max {
            open.retain(|held| held.strong_count() > 0);
        }
        if open.len() >= self.max {
            return Err(Error::TooManySnapshots);
        }
        let held = Arc::new(Held {
            shared: Arc::clone(shared),
            base: ArcSwapOption::from(Some(base)),
            revision,
            begun: Instant::now(),
        });
        open.push(Arc::downgrade(&held));
        Ok(Snapshot(held))
    }

    /// Ends the snapshots that are too old.
    pub(crate) fn expire(&self) {
        self.open.lock().retain(|held| match held.upgrade() {
            None => false,
            Some(held) if held.begun.elapsed() > self.age => {
                held.base.store(None);
                false
            }
            Some(_) => true,
        });
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open
            .lock()
            .iter()
            .filter(|held| held.strong_count() > 0)
            .count()
    }
}

impl Shared {
    /// The newest durable state. The revision is read before the base, so that the base holds every
    /// effect up to it; a checkpoint in between may have gone further, and is durable as well.
    pub(crate) fn now(&self) -> (Arc<Base>, Revision) {
        let durable = self.durable();
        let base = self.base.load_full();
        let revision = durable.max(base.indexed);
        (base, revision)
    }
}

impl Snapshot {
    /// The revision that it shows.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    /// The lease clock as it shows now, over what the newest state here has noted of it.
    pub(crate) fn running_clock(&self) -> Result<LeaseClock, Error> {
        let base = self.0.base.load_full().ok_or(Error::SnapshotExpired)?;
        Ok(self.0.shared.lease_clock(&base))
    }

    /// Reads, and tries again where the index was opened anew meanwhile: what it holds is the same.
    /// An index that failed isn't opened anew before the store is.
    pub(crate) fn read<T>(
        &self,
        read: impl Fn(At<'_>) -> Result<T, StorageError>,
    ) -> Result<T, Error> {
        let mut tries = 0;
        loop {
            let base = self.0.base.load_full().ok_or(Error::SnapshotExpired)?;
            match read(base.at(self.0.revision)) {
                Ok(value) => return Ok(value),
                Err(StorageError::Index { .. }) if tries < self.patience() => {
                    tries += 1;
                    self.refresh(&base);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How often a failed read of the index is tried again: while it is known to be away, and a few
    /// times in case that this isn't known yet.
    fn patience(&self) -> u32 {
        let latch = &self.0.shared.latch;
        if latch.is_poisoned() {
            0
        } else if latch.is_index_away() {
            AWAY_TRIES
        } else {
            FAILED_TRIES
        }
    }

    /// Takes over the newest base if it shows this revision too, else waits a little.
    fn refresh(&self, held: &Arc<Base>) {
        let newest = self.0.shared.base.load_full();
        if Arc::ptr_eq(&newest, held) || newest.indexed > self.0.revision {
            std::thread::park_timeout(REOPEN_WAIT);
        } else {
            // Unless it was ended meanwhile: it would never be ended again.
            let held = Some(Arc::clone(held));
            self.0.base.compare_and_swap(&held, Some(newest));
        }
    }

    /// A view of destination and domain.
    fn view(&self, name: &DomainName) -> Result<View, Error> {
        let base = self.0.base.load_full().ok_or(Error::SnapshotExpired)?;
        let latch = &self.0.shared.latch;
        let availability = if latch.is_poisoned() {
            Availability::Poisoned
        } else {
            Availability::Ready
        };
        let destination = self
            .0
            .shared
            .destination_view(&base, self.0.revision, availability);
        let domain = self
            .0
            .shared
            .domains
            .load()
            .at(name, self.0.revision)
            .cloned();
        Ok(View::new(destination, domain))
    }

    /// The domain of this name.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] as `UnknownDomain` if there was none.
    pub fn domain(&self, name: &DomainName) -> Result<Arc<Domain>, Error> {
        let view = self.view(name)?;
        let unknown = || {
            let observed = Observed::of(&view);
            Error::Rejected(Box::new(Rejection {
                reason: Reason::UnknownDomain,
                observed,
            }))
        };
        view.domain.clone().ok_or_else(unknown)
    }

    /// Every domain, by name.
    #[must_use]
    pub fn domains(&self) -> Vec<Arc<Domain>> {
        self.0
            .shared
            .domains
            .load()
            .all_at(self.0.revision)
            .cloned()
            .collect()
    }

    /// What is stored under a key.
    ///
    /// # Errors
    ///
    /// [`Error`] for an unknown domain, an expired snapshot, or storage that fails.
    pub fn get(&self, domain: &DomainName, key: &Key) -> Result<Option<Arc<Record>>, Error> {
        let domain = self.domain(domain)?;
        self.read(|at| at.record(domain.id, key))
    }

    /// The fence of a guard in the domain's current epoch.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::get`].
    pub fn fence(&self, domain: &DomainName, guard: &Guard) -> Result<Option<Fence>, Error> {
        let domain = self.domain(domain)?;
        self.read(|at| at.fence(&domain, guard))
    }

    /// The first rows of a range, up to `limit`, [`PAGE_ROWS_MAX`] and [`PAGE_BYTES_MAX`].
    ///
    /// # Errors
    ///
    /// As [`Snapshot::get`].
    pub fn scan(&self, domain: &DomainName, range: &KeyRange, limit: usize) -> Result<Page, Error> {
        let domain = self.domain(domain)?;
        self.read(|at| {
            let mut page = Page {
                records: Vec::new(),
                next: None,
                revision: self.0.revision,
            };
            let mut bytes = 0_usize;
            for row in at.scan(domain.id, range)? {
                let (key, record) = row?;
                if page.records.len() >= limit.clamp(1, PAGE_ROWS_MAX) || bytes >= PAGE_BYTES_MAX {
                    page.next = Some(key);
                    break;
                }
                bytes += key.as_bytes().len() + record.value.as_bytes().len();
                page.records.push((key, record));
            }
            Ok(page)
        })
    }

    /// The rows under a guard from `from` on, bounded as [`Snapshot::scan`].
    ///
    /// # Errors
    ///
    /// As [`Snapshot::get`].
    pub fn scan_guard(
        &self,
        domain: &DomainName,
        guard: &Guard,
        from: Option<&Key>,
        limit: usize,
    ) -> Result<Page, Error> {
        let span = self.domain(domain)?.policy.keys_of(guard);
        let not_before = |key: &Key| from.is_none_or(|from| key >= from);
        let mut page = match span.below {
            None => Page {
                records: Vec::new(),
                next: None,
                revision: self.0.revision,
            },
            Some(mut range) => {
                if let Some(from) = from {
                    range.start = range.start.max(from.as_bytes().to_vec());
                }
                self.scan(domain, &range, limit)?
            }
        };
        // The key that is the guard itself comes before every key below it.
        if let Some(key) = span.exact.filter(not_before)
            && let Some(record) = self.get(domain, &key)?
        {
            if page.records.len() >= limit.clamp(1, PAGE_ROWS_MAX) {
                page.next = page.records.pop().map(|(key, _)| key);
            }
            page.records.insert(0, (key, record));
        }
        Ok(page)
    }

    /// Judges whether a guarded read's authority is still the highest.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] as a write under that authority would get it.
    pub fn admit(&self, read: &GuardedRead) -> Result<(), Error> {
        let mut view = self.view(&read.domain)?;
        if let Some(domain) = view.domain.clone() {
            let needs = Footprint::of_read(read, &domain.policy);
            view = self.filled(&view, &domain, &needs)?;
        }
        Ok(admit_read(&view, read)?)
    }

    /// What a commit would get if this were the latest state. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] as the commit would get it.
    pub fn judge(&self, commit: &Commit) -> Result<Receipt, Error> {
        let mut view = self.view(&commit.domain)?;
        if let Some(domain) = view.domain.clone() {
            let needs = Footprint::of_commit(commit, &domain.policy);
            view = self.filled(&view, &domain, &needs)?;
        }
        view.command_digest = of_command(commit);
        // An intent's record has room for the time of each step: its size is judged with it.
        view.advisory_time_ms = Some(wall_clock_ms());
        match decide(&view, commit) {
            Verdict::Accepted(accepted) => Ok(Receipt {
                advisory_time_ms: None,
                ..accepted.receipt
            }),
            Verdict::Replayed(receipt) => Ok(*receipt),
            Verdict::Rejected(rejection) => Err(Error::Rejected(rejection)),
        }
    }

    fn filled(&self, view: &View, domain: &Domain, needs: &Footprint) -> Result<View, Error> {
        let leased = !needs.leases.is_empty();
        let clock = leased.then(|| self.running_clock()).transpose()?;
        self.read(|at| {
            let mut filled = view.clone();
            filled.lease_clock.clone_from(&clock);
            at.fetch(domain, needs, &mut filled)?;
            Ok(filled)
        })
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::Policy;

    use super::*;
    use crate::store::Store;

    #[test]
    fn a_snapshot_that_was_ended_amid_a_read_stays_ended() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), crate::Config::default()).unwrap();
        let name = DomainName::new("jobs").unwrap();
        store
            .create_domain(name.clone(), Policy::default(), None)
            .unwrap();
        let shared = store.shared();
        let renew = || {
            shared.with_writer(|writer| writer.group.layer = shared.begin_layer(writer));
        };
        for ended in [false, true] {
            let snapshot = store.snapshot().unwrap();
            let held = snapshot.0.base.load_full().unwrap();
            renew();
            if ended {
                snapshot.0.base.store(None);
            }
            snapshot.refresh(&held);
            let now = snapshot.0.base.load_full();
            assert_eq!(now.is_none(), ended);
            assert!(now.is_none_or(|now| !Arc::ptr_eq(&now, &held)));
            let read = snapshot.get(&name, &Key::new("k").unwrap());
            assert_eq!(matches!(read, Err(Error::SnapshotExpired)), ended);
        }
    }
}
