//! Waiting for a guard: a line for each, first come, first served.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use highwater_core::{
    Commit, DomainId, DomainName, ExpectedDestination, Guard, Holder, Identity, IntentUse,
    Mutation, Reason, Receipt, Ttl, Unavailable,
};
use parking_lot::Mutex;

use super::deadlines::Name;
use crate::error::Error;
use crate::shared::Shared;
use crate::store::Store;
use crate::wait::block_on_for;

/// A request for a lease.
#[derive(Clone, Debug)]
pub struct Acquire {
    /// The domain.
    pub domain: DomainName,
    /// The guard.
    pub guard: Guard,
    /// Who is to hold it.
    pub holder: Holder,
    /// How long the lease lasts unless it is renewed.
    pub ttl: Ttl,
    /// Whether the new term is also made the guard's fence in the same step, so that every earlier
    /// holder is fenced out from the moment on at which there is a new one. Almost always wanted.
    pub seal: bool,
    /// Whether a live lease of the same holder gives way.
    pub supersede: bool,
    /// The step of an intent that this is: asked again, it gets the same term again, and the lease
    /// isn't lengthened.
    pub intent: Option<IntentUse>,
    /// The destination that the caller means; `None` to not check it.
    pub destination: Option<ExpectedDestination>,
    /// Who calls, as the transport authenticated it.
    pub caller: Option<Identity>,
}

impl Acquire {
    /// A sealed lease on a guard.
    #[must_use]
    pub const fn new(domain: DomainName, guard: Guard, holder: Holder, ttl: Ttl) -> Self {
        Self {
            domain,
            guard,
            holder,
            ttl,
            seal: true,
            supersede: false,
            intent: None,
            destination: None,
            caller: None,
        }
    }

    /// The commit that asks for it.
    #[must_use]
    pub fn commit(&self) -> Commit {
        let mut commit = Commit::new(self.domain.clone()).with(Mutation::Acquire {
            guard: self.guard.clone(),
            holder: self.holder.clone(),
            ttl: self.ttl,
            seal: self.seal,
            supersede: self.supersede,
        });
        commit.intent = self.intent.clone();
        commit.destination = self.destination;
        commit.caller = self.caller.clone();
        commit
    }
}

/// One who waits.
#[derive(Debug)]
struct Place {
    number: u64,
    /// Whether the guard may have become free since its last try.
    called: bool,
    waker: Option<Waker>,
}

/// The lines of all guards that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: Mutex<BTreeMap<Name, VecDeque<Place>>>,
    waiting: AtomicUsize,
    next: AtomicU64,
}

impl Lines {
    fn join(&self, name: &Name, max: usize) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut lines = self.lines.lock();
        if self.waiting.load(Ordering::Relaxed) >= max {
            return None;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place {
            number,
            called: true,
            waker: None,
        };
        lines.entry(name.clone()).or_default().push_back(place);
        Some(number)
    }

