//! Recent effects in memory, ordered, in every version: what lies over the index.
//!
//! One thread writes; any number read without a lock. A reader that asks as of a revision never
//! sees a later one, so effects may be folded in before they are durable.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crossbeam_skiplist::SkipMap;
use highwater_core::limits::KEY_BYTES_MAX;
use highwater_core::{
    Change, DomainId, Effect, Fence, FenceChange, Guard, IntentChange, IntentId, IntentRecord, Key,
    KeyRange, LeaseChange, LeaseClock, LeaseRecord, RecordChange, Revision,
};
use parking_lot::Mutex;

use crate::versions::{KeyVersion, Versioned, Versions};
use crate::weight;

/// A range of effects in memory.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Tells the layers of a process apart.
    id: u64,
    records: SkipMap<(DomainId, Key), Arc<Versions>>,
    fences: Versioned<Guard, Fence>,
    intents: Versioned<IntentId, Arc<IntentRecord>>,
    leases: Versioned<Guard, Arc<LeaseRecord>>,
    /// The lease clock as it was noted last, here or below.
    clock: Mutex<LeaseClock>,
    bytes: AtomicUsize,
    /// The raw last revision folded in; 0 for none.
    last_revision: AtomicU64,
    /// The raw number of the last log frame that holds effects of this layer; 0 for none.
    last_lsn: AtomicU64,
}

/// Where a layer keeps the versions of a key. It doesn't keep the layer alive.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    layer: u64,
    versions: Weak<Versions>,
}

impl Default for Layer {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            records: SkipMap::new(),
            fences: Versioned::default(),
            intents: Versioned::default(),
            leases: Versioned::default(),
            clock: Mutex::default(),
            bytes: AtomicUsize::new(0),
            last_revision: AtomicU64::new(0),
            last_lsn: AtomicU64::new(0),
        }
    }
}

impl Layer {
    /// An empty one over what was noted of the lease clock.
    pub(crate) fn over(clock: LeaseClock) -> Self {
        Self {
            clock: Mutex::new(clock),
            ..Self::default()
        }
    }

    /// Folds an effect in. Only the one writer may call it.
    pub(crate) fn fold(&self, effect: &Effect) {
        match effect.change() {
            Change::Commit {
                domain,
                records,
                fences,
                intents,
                leases,
            } => {
                for change in records {
                    self.put(*domain, change, effect.revision(), None);
                }
                for change in fences {
                    self.raise(*domain, change, effect.revision());
                }
                for change in intents {
                    self.note(*domain, change, effect.revision());
                }
                for change in leases {
                    self.lend(*domain, change, effect.revision());
                }
            }
            Change::LeaseClock { now_ms, opened } => self.note_clock(*now_ms, *opened),
            Change::Genesis { .. } | Change::DomainCreated(_) => {}
        }
        self.advance(effect.revision());
    }

    /// Folds one record's change in, and says where it went; `known` is where an earlier one went.
    pub(crate) fn put(
        &self,
        domain: DomainId,
        change: &RecordChange,
        revision: Revision,
        known: Option<Slot>,
    ) -> Slot {
        let bytes = weight::of_record_change(change);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(slot) = known.filter(|slot| slot.layer == self.id)
            && let Some(versions) = slot.versions.upgrade()
        {
            versions.push(revision, change.record.clone());
            return slot;
        }
        let name = (domain, change.key.clone());
        let entry = self.records.get_or_insert_with(name, Arc::default);
        entry.value().push(revision, change.record.clone());
        Slot {
            layer: self.id,
            versions: Arc::downgrade(entry.value()),
        }
    }

