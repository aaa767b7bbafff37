//! The whole state of a destination as plain values: the reference that every backend is compared
//! with, and a store for tests and models. It holds everything in memory and loses it.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::authority::Fence;
use crate::codec::encode_command;
use crate::command::{Commit, CreateDomain, GuardedRead};
use crate::counters::{DestinationId, DomainId, Incarnation, Revision};
use crate::decide::{Verdict, admit_read, create_domain, decide};
use crate::domain::Domain;
use crate::effect::{Change, Effect};
use crate::intent::IntentRecord;
use crate::invariant::{
    Violation, check_domain, check_effect, check_fence, check_intent, check_record,
};
use crate::invariant_lease::check_lease;
use crate::lease::LeaseRecord;
use crate::lease_clock::{LeaseClock, advance_clock};
use crate::limits::Limits;
use crate::names::{Digest, DomainName, Guard, IntentId, Key, KeyRange, Prefix};
use crate::record::Record;
use crate::rejection::{Reason, Rejection, Unavailable};
use crate::rules;
use crate::view::{
    Availability, DestinationView, Footprint, KeyNeed, KeyRow, PrefixNeed, PrefixRow, View,
};

/// The state of one destination, and the same judge as everywhere.
#[derive(Clone, Debug)]
pub struct State {
    destination: DestinationView,
    domains: BTreeMap<DomainName, Arc<Domain>>,
    records: BTreeMap<(DomainId, Key), Arc<Record>>,
    deletions: BTreeMap<(DomainId, Key), Revision>,
    fences: BTreeMap<(DomainId, Guard), Fence>,
    intents: BTreeMap<(DomainId, IntentId), Arc<IntentRecord>>,
    leases: BTreeMap<(DomainId, Guard), Arc<LeaseRecord>>,
    lease_clock: LeaseClock,
    run_time_ms: u64,
    digest: Option<fn(&[u8]) -> Digest>,
}

impl State {
    /// An empty destination.
    #[must_use]
    pub fn new(id: DestinationId, incarnation: Incarnation, limits: Limits) -> Self {
        let start = Revision::start(incarnation.number());
        let destination = DestinationView {
            id,
            incarnation,
            revision: start,
            remembers_since: start,
            availability: Availability::Ready,
            limits,
        };
        Self {
            destination,
            domains: BTreeMap::new(),
            records: BTreeMap::new(),
            deletions: BTreeMap::new(),
            fences: BTreeMap::new(),
            intents: BTreeMap::new(),
            leases: BTreeMap::new(),
            lease_clock: LeaseClock::default(),
            run_time_ms: 0,
            digest: None,
        }
    }

    /// This state with a function for digests, of values and of what commits ask for. Without one,
    /// conditions on digests and commits for intents are refused as not fetched.
    #[must_use]
    pub const fn with_digest(mut self, digest: fn(&[u8]) -> Digest) -> Self {
        self.digest = Some(digest);
        self
    }

    /// The destination as a view shows it.
    #[must_use]
    pub const fn destination(&self) -> &DestinationView {
        &self.destination
    }

    /// Sets whether effects are taken.
    pub const fn set_availability(&mut self, availability: Availability) {
        self.destination.availability = availability;
    }

    /// Forgets every deletion up to now: what is asked about earlier times is then too old.
    pub fn forget_deletions(&mut self) {
        self.destination.remembers_since = self.destination.revision;
        self.deletions.clear();
    }

    /// Puts a domain in place of the one of its name. The seam through which transitions work.
    pub fn replace_domain(&mut self, domain: Domain) {
        self.domains.insert(domain.name.clone(), Arc::new(domain));
    }

    /// The domain of this name.
    #[must_use]
    pub fn domain(&self, name: &DomainName) -> Option<&Arc<Domain>> {
        self.domains.get(name)
    }

    /// What is stored under a key.
    #[must_use]
    pub fn record(&self, domain: DomainId, key: &Key) -> Option<&Arc<Record>> {
        self.records.get(&(domain, key.clone()))
    }

    /// Every key of a domain with what is stored, in order.
    pub fn records(&self, domain: DomainId) -> impl Iterator<Item = (&Key, &Arc<Record>)> {
        let mine = move |entry: &(&(DomainId, Key), &Arc<Record>)| entry.0.0 == domain;
        self.records
            .iter()
            .filter(mine)
            .map(|((_, key), record)| (key, record))
    }

    /// What is stored of an intent.
    #[must_use]
    pub fn intent(&self, domain: DomainId, id: &IntentId) -> Option<&Arc<IntentRecord>> {
        self.intents.get(&(domain, id.clone()))
    }

    /// Every intent of a domain with what is stored, in order.
    pub fn intents(
        &self,
        domain: DomainId,
    ) -> impl Iterator<Item = (&IntentId, &Arc<IntentRecord>)> {
        let mine = move |entry: &(&(DomainId, IntentId), &Arc<IntentRecord>)| entry.0.0 == domain;
        self.intents
            .iter()
            .filter(mine)
            .map(|((_, id), record)| (id, record))
    }

