//! The clock that leases lapse by: the store's own run time, and nothing else.
//!
//! It stands still while the store is closed, and a crash may set it back to what was noted last.
//! Therefore a lease that was live when the store closed lasts its whole time again from the next
//! opening on, once for each renewal.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::domain::DomainState;
use crate::effect::{Change, Effect};
use crate::lease::Lease;
use crate::limits::{OPENINGS_KEPT, TTL_MS_MAX};
use crate::rejection::{Reason, Rejection, Unavailable};
use crate::rules;
use crate::view::View;

/// Openings further back decide nothing: whatever they could lengthen has lapsed, and its grace has
/// passed, with or without them.
const OPENING_MATTERS_MS: u64 = 4 * TTL_MS_MAX;

/// What the lease clock shows, and when the store was opened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeaseClock {
    /// The time, in milliseconds of the store's run time. It never falls while the store is open.
    pub now_ms: u64,
    /// What the clock showed when the store was opened, each time that still matters, rising. An
    /// opening takes a millisecond, so it is above all that was noted before it.
    pub openings: Arc<[u64]>,
}

impl LeaseClock {
    /// When a span of so many milliseconds ends that began at this time: the full span again from
    /// the first opening after its beginning, if it hadn't ended before that opening.
    #[must_use]
    pub fn end_ms(&self, began_ms: u64, span_ms: u64) -> u64 {
        let end = began_ms.saturating_add(span_ms);
        let first = self
            .openings
            .partition_point(|opening| *opening <= began_ms);
        match self.openings.get(first) {
            Some(opening) if *opening <= end => opening.saturating_add(span_ms),
            _ => end,
        }
    }

    /// When a lease lapses unless it is renewed.
    #[must_use]
    pub fn deadline_ms(&self, lease: &Lease) -> u64 {
        self.end_ms(lease.renewed_clock_ms, lease.ttl.get())
    }

    /// For how long a lease lasts yet, in milliseconds; 0 for one that has lapsed.
    #[must_use]
    pub fn remaining_ms(&self, lease: &Lease) -> u64 {
        self.deadline_ms(lease).saturating_sub(self.now_ms)
    }

    /// Goes on to a time that was noted; never back.
    pub const fn advance(&mut self, now_ms: u64) {
        if now_ms > self.now_ms {
            self.now_ms = now_ms;
        }
    }

    /// Notes an opening. Where as many as are kept still matter it isn't noted, and leases go on
    /// with what was left of their time.
    pub fn open(&mut self, now_ms: u64) {
        self.advance(now_ms);
        let matters = |opening: &u64| opening.saturating_add(OPENING_MATTERS_MS) > now_ms;
        let mut openings: Vec<u64> = self.openings.iter().copied().filter(matters).collect();
        if openings.len() < OPENINGS_KEPT && openings.last().is_none_or(|last| *last < now_ms) {
            openings.push(now_ms);
        }
        self.openings = openings.into();
    }
}

/// Judges that the lease clock is noted: `opened` says that the store has just been opened, which
/// has to come before any decision on leases, and takes a millisecond. The view must hold the
/// clock; at an opening, as it was noted last.
///
/// # Errors
///
/// The rejection: no effects are taken now, the clock wasn't read or is at its end, or there is no
/// revision left.
pub fn advance_clock(view: &View, opened: bool) -> Result<Effect, Box<Rejection>> {
    rules::available(view, DomainState::Active, false)?;
    let Some(revision) = view.destination.revision.next() else {
        return rules::reject(view, Reason::RevisionExhausted);
    };
    let clock = view.lease_clock.as_ref();
    let now_ms = clock.and_then(|clock| clock.now_ms.checked_add(u64::from(opened)));
    let Some(now_ms) = now_ms else {
        return rules::reject(view, Reason::Unavailable(Unavailable::Incomplete));
    };
    Ok(Effect::new(revision, Change::LeaseClock { now_ms, opened }))
}
