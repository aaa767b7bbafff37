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
    /// When each guard's one call is.
    call_of: BTreeMap<Name, u64>,
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

    /// Notes that whoever waits for a guard is to be called then. Of several times the first
    /// counts: who is called too early asks for another.
    pub(crate) fn call_at(&mut self, domain: DomainId, guard: &Guard, at_ms: u64) {
        let name = (domain, guard.clone());
        match self.call_of.get(&name) {
            Some(noted_ms) if *noted_ms <= at_ms => return,
            Some(noted_ms) => self.calls.remove(&(*noted_ms, name.clone())),
            None => false,
        };
        self.call_of.insert(name.clone(), at_ms);
        self.calls.insert((at_ms, name));
    }

    /// Takes the calls that are due.
    pub(crate) fn due_calls(&mut self, now_ms: u64) -> Vec<Name> {
        let mut due = Vec::new();
        while let Some((at_ms, name)) = self.calls.pop_first() {
            if at_ms > now_ms {
                self.calls.insert((at_ms, name));
                break;
            }
            self.call_of.remove(&name);
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

    /// Puts off a lease whose end couldn't be noted, so that the others aren't held up by it. If
    /// the guard has another one by now, that keeps its time.
    pub(crate) fn defer(&mut self, domain: DomainId, guard: &Guard, lease: LeaseId, until_ms: u64) {
        let name = (domain, guard.clone());
        let Some(pending) = self.of.get_mut(&name).filter(|held| held.lease == lease) else {
            return;
        };
        self.by_time.remove(&(pending.deadline_ms, name.clone()));
        pending.deadline_ms = until_ms;
        self.by_time.insert((until_ms, name));
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

#[cfg(test)]
mod tests {
    use highwater_core::{Authority, Holder, Revision};

    use super::*;

    fn place() -> (DomainId, Guard) {
        (DomainId::new(1).unwrap(), Guard::new("g").unwrap())
    }

    fn lease(at: u64, renewed_clock_ms: u64) -> Lease {
        let renewed_at = Revision::new((1 << 48) | at).unwrap();
        let authority = Authority::parse("1.0000000000000001/1@a").unwrap();
        Lease {
            id: LeaseId::of(renewed_at),
            term: authority.term(),
            holder: Holder::new("a").unwrap(),
            ttl: Ttl::new(1_000).unwrap(),
            renewed_at,
            renewed_clock_ms,
        }
    }

    /// The end of a lease was refused because somebody else has the guard by now.
    #[test]
    fn a_lease_that_came_meanwhile_is_not_put_off_in_the_place_of_the_one_before() {
        let (domain, guard) = place();
        let clock = LeaseClock::default();
        let (old, new) = (lease(1, 0), lease(2, 1_000));
        let mut deadlines = Deadlines::default();
        deadlines.set(domain, &guard, Some(&old), &clock);
        let due = deadlines.lapsed(1_000, 64);
        assert_eq!(due, Some((domain, vec![(guard.clone(), old.id)])));
        deadlines.set(domain, &guard, Some(&new), &clock);
        deadlines.defer(domain, &guard, old.id, 1_500);
        assert_eq!(deadlines.next_ms(), Some(2_000));
        deadlines.defer(domain, &guard, new.id, 2_500);
        assert_eq!(deadlines.next_ms(), Some(2_500));
        deadlines.set(domain, &guard, None, &clock);
        assert_eq!(deadlines.next_ms(), None);
    }

    #[test]
    fn however_often_a_call_is_asked_for_there_is_one_for_each_guard() {
        let (domain, guard) = place();
        let mut deadlines = Deadlines::default();
        for at_ms in [70, 50, 60, 50] {
            deadlines.call_at(domain, &guard, at_ms);
        }
        assert_eq!((deadlines.calls.len(), deadlines.next_ms()), (1, Some(50)));
        assert!(deadlines.due_calls(49).is_empty());
        assert_eq!(deadlines.due_calls(50), [(domain, guard.clone())]);
        assert!(deadlines.calls.is_empty() && deadlines.call_of.is_empty());
        deadlines.call_at(domain, &guard, 90);
        assert_eq!(deadlines.next_ms(), Some(90));
    }
}
