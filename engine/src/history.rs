//! The latest durable effects, for watches. One bounded ring for all of them: a slow watcher costs
//! nothing, and is told when the ring has gone past it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use highwater_core::{Change, Effect, Revision};
use parking_lot::Mutex;

use crate::weight;

/// What an effect takes beside its contents, in bytes.
const EFFECT_OVERHEAD_BYTES: usize = 256;

#[derive(Debug)]
struct Entry {
    effect: Arc<Effect>,
    lsn: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Every event after this revision is in the ring.
    oldest: Revision,
    /// Who waits, by the number of the watch: no more than there are watches.
    wakers: BTreeMap<u64, Waker>,
}

/// The ring of durable effects.
#[derive(Debug)]
pub(crate) struct History {
    ring: Mutex<Ring>,
    bytes_max: usize,
    watches: AtomicU64,
}

/// What a watcher finds in the ring.
#[derive(Debug)]
pub(crate) enum Look {
    /// The next effects after its position, oldest first.
    Found(Vec<Arc<Effect>>),
    /// Nothing yet; the waker will be called.
    Later,
    /// The ring has gone past its position.
    TooOld(Revision),
}

impl History {
    /// An empty ring that knows everything after `oldest`.
    pub(crate) fn new(bytes_max: usize, oldest: Revision) -> Self {
        let ring = Ring {
            entries: VecDeque::new(),
            bytes: 0,
            oldest,
            wakers: BTreeMap::new(),
        };
        Self {
            ring: Mutex::new(ring),
            bytes_max,
            watches: AtomicU64::new(0),
        }
    }

    /// Adds durable effects of one log frame, oldest first, and wakes who waits.
    pub(crate) fn push(&self, effects: impl IntoIterator<Item = Arc<Effect>>, lsn: u64) {
        let mut ring = self.ring.lock();
        for effect in effects {
            let bytes = bytes_of(&effect);
            ring.bytes += bytes;
            ring.entries.push_back(Entry { effect, lsn, bytes });
        }
        while ring.bytes > self.bytes_max {
            let Some(gone) = ring.entries.pop_front() else {
                break;
            };
            ring.bytes -= gone.bytes;
            ring.oldest = gone.effect.revision();
        }
        let wakers = std::mem::take(&mut ring.wakers);
        drop(ring);
        wakers.into_values().for_each(Waker::wake);
    }

    /// Wakes everybody, so that they see that the store was closed.
    pub(crate) fn wake_all(&self) {
        let wakers = std::mem::take(&mut self.ring.lock().wakers);
        wakers.into_values().for_each(Waker::wake);
    }

    /// The revision after which every event is known.
    pub(crate) fn oldest(&self) -> Revision {
        self.ring.lock().oldest
    }

    /// The oldest log frame that the ring still has effects of, raw.
    pub(crate) fn oldest_lsn(&self) -> Option<u64> {
        self.ring.lock().entries.front().map(|entry| entry.lsn)
    }

    /// A number for a new watch.
    pub(crate) fn number(&self) -> u64 {
        self.watches.fetch_add(1, Ordering::Relaxed)
    }

    /// Wakes a watch no more: it is gone.
    pub(crate) fn forget(&self, watch: u64) {
        self.ring.lock().wakers.remove(&watch);
    }

    /// How many watches wait.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.ring.lock().wakers.len()
    }

    /// Looks for up to `max` effects after a revision, for the watch of this number.
    pub(crate) fn after(&self, watch: u64, revision: Revision, max: usize, waker: &Waker) -> Look {
        let mut ring = self.ring.lock();
        if revision < ring.oldest {
            return Look::TooOld(ring.oldest);
        }
        let from = ring
            .entries
            .partition_point(|entry| entry.effect.revision() <= revision);
        let found: Vec<_> = ring
            .entries
            .iter()
            .skip(from)
            .take(max)
            .map(|e| Arc::clone(&e.effect))
            .collect();
        if found.is_empty() {
            ring.wakers.insert(watch, waker.clone());
            return Look::Later;
        }
        Look::Found(found)
    }
}

fn bytes_of(effect: &Effect) -> usize {
    let Change::Commit {
        records,
        fences,
        intents,
        ..
    } = effect.change()
    else {
        return EFFECT_OVERHEAD_BYTES;
    };
    let rows: usize = records.iter().map(weight::of_record_change).sum();
    let raised: usize = fences.iter().map(weight::of_fence_change).sum();
    let noted = intents.iter();
    let noted: usize = noted
        .map(|change| weight::of_intent(&change.id, Some(&change.record)))
        .sum();
    rows + raised + noted + EFFECT_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use highwater_core::{DomainName, KeyRange, Policy};

    use crate::store::Store;
    use crate::watch::WatchRequest;

    #[test]
    fn a_watch_that_is_gone_leaves_nothing_to_wake() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), crate::Config::default()).unwrap();
        let name = DomainName::new("jobs").unwrap();
        store
            .create_domain(name.clone(), Policy::default(), None)
            .unwrap();
        let history = &store.shared().history;
        let watch = || {
            let request = WatchRequest {
                domain: name.clone(),
                range: KeyRange::all(),
                fences: true,
                leases: true,
                after: None,
            };
            store.watch(request).unwrap()
        };
        let mut kept = watch();
        for _ in 0..10 {
            let mut watch = watch();
            for watch in [&mut watch, &mut kept] {
                assert!(watch.next_timeout(Duration::ZERO).unwrap().is_none());
            }
            assert_eq!(history.waiting(), 2);
        }
        assert_eq!(history.waiting(), 1);
        drop(kept);
        assert_eq!(history.waiting(), 0);
    }
}
