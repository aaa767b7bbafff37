//! Leases in the running store: its clock, what lapses when, and who waits for a guard.
//!
//! Every rule about them is the core's. Here is what the rules can't do: read a clock, wake up.

mod deadlines;
mod keeper;
mod line;

use std::sync::OnceLock;
use std::time::Instant;

use highwater_core::{
    Availability, Change, DomainId, Effect, Guard, LeaseClock, Revision, View, advance_clock,
};
use parking_lot::Mutex;

pub(crate) use self::deadlines::Deadlines;
pub(crate) use self::keeper::keep;
pub(crate) use self::line::Lines;
pub use self::line::{Acquire, Line};
use crate::base::Base;
use crate::error::{Error, StorageError};
use crate::layer::Layer;
use crate::shared::{Shared, Writer};
use crate::ticket::{Answer, Outcome};
use crate::wait::Signal;

/// What the threads of a store share of its leases.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// What the clock showed at the opening, and when that was. Set once the opening is noted.
    running: OnceLock<(u64, Instant)>,
    deadlines: Mutex<Deadlines>,
    pub(crate) lines: Lines,
    /// Wakes the keeper.
    pub(crate) signal: Signal,
}

impl Leases {
    /// With the leases that were found at the opening.
    pub(crate) fn new(deadlines: Deadlines) -> Self {
        Self {
            deadlines: Mutex::new(deadlines),
            ..Self::default()
        }
    }

    /// What the clock shows, in milliseconds; `None` before the opening is noted.
    fn now_ms(&self) -> Option<u64> {
        let (base_ms, since) = self.running.get()?;
        let passed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(base_ms.saturating_add(passed))
    }

    /// The clock as it shows now, over what was noted of it. Before the opening is noted it is
    /// shown as if that were done now.
    pub(crate) fn clock(&self, mut noted: LeaseClock) -> LeaseClock {
        match self.now_ms() {
            Some(now_ms) => noted.advance(now_ms),
            None => noted.open(noted.now_ms.saturating_add(1)),
        }
        noted
    }

    /// Takes over what an effect changes, as soon as it is judged.
    pub(crate) fn note(&self, effect: &Effect, layer: &Layer) {
        match effect.change() {
            Change::Commit { domain, leases, .. } if !leases.is_empty() => {
                let clock = layer.clock();
                let mut deadlines = self.deadlines.lock();
                let before = deadlines.next_ms();
                for change in leases {
                    let current = change.record.current.as_deref();
                    deadlines.set(*domain, &change.guard, current, &clock);
                }
                let next = deadlines.next_ms();
                drop(deadlines);
                // Whoever keeps them wakes early enough for everything that comes later.
                if next.is_some_and(|next| before.is_none_or(|before| next < before)) {
                    self.signal.raise();
                }
            }
            Change::LeaseClock { now_ms, opened } => {
                if *opened {
                    let _ = self.running.set((*now_ms, Instant::now()));
                    self.deadlines.lock().reset(&layer.clock());
                }
                self.signal.raise();
            }
            _ => {}
        }
    }

    /// Tells those who wait that a guard may be free, once that is durable.
    pub(crate) fn tell(&self, effect: &Effect) {
        if let Change::Commit { domain, leases, .. } = effect.change() {
            for change in leases
                .iter()
                .filter(|change| change.record.current.is_none())
            {
                self.lines.call(*domain, &change.guard);
            }
        }
    }

    /// Wakes whoever is first in a guard's line at a time of the clock.
    pub(crate) fn call_at(&self, domain: DomainId, guard: &Guard, at_ms: u64) {
        self.deadlines.lock().call_at(domain, guard, at_ms);
        self.signal.raise();
    }

    /// How many leases haven't been ended.
    pub(crate) fn live(&self) -> usize {
        self.deadlines.lock().live()
    }
}

impl Shared {
    /// The clock that decisions are judged by. The first of them notes the opening before it, which
    /// gives every lease of before its whole time again. `None` where that can't be noted now.
    pub(crate) fn running_clock(
        &self,
        writer: &mut Writer,
        base: &Base,
        availability: Availability,
    ) -> Option<LeaseClock> {
        if self.leases.now_ms().is_none() {
            self.note_clock(writer, base, availability).ok()?;
        }
        let noted = writer.group.layer.clock();
        self.leases.now_ms().map(|_| self.leases.clock(noted))
    }

    /// Notes what the clock shows, or the opening if that isn't noted yet.
    pub(crate) fn judge_clock(
        &self,
        writer: &mut Writer,
        base: &Base,
        availability: Availability,
    ) -> Answer {
        self.note_clock(writer, base, availability)?;
        Ok(Outcome::Noted)
    }

    fn note_clock(
        &self,
        writer: &mut Writer,
        base: &Base,
        availability: Availability,
    ) -> Result<(), Error> {
        let noted = writer.group.layer.clock();
        let opened = self.leases.now_ms().is_none();
        let destination = self.destination_view(base, writer.revision, availability);
        let mut view = View::new(destination, None);
        view.lease_clock = Some(if opened {
            noted
        } else {
            self.leases.clock(noted)
        });
        let effect = advance_clock(&view, opened)?;
        self.take(writer, &view, effect)
    }

    /// The clock as a reader of the durable state sees it.
    pub(crate) fn lease_clock(&self, base: &Base) -> LeaseClock {
        let noted = base.layers.first().map(|layer| layer.clock());
        self.leases.clock(noted.unwrap_or_default())
    }
}

/// Finds the leases that weren't ended, over all domains that there are.
///
/// # Errors
///
/// What storage says.
pub(crate) fn find(
    base: &Base,
    domains: impl Iterator<Item = DomainId>,
) -> Result<Deadlines, StorageError> {
    let clock = base.layers.first().map(|layer| layer.clock());
    let clock = clock.unwrap_or_default();
    let mut deadlines = Deadlines::default();
    for domain in domains {
        for row in base.at(Revision::MAX).leases_after(domain, None)? {
            let (guard, record) = row?;
            deadlines.set(domain, &guard, record.current.as_deref(), &clock);
        }
    }
    Ok(deadlines)
}
