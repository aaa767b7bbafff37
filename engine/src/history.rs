//! The latest durable effects, for watches. One bounded ring for all of them: a slow watcher costs
//! nothing, and is told when the ring has gone past it.

use std::collections::VecDeque;
use std::sync::Arc;
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
    wakers: Vec<Waker>,
}

/// The ring of durable effects.
#[derive(Debug)]
pub(crate) struct History {
    ring: Mutex<Ring>,
    bytes_max: usize,
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
            wakers: Vec::new(),
        };
        Self {
            ring: Mutex::new(ring),
            bytes_max,
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
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Wakes everybody, so that they see that the store was closed.
    pub(crate) fn wake_all(&self) {
        let wakers = std::mem::take(&mut self.ring.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The revision after which every event is known.
    pub(crate) fn oldest(&self) -> Revision {
        self.ring.lock().oldest
    }

    /// The oldest log frame that the ring still has effects of, raw.
    pub(crate) fn oldest_lsn(&self) -> Option<u64> {
        self.ring.lock().entries.front().map(|entry| entry.lsn)
    }

    /// Looks for up to `max` effects after a revision.
    pub(crate) fn after(&self, revision: Revision, max: usize, waker: &Waker) -> Look {
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
            if !ring.wakers.iter().any(|known| known.will_wake(waker)) {
                ring.wakers.push(waker.clone());
            }
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
