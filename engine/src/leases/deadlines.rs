//! When leases lapse, in the order in which they do.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{DomainId, Guard, Lease, LeaseClock, LeaseId, Ttl};

/// A guard of a domain.
pub(crate) type Name = (DomainId, Guard);

/// What a lease's deadline follows from.
#[derive(Clone, Copy, Debug)]
struct Pending {
    lease: LeaseId,
    renewed_clock_ms: u64,
    ttl: Ttl,
    deadline_ms: u64,
}

/// The leases that haven't been ended, by the time at which they lapse, and the times at which
/// somebody wants to be called. About 200 bytes and the guard's name, twice, for each.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    by_time: BTreeSet<(u64, Name)>,
    of: BTreeMap<Name, Pending>,
    calls: BTreeSet<(u64, Name)>,
}

impl Deadlines {
    /// Notes the current lease of a guard; `None` if it has none any more.
    pub(crate) fn set(
        &mut self,
        domain: DomainId,
        guard: &Guard,
        lease: Option<&Lease>,
        clock: &LeaseClock,
    ) {
        let name = (domain, guard.clone());
        if let Some(before) = self.of.remove(&name) {
            self.by_time.remove(&(before.deadline_ms, name.clone()));
        }
        let Some(lease) = lease else { return };
        let deadline_ms = clock.deadline_ms(lease);
        self.by_time.insert((deadline_ms, name.clone()));
        let pending = Pending {
            lease: lease.id,
            renewed_clock_ms: lease.renewed_clock_ms,
            ttl: lease.ttl,
            deadline_ms,
        };
        self.of.insert(name, pending);
    }

    /// Counts all deadlines anew: an opening gives most of them more time.
    pub(crate) fn reset(&mut self, clock: &LeaseClock) {
        self.by_time.clear();
        for (name, pending) in &mut self.of {
            pending.deadline_ms = clock.end_ms(pending.renewed_clock_ms, pending.ttl.get());
            self.by_time.insert((pending.deadline_ms, name.clone()));
        }
    }

    /// Notes that whoever waits for a guard is to be called then.
    pub(crate) fn call_at(&mut self, domain: DomainId, guard: &Guard, at_ms: u64) {
        self.calls.insert((at_ms, (domain, guard.clone())));
    }

    /// Takes the calls that are due.
    pub(crate) fn due_calls(&mut self, now_ms: u64) -> Vec<Name> {
        let mut due = Vec::new();
        while let Some((at_ms, name)) = self.calls.pop_first() {
            if at_ms > now_ms {
                self.calls.insert((at_ms, name));
                break;
            }
            due.push(name);
        }
        due
    }

    /// Some leases of one domain that have lapsed, the longest lapsed first. They stay noted until
    /// their end is.
    pub(crate) fn lapsed(
        &self,
        now_ms: u64,
        max: usize,
    ) -> Option<(DomainId, Vec<(Guard, LeaseId)>)> {
        let due = |entry: &&(u64, Name)| entry.0 <= now_ms;
        let domain = self.by_time.first().filter(due)?.1.0;
        let of_domain = self
            .by_time
            .iter()
            .take_while(due)
            .filter(|entry| entry.1.0 == domain);
        let named = of_domain.filter_map(|(_, name)| {
            let pending = self.of.get(name)?;
            Some((name.1.clone(), pending.lease))
        });
        Some((domain, named.take(max).collect()))
    }

    /// Puts off what lapsed longest ago, so that the others aren't held up by it.
    pub(crate) fn defer_first(&mut self, until_ms: u64) {
        let Some((_, name)) = self.by_time.pop_first() else {
            return;
        };
        if let Some(pending) = self.of.get_mut(&name) {
            pending.deadline_ms = until_ms;
            self.by_time.insert((until_ms, name));
        }
    }

    /// The next time at which something is due.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let lapses = self.by_time.first().map(|(at_ms, _)| *at_ms);
        let call = self.calls.first().map(|(at_ms, _)| *at_ms);
        lapses.into_iter().chain(call).min()
    }

    /// How many leases haven't been ended.
    pub(crate) fn live(&self) -> usize {
        self.of.len()
    }
}
