//! Recent effects in memory, ordered, in every version: what lies over the index.
//!
//! One thread writes; any number read without a lock. A reader that asks as of a revision never
//! sees a later one, so effects may be folded in before they are durable.

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crossbeam_skiplist::SkipMap;
use highwater_core::limits::KEY_BYTES_MAX;
use highwater_core::{
    Change, DomainId, Effect, Fence, FenceChange, Guard, IntentChange, IntentId, IntentRecord, Key,
    KeyRange, RecordChange, Revision,
};

use crate::versions::{KeyVersion, Versions};
use crate::weight;

/// A range of effects in memory.
#[derive(Debug)]
pub(crate) struct Layer {
    /// Tells the layers of a process apart.
    id: u64,
    records: SkipMap<(DomainId, Key), Arc<Versions>>,
    fences: SkipMap<(DomainId, Guard, Reverse<Revision>), Fence>,
    intents: SkipMap<(DomainId, IntentId, Reverse<Revision>), Arc<IntentRecord>>,
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
            fences: SkipMap::new(),
            intents: SkipMap::new(),
            bytes: AtomicUsize::new(0),
            last_revision: AtomicU64::new(0),
            last_lsn: AtomicU64::new(0),
        }
    }
}

impl Layer {
    /// Folds an effect in. Only the one writer may call it.
    pub(crate) fn fold(&self, effect: &Effect) {
        if let Change::Commit {
            domain,
            records,
            fences,
            intents,
            leases: _,
        } = effect.change()
        {
            for change in records {
                self.put(*domain, change, effect.revision(), None);
            }
            for change in fences {
                self.raise(*domain, change, effect.revision());
            }
            for change in intents {
                self.note(*domain, change, effect.revision());
            }
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
        let name = (domain, change.guard.clone(), Reverse(revision));
        self.fences.insert(name, change.fence.clone());
        let bytes = weight::of_fence_change(change);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Folds one intent's change in.
    pub(crate) fn note(&self, domain: DomainId, change: &IntentChange, revision: Revision) {
        let name = (domain, change.id.clone(), Reverse(revision));
        self.intents.insert(name, Arc::clone(&change.record));
        let bytes = weight::of_intent(&change.id, Some(&change.record));
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
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
        let from = (domain, guard.clone(), Reverse(at));
        let found = self.fences.lower_bound(Bound::Included(&from))?;
        let (of, name, _) = found.key();
        (*of == domain && name == guard).then(|| found.value().clone())
    }

    /// The newest record of an intent that isn't later than `at`.
    pub(crate) fn intent(
        &self,
        domain: DomainId,
        id: &IntentId,
        at: Revision,
    ) -> Option<Arc<IntentRecord>> {
        let from = (domain, id.clone(), Reverse(at));
        let found = self.intents.lower_bound(Bound::Included(&from))?;
        let (of, name, _) = found.key();
        (*of == domain && name == id).then(|| Arc::clone(found.value()))
    }

    /// The intents behind one, or all, in order, each in its newest record that isn't later than
    /// `at`.
    pub(crate) fn intents_after<'a>(
        &'a self,
        domain: DomainId,
        after: Option<&IntentId>,
        at: Revision,
    ) -> impl Iterator<Item = (IntentId, Arc<IntentRecord>)> + use<'a> {
        let lowest = after.cloned().or_else(|| IntentId::new([0]).ok());
        let start = lowest.map_or(Bound::Unbounded, |id| {
            Bound::Included((domain, id, Reverse(Revision::MAX)))
        });
        let mut last = after.cloned();
        self.intents
            .range((start, Bound::Unbounded))
            .take_while(move |entry| entry.key().0 == domain)
            .filter(move |entry| entry.key().2.0 <= at)
            .filter_map(move |entry| {
                let id = &entry.key().1;
                if last.as_ref() == Some(id) {
                    return None;
                }
                last = Some(id.clone());
                Some((id.clone(), Arc::clone(entry.value())))
            })
    }

    /// Every intent in its newest record, ordered by domain and id.
    pub(crate) fn newest_intents(
        &self,
    ) -> impl Iterator<Item = (DomainId, IntentId, Arc<IntentRecord>)> + '_ {
        let mut last: Option<(DomainId, IntentId)> = None;
        self.intents.iter().filter_map(move |entry| {
            let (domain, id, _) = entry.key();
            let seen = last
                .as_ref()
                .is_some_and(|(of, name)| of == domain && name == id);
            if seen {
                return None;
            }
            last = Some((*domain, id.clone()));
            Some((*domain, id.clone(), Arc::clone(entry.value())))
        })
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
        let mut last: Option<(DomainId, Guard)> = None;
        self.fences.iter().filter_map(move |entry| {
            let (domain, guard, _) = entry.key();
            let seen = last
                .as_ref()
                .is_some_and(|(of, name)| of == domain && name == guard);
            if seen {
                return None;
            }
            last = Some((*domain, guard.clone()));
            Some((*domain, guard.clone(), entry.value().clone()))
        })
    }
}