    /// Folds one fence's change in.
    pub(crate) fn raise(&self, domain: DomainId, change: &FenceChange, revision: Revision) {
        let (guard, fence) = (change.guard.clone(), change.fence.clone());
        self.fences.put(domain, guard, revision, fence);
        let bytes = weight::of_fence_change(change);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Folds one intent's change in.
    pub(crate) fn note(&self, domain: DomainId, change: &IntentChange, revision: Revision) {
        let (id, record) = (change.id.clone(), Arc::clone(&change.record));
        self.intents.put(domain, id, revision, record);
        let bytes = weight::of_intent(&change.id, Some(&change.record));
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Folds one guard's leases in, and what they note of the lease clock.
    pub(crate) fn lend(&self, domain: DomainId, change: &LeaseChange, revision: Revision) {
        self.clock.lock().advance(change.record.clock_ms());
        let (guard, record) = (change.guard.clone(), Arc::clone(&change.record));
        self.leases.put(domain, guard, revision, record);
        let bytes = weight::of_leases(&change.guard, Some(&change.record));
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes what the lease clock showed, or that the store was opened then.
    pub(crate) fn note_clock(&self, now_ms: u64, opened: bool) {
        let mut clock = self.clock.lock();
        if opened {
            clock.open(now_ms);
        } else {
            clock.advance(now_ms);
        }
    }

    /// The lease clock as it was noted last.
    pub(crate) fn clock(&self) -> LeaseClock {
        self.clock.lock().clone()
    }

    /// Notes that everything up to a revision is folded in.
    pub(crate) fn advance(&self, revision: Revision) {
        self.last_revision.store(revision.get(), Ordering::Release);
    }

    /// An estimate of its memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The last revision folded in.
    pub(crate) fn last_revision(&self) -> Option<Revision> {
        Revision::new(self.last_revision.load(Ordering::Acquire))
    }

    /// The last log frame that holds effects of this layer, raw; 0 for none.
    pub(crate) fn last_lsn(&self) -> u64 {
        self.last_lsn.load(Ordering::Acquire)
    }

    /// Notes the log frame that made the layer's latest effects durable.
    pub(crate) fn set_last_lsn(&self, lsn: u64) {
        self.last_lsn.store(lsn, Ordering::Release);
    }

    /// The newest version of a key that isn't later than `at`.
    pub(crate) fn record(&self, domain: DomainId, key: &Key, at: Revision) -> Option<KeyVersion> {
        let found = self.records.get(&(domain, key.clone()))?;
        found.value().at(at)
    }

    /// The newest fence of a guard that isn't later than `at`.
    pub(crate) fn fence(&self, domain: DomainId, guard: &Guard, at: Revision) -> Option<Fence> {
        self.fences.at(domain, guard, at)
    }

    /// The newest record of an intent that isn't later than `at`.
    pub(crate) fn intent(
        &self,
        domain: DomainId,
        id: &IntentId,
        at: Revision,
    ) -> Option<Arc<IntentRecord>> {
        self.intents.at(domain, id, at)
    }

    /// What is stored of a guard's leases, in the newest version that isn't later than `at`.
    pub(crate) fn lease(
        &self,
        domain: DomainId,
        guard: &Guard,
        at: Revision,
    ) -> Option<Arc<LeaseRecord>> {
        self.leases.at(domain, guard, at)
    }

    /// The guards with leases behind one, or all, in order, each in its newest version that isn't
    /// later than `at`.
    pub(crate) fn leases_after<'a>(
        &'a self,
        domain: DomainId,
        after: Option<&Guard>,
        at: Revision,
    ) -> impl Iterator<Item = (Guard, Arc<LeaseRecord>)> + use<'a> {
        let start = after.cloned().or_else(|| Guard::new([]).ok());
        let after = after.cloned();
        let known = start.map(|start| self.leases.from(domain, start, at));
        let known = known.into_iter().flatten();
        known.filter(move |(guard, _)| after.as_ref() != Some(guard))
    }

    /// Every guard with leases in its newest version, ordered by domain and guard.
    pub(crate) fn newest_leases(
        &self,
    ) -> impl Iterator<Item = (DomainId, Guard, Arc<LeaseRecord>)> + '_ {
        self.leases.newest()
    }

    /// The intents behind one, or all, in order, each in its newest record that isn't later than
    /// `at`.
    pub(crate) fn intents_after<'a>(
        &'a self,
        domain: DomainId,
        after: Option<&IntentId>,
        at: Revision,
    ) -> impl Iterator<Item = (IntentId, Arc<IntentRecord>)> + use<'a> {
        // No id is empty, so this one lies before all that can follow.
        let start = after.cloned().or_else(|| IntentId::new([0]).ok());
        let after = after.cloned();
        let known = start.map(|start| self.intents.from(domain, start, at));
        let known = known.into_iter().flatten();
        known.filter(move |(id, _)| after.as_ref() != Some(id))
    }

    /// Every intent in its newest record, ordered by domain and id.
    pub(crate) fn newest_intents(
        &self,
    ) -> impl Iterator<Item = (DomainId, IntentId, Arc<IntentRecord>)> + '_ {
        self.intents.newest()
    }

    /// The keys of a range in order, each in its newest version that isn't later than `at`.
    pub(crate) fn range<'a>(
        &'a self,
        domain: DomainId,
        range: &'a KeyRange,
        at: Revision,
    ) -> impl Iterator<Item = (Key, KeyVersion)> + 'a {
        // No key is empty or longer than the bound, so these two lie before all that can follow.
        let head = range.start.get(..KEY_BYTES_MAX).unwrap_or(&range.start);
        let lowest = Key::new(head).or_else(|_| Key::new([0]));
        let start = lowest.map_or(Bound::Unbounded, |key| Bound::Included((domain, key)));
        self.records
            .range((start, Bound::Unbounded))
            .take_while(move |entry| {
                let (of, key) = entry.key();
                let below = range
                    .end
                    .as_ref()
                    .is_none_or(|end| key.as_bytes() < end.as_slice());
                *of == domain && below
            })
            .filter(|entry| entry.key().1.as_bytes() >= range.start.as_slice())
            .filter_map(move |entry| {
                let version = entry.value().at(at)?;
                Some((entry.key().1.clone(), version))
            })
    }

    /// Every key in its newest version, ordered by domain and key.
    pub(crate) fn newest_records(&self) -> impl Iterator<Item = (DomainId, Key, KeyVersion)> + '_ {
        self.records.iter().filter_map(|entry| {
            let (domain, key) = entry.key();
            let version = entry.value().at(Revision::MAX)?;
            Some((*domain, key.clone(), version))
        })
    }

    /// Every fence in its newest version, ordered by domain and guard.
    pub(crate) fn newest_fences(&self) -> impl Iterator<Item = (DomainId, Guard, Fence)> + '_ {
        self.fences.newest()
    }
}