    /// What is stored of a guard's leases.
    #[must_use]
    pub fn lease(&self, domain: DomainId, guard: &Guard) -> Option<&Arc<LeaseRecord>> {
        self.leases.get(&(domain, guard.clone()))
    }

    /// The lease clock as it shows now.
    #[must_use]
    pub fn lease_clock(&self) -> LeaseClock {
        let mut clock = self.lease_clock.clone();
        clock.advance(self.run_time_ms);
        clock
    }

    /// Lets time pass, up to this reading of the lease clock in milliseconds. It isn't noted:
    /// [`State::reopen`] forgets it unless [`State::note_clock`] or a lease notes it before.
    pub fn set_lease_clock(&mut self, now_ms: u64) {
        self.run_time_ms = self.run_time_ms.max(now_ms);
    }

    /// Notes what the lease clock shows.
    ///
    /// # Errors
    ///
    /// The rejection of [`advance_clock`].
    pub fn note_clock(&mut self) -> Result<(), Box<Rejection>> {
        self.advance(false)
    }

    /// Closes and opens the destination: the lease clock goes on from what was noted last.
    ///
    /// # Errors
    ///
    /// The rejection of [`advance_clock`].
    pub fn reopen(&mut self) -> Result<(), Box<Rejection>> {
        self.run_time_ms = 0;
        self.advance(true)
    }

    fn advance(&mut self, opened: bool) -> Result<(), Box<Rejection>> {
        let mut view = View::new(self.destination, None);
        view.lease_clock = Some(self.lease_clock());
        let effect = advance_clock(&view, opened)?;
        self.apply(&effect);
        Ok(())
    }

    /// The fence of a guard in the domain's current epoch.
    #[must_use]
    pub fn fence(&self, domain: &Domain, guard: &Guard) -> Option<&Fence> {
        let fence = self.fences.get(&(domain.id, guard.clone()))?;
        (fence.term.epoch == domain.epochs.current().epoch).then_some(fence)
    }

    /// Fetches what a decision on the commit looks at.
    #[must_use]
    pub fn view(&self, commit: &Commit) -> View {
        let domain = self.domains.get(&commit.domain);
        let needs = domain.map(|domain| Footprint::of_commit(commit, &domain.policy));
        let mut view = self.fetch(domain, &needs.unwrap_or_default());
        if let (Some(digest), Some(_)) = (self.digest, &commit.intent) {
            let mut command = Vec::new();
            encode_command(commit, &mut command);
            view.command_digest = Some(digest(&command));
        }
        view
    }

    fn fetch(&self, domain: Option<&Arc<Domain>>, needs: &Footprint) -> View {
        let mut view = View::new(self.destination, domain.cloned());
        let Some(domain) = domain else { return view };
        let fence = |guard: &Guard| (guard.clone(), self.fence(domain, guard).cloned());
        view.fences = needs.guards.iter().map(fence).collect();
        view.keys = needs
            .keys
            .iter()
            .map(|need| self.key_row(domain.id, need))
            .collect();
        view.prefixes = needs
            .prefixes
            .iter()
            .map(|need| self.prefix_row(domain.id, need))
            .collect();
        let intent = |id: &IntentId| (id.clone(), self.intent(domain.id, id).cloned());
        view.intents = needs.intents.iter().map(intent).collect();
        let lease = |guard: &Guard| (guard.clone(), self.lease(domain.id, guard).cloned());
        view.leases = needs.leases.iter().map(lease).collect();
        view.lease_clock = (!needs.leases.is_empty()).then(|| self.lease_clock());
        view
    }

    fn key_row(&self, domain: DomainId, need: &KeyNeed) -> (Key, KeyRow) {
        let record = self.record(domain, &need.key).cloned();
        let digest = match (&record, self.digest) {
            (Some(record), Some(digest)) if need.digest => Some(digest(record.value.as_bytes())),
            _ => None,
        };
        let deletion = || self.deletions.get(&(domain, need.key.clone())).copied();
        let deleted_at = need.deletion.then(deletion).flatten();
        (
            need.key.clone(),
            KeyRow {
                record,
                digest,
                deleted_at,
            },
        )
    }

    fn prefix_row(&self, domain: DomainId, need: &PrefixNeed) -> (Prefix, PrefixRow) {
        let range = KeyRange::of_prefix(need.prefix.as_bytes());
        let under = |(of, key): &(DomainId, Key)| *of == domain && range.contains(key.as_bytes());
        let written = self.records.iter().filter(|(name, _)| under(name));
        let deleted = self.deletions.iter().filter(|(name, _)| under(name));
        let changed_at = written
            .map(|(_, r)| r.changed_at)
            .chain(deleted.map(|(_, at)| *at))
            .max();
        let remembers_since = self.destination.remembers_since;
        (
            need.prefix.clone(),
            PrefixRow {
                changed_at,
                remembers_since,
            },
        )
    }