    fn leave(&self, name: &Name, number: u64) {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get_mut(name) else {
            return;
        };
        let was_first = line.front().is_some_and(|place| place.number == number);
        line.retain(|place| place.number != number);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let waker = if was_first { call_first(line) } else { None };
        if line.is_empty() {
            lines.remove(name);
        }
        drop(lines);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Tells who is first in a guard's line that it may be free.
    pub(crate) fn call(&self, domain: DomainId, guard: &Guard) {
        let mut lines = self.lines.lock();
        if lines.is_empty() {
            return;
        }
        let waker = lines.get_mut(&(domain, guard.clone())).and_then(call_first);
        drop(lines);
        waker.into_iter().for_each(Waker::wake);
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Tells everybody to look: the store takes no more requests.
    pub(crate) fn call_all(&self) {
        let mut lines = self.lines.lock();
        let mut wakers = Vec::new();
        for place in lines.values_mut().flatten() {
            place.called = true;
            wakers.extend(place.waker.take());
        }
        drop(lines);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes the call of a place that is first in its line, or leaves a waker.
    fn take_call(&self, name: &Name, number: u64, waker: &Waker) -> bool {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get_mut(name) else {
            return true;
        };
        let mine = line.iter_mut().enumerate();
        let Some((at, place)) = mine.into_iter().find(|(_, place)| place.number == number) else {
            return true;
        };
        if at == 0 && place.called {
            place.called = false;
            return true;
        }
        place.waker = Some(waker.clone());
        false
    }
}

fn call_first(line: &mut VecDeque<Place>) -> Option<Waker> {
    let first = line.front_mut()?;
    first.called = true;
    first.waker.take()
}

/// A place in the line for a guard. It is given up when this is dropped.
pub struct Line {
    store: Store,
    request: Acquire,
    name: Name,
    number: u64,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl Line {
    pub(crate) fn join(store: &Store, request: Acquire) -> Result<Self, Error> {
        let domain = store.snapshot()?.domain(&request.domain)?;
        let shared = store.shared();
        let name = (domain.id, request.guard.clone());
        let max = shared.config.waiters_max;
        let number = shared.leases.lines.join(&name, max);
        let number = number.ok_or_else(|| shared.unavailable(Unavailable::Overloaded))?;
        Ok(Self {
            store: store.clone(),
            request,
            name,
            number,
        })
    }

    /// Waits until it is worth a try: whoever came before has gone, and the guard may have become
    /// free since the last try. Cancel-safe.
    pub async fn turn(&self) {
        let shared = self.shared();
        poll_fn(|context| {
            let lines = &shared.leases.lines;
            // Looked at after the waker is there: who ends the store calls everybody after that.
            let called = lines.take_call(&self.name, self.number, context.waker());
            if called || shared.latch.is_closed() || shared.latch.is_poisoned() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Tries. The refusal of a guard that isn't free comes back as data, and the line goes on: wait
    /// for the next turn.
    ///
    /// # Errors
    ///
    /// Every other refusal, and as [`Store::commit`].
    pub async fn attempt(&self) -> Result<Result<Receipt, Error>, Error> {
        self.judged(self.store.commit_async(self.request.commit()).await)
    }

    fn judged(&self, verdict: Result<Receipt, Error>) -> Result<Result<Receipt, Error>, Error> {
        let reason = verdict.as_ref().err().and_then(Error::rejection);
        match reason.map(|rejection| &rejection.reason) {
            Some(Reason::LeaseHeld { .. }) => Ok(verdict),
            Some(Reason::LeaseDelayed { remaining_ms }) => {
                let leases = &self.shared().leases;
                let (domain, guard) = &self.name;
                if let Some(now_ms) = leases.now_ms() {
                    leases.call_at(*domain, guard, now_ms.saturating_add(*remaining_ms));
                }
                Ok(verdict)
            }
            _ => verdict.map(Ok),
        }
    }

    fn shared(&self) -> &Shared {
        self.store.shared()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared().leases.lines.leave(&self.name, self.number);
    }
}

impl Store {
    /// Takes a place in the line for a guard.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] as `UnknownDomain`, or as `Overloaded` where as many wait as
    /// [`crate::Config::waiters_max`] allows.
    pub fn line_up(&self, request: Acquire) -> Result<Line, Error> {
        Line::join(self, request)
    }

    /// Acquires a lease, waiting in line for at most `limit`. Blocks the thread.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] as `LeaseHeld` or `LeaseDelayed` if the guard didn't become free in that
    /// time; else as [`Store::commit`].
    pub fn acquire(&self, request: Acquire, limit: Duration) -> Result<Receipt, Error> {
        let begun = Instant::now();
        let line = self.line_up(request)?;
        let mut refused = None;
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            if block_on_for(line.turn(), left).is_none() {
                // Whoever never had a turn hears how the guard stands.
                let commit = line.request.commit();
                return match refused {
                    Some(refused) => Err(refused),
                    None => self.judge(&commit).and_then(|_| self.commit(commit)),
                };
            }
            match line.judged(self.commit(line.request.commit()))? {
                Ok(receipt) => return Ok(receipt),
                Err(held) => refused = Some(held),
            }
        }
    }
}
