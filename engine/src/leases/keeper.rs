//! The keeper: records that leases have lapsed, notes the clock while there are any, and calls
//! those who wait for a time.

use std::time::Duration;

use highwater_core::limits::LEASE_MUTATIONS_MAX;
use highwater_core::{Commit, DomainId, Guard, LeaseId, Mutation, Unavailable};

use crate::error::Error;
use crate::queue::Request;
use crate::shared::Shared;
use crate::ticket::promise;
use crate::wait::block_on;

/// How often the clock is noted while there are leases and the disk isn't full: a crash sets it
/// back by no more.
const TICK_MS: u64 = 1_000;
/// How long to wait after a refusal.
const RETRY: Duration = Duration::from_millis(200);

/// Serves until the store stops.
pub(crate) fn keep(shared: &Shared) {
    shared.leases.signal.attach();
    // What was refused as a batch is tried one by one: one of them may just have been ended.
    let mut batch = LEASE_MUTATIONS_MAX;
    let mut noted_ms = 0;
    let mut wait = shared.leases.live() == 0;
    while !shared.is_stopping() {
        if wait {
            shared.leases.signal.wait(pause(shared, noted_ms));
        }
        wait = true;
        if shared.is_stopping() {
            break;
        }
        if shared.latch.is_poisoned() {
            shared.leases.lines.call_all();
            shared.leases.signal.wait(Some(RETRY));
            continue;
        }
        let Some(now_ms) = shared.leases.now_ms() else {
            if shared.leases.live() > 0 && ask(shared, Request::NoteClock).is_err() {
                shared.leases.signal.wait(Some(RETRY));
            }
            wait = shared.leases.now_ms().is_none();
            continue;
        };
        let called = shared.leases.deadlines.lock().due_calls(now_ms);
        for (domain, guard) in called {
            shared.leases.lines.call(domain, &guard);
        }
        let lapsed = shared.leases.deadlines.lock().lapsed(now_ms, batch);
        if let Some((domain, lapsed)) = lapsed {
            let longest = lapsed.first().cloned();
            let ended = expire(shared, domain, lapsed);
            match ended {
                Ok(()) => batch = LEASE_MUTATIONS_MAX,
                Err(_) if batch > 1 => batch = 1,
                Err(error) => {
                    tracing::debug!(%error, "a lapsed lease isn't ended yet");
                    let later_ms = now_ms.saturating_add(TICK_MS);
                    if let Some((guard, lease)) = longest {
                        let mut deadlines = shared.leases.deadlines.lock();
                        deadlines.defer(domain, &guard, lease, later_ms);
                    }
                }
            }
            wait = false;
        } else if shared.leases.live() > 0 && now_ms.saturating_sub(noted_ms) >= TICK_MS {
            noted_ms = now_ms;
            // What room a full disk has left is for what frees some. A crash then sets the clock
            // back further, and leases last longer for it.
            if !shared.is_full() {
                let _ = ask(shared, Request::NoteClock);
            }
        }
    }
    shared.leases.lines.call_all();
}

/// How long there is nothing to do; `None` for until something changes.
fn pause(shared: &Shared, noted_ms: u64) -> Option<Duration> {
    let live = shared.leases.live() > 0;
    let Some(now_ms) = shared.leases.now_ms() else {
        return live.then_some(RETRY);
    };
    let tick = live.then(|| noted_ms.saturating_add(TICK_MS));
    let next = shared.leases.deadlines.lock().next_ms();
    let at_ms = next.into_iter().chain(tick).min()?;
    Some(Duration::from_millis(at_ms.saturating_sub(now_ms)))
}

fn expire(shared: &Shared, id: DomainId, lapsed: Vec<(Guard, LeaseId)>) -> Result<(), Error> {
    let domains = shared.domains.load();
    let Some(domain) = domains.by_id(id) else {
        return Err(shared.unavailable(Unavailable::Incomplete));
    };
    let mut commit = Commit::new(domain.name.clone());
    for (guard, lease) in lapsed {
        commit = commit.with(Mutation::Expire { guard, lease });
    }
    ask(shared, Request::commit(commit))
}

/// Puts a request into the queue, as everybody does, and waits for its verdict.
fn ask(shared: &Shared, request: Request) -> Result<(), Error> {
    let (promise, waiting) = promise();
    block_on(shared.queue.push_when_room(request, promise))?;
    shared.judge_signal.raise();
    block_on(waiting).map(|_| ())
}