    /// What a commit would get. Changes nothing.
    pub fn judge(&self, commit: &Commit) -> Verdict {
        decide(&self.view(commit), commit)
    }

    /// Judges a guarded read.
    ///
    /// # Errors
    ///
    /// The rejection, if its authority isn't the highest any more.
    pub fn admit_read(&self, read: &GuardedRead) -> Result<(), Box<Rejection>> {
        let domain = self.domains.get(&read.domain);
        let needs = domain.map(|domain| Footprint::of_read(read, &domain.policy));
        admit_read(&self.fetch(domain, &needs.unwrap_or_default()), read)
    }

    /// Judges a commit and applies what is accepted. An effect that would break an invariant is
    /// refused as [`Unavailable::Incomplete`] and changes nothing.
    pub fn commit(&mut self, commit: &Commit) -> Verdict {
        let view = self.view(commit);
        let verdict = decide(&view, commit);
        if let Verdict::Accepted(accepted) = &verdict {
            if check_effect(&view, &accepted.effect).is_err() {
                let reason = Reason::Unavailable(Unavailable::Incomplete);
                return match rules::reject::<()>(&view, reason) {
                    Err(rejection) => Verdict::Rejected(rejection),
                    Ok(()) => verdict,
                };
            }
            self.apply(&accepted.effect);
        }
        verdict
    }

    /// Judges the creation of a domain and applies it.
    ///
    /// # Errors
    ///
    /// The rejection.
    pub fn create_domain(&mut self, create: &CreateDomain) -> Result<Arc<Domain>, Box<Rejection>> {
        let view = View::new(self.destination, self.domains.get(&create.name).cloned());
        let existing = u32::try_from(self.domains.len()).unwrap_or(u32::MAX);
        let effect = create_domain(&view, existing, create)?;
        self.apply(&effect);
        match self.domains.get(&create.name) {
            Some(domain) => Ok(Arc::clone(domain)),
            None => rules::reject(&view, Reason::Unavailable(Unavailable::Incomplete)),
        }
    }

    /// Folds an effect. Has no rule and can't fail: what was judged once is only repeated.
    pub fn apply(&mut self, effect: &Effect) {
        let revision = effect.revision();
        self.destination.revision = revision;
        match effect.change() {
            Change::Genesis {
                destination,
                incarnation,
            } => {
                self.destination.id = *destination;
                self.destination.incarnation = *incarnation;
                self.destination.remembers_since = revision;
            }
            Change::DomainCreated(domain) => {
                self.domains.insert(domain.name.clone(), Arc::clone(domain));
            }
            Change::Commit {
                domain,
                records,
                fences,
                intents,
                leases,
            } => {
                for change in records {
                    let name = (*domain, change.key.clone());
                    if let Some(record) = &change.record {
                        self.deletions.remove(&name);
                        self.records.insert(name, Arc::clone(record));
                    } else {
                        self.records.remove(&name);
                        self.deletions.insert(name, revision);
                    }
                }
                for change in fences {
                    self.fences
                        .insert((*domain, change.guard.clone()), change.fence.clone());
                }
                for change in intents {
                    self.intents
                        .insert((*domain, change.id.clone()), Arc::clone(&change.record));
                }
                for change in leases {
                    self.lease_clock.advance(change.record.clock_ms());
                    self.leases
                        .insert((*domain, change.guard.clone()), Arc::clone(&change.record));
                }
            }
            Change::LeaseClock { now_ms, opened } => {
                if *opened {
                    self.lease_clock.open(*now_ms);
                } else {
                    self.lease_clock.advance(*now_ms);
                }
            }
        }
    }

    /// Checks every invariant of the whole state.
    ///
    /// # Errors
    ///
    /// The first one that doesn't hold.
    pub fn check(&self) -> Result<(), Violation> {
        let mut by_id = BTreeMap::new();
        for domain in self.domains.values() {
            check_domain(domain)?;
            by_id.insert(domain.id, domain);
        }
        for ((id, _), record) in &self.records {
            let domain = by_id.get(id).ok_or(Violation::UnknownRow)?;
            check_record(domain, record, self.destination.revision)?;
        }
        for ((id, guard), fence) in &self.fences {
            let domain = by_id.get(id).ok_or(Violation::UnknownRow)?;
            if self.fence(domain, guard).is_some() {
                check_fence(domain, fence)?;
            }
        }
        for ((id, _), record) in &self.intents {
            by_id.get(id).ok_or(Violation::UnknownRow)?;
            check_intent(record, self.destination.revision)?;
        }
        for ((id, _), record) in &self.leases {
            let domain = by_id.get(id).ok_or(Violation::UnknownRow)?;
            check_lease(domain, record, self.destination.revision)?;
            let noted = record.clock_ms() <= self.lease_clock.now_ms;
            let rule = Violation::LeaseClockBehind;
            noted.then_some(()).ok_or(rule)?;
        }
        Ok(())
    }
}
