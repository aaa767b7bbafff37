//! The writer's role: judge what waits, one after the other, and fill the open group. Whoever holds
//! the lock has the role; nobody waits for it.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use highwater_core::{
    Availability, Change, CreateDomain, Effect, Footprint, Malformed, Observed, Reason, Receipt,
    Rejection, Revision, Unavailable, Verdict, View, check_effect, create_domain, decide,
};
use highwater_wal::Lacking;
use parking_lot::MutexGuard;

use crate::base::Base;
use crate::clock::wall_clock_ms;
use crate::config::{SEGMENT_HEADER_BYTES, SPARE_SEGMENTS};
use crate::error::{Error, StorageError};
use crate::queue::{Asked, Pending, Request};
use crate::shared::{Shared, Writer};
use crate::threads::PanicGuard;
use crate::ticket::{Answer, Outcome};
use crate::writer::fetch;

/// After so many requests the lock is offered to whoever wants to take the group.
const TURN_COMMITS: usize = 32;
/// One ready segment is kept back for what frees room.
const KEPT_BACK_SEGMENTS: usize = SPARE_SEGMENTS as usize - 1;

/// What became of a request.
enum Judged {
    /// It is answered once the group is durable.
    Answered,
    /// There is no room for it now; whoever makes room calls again.
    Blocked(Box<Pending>),
}

/// Room for one more request.
enum Admit {
    /// Judge it, with the destination in this state.
    Judge(Availability),
    /// Let it wait.
    Wait,
    /// Refuse it whatever it is: on the full disk there isn't even room for what frees some.
    NoRoom,
    /// Refuse it whatever it is: it couldn't be told in the audit trail.
    NoAudit,
}

impl Shared {
    /// Does something else than judging under the writer's lock. Whoever came to judge meanwhile
    /// found the lock taken and went away, so what waits is looked for again afterwards.
    pub(crate) fn with_writer<T>(&self, work: impl FnOnce(&mut Writer) -> T) -> T {
        let mut writer = self.writer.lock();
        let result = work(&mut writer);
        let judging = writer.judging;
        let left_over = !writer.inbox.is_empty();
        drop(writer);
        fence(Ordering::SeqCst);
        if !judging && (left_over || self.queue.len() > 0) {
            self.judge_signal.raise();
        }
        result
    }

    /// Judges everything that waits, if nobody else is doing so, until there is nothing or no room.
    /// True if it stopped for want of room.
    pub(crate) fn judge_all(&self) -> bool {
        loop {
            // Pairs with the one below: a lock that looks held is let go of only before a look that
            // sees what was queued. The lock alone doesn't order the two on every processor.
            fence(Ordering::SeqCst);
            // Dropped after the lock: who is woken at a panic must find it free.
            let _guard = PanicGuard(self);
            let Some(mut writer) = self.writer.try_lock() else {
                return false;
            };
            writer.judging = true;
            let blocked = self.judge_inbox(&mut writer);
            writer.judging = false;
            self.open_answers
                .store(writer.group.answers.len(), Ordering::SeqCst);
            self.blocked.store(blocked, Ordering::SeqCst);
            drop(writer);
            fence(Ordering::SeqCst);
            // Whoever queued while the lock was held found it taken and relies on this look.
            if blocked || self.queue.len() == 0 {
                return blocked;
            }
        }
    }

    /// Judges until the inbox and the queue are empty. True if it stopped for want of room.
    fn judge_inbox(&self, writer: &mut MutexGuard<'_, Writer>) -> bool {
        let mut turn = 0_usize;
        loop {
            if writer.inbox.is_empty() {
                self.queue.drain_into(&mut writer.inbox);
            }
            let Some(pending) = writer.inbox.pop_front() else {
                return false;
            };
            match self.judge_one(writer, pending) {
                Judged::Answered => turn += 1,
                Judged::Blocked(pending) => {
                    writer.inbox.push_front(*pending);
                    return true;
                }
            }
            if turn.is_multiple_of(TURN_COMMITS) {
                self.open_answers
                    .store(writer.group.answers.len(), Ordering::SeqCst);
                MutexGuard::bump(writer);
            }
        }
    }

    fn judge_one(&self, writer: &mut Writer, pending: Pending) -> Judged {
        let base = self.base.load_full();
        let admitted = self.admit(writer, &base, pending.log_bytes);
        let availability = match admitted {
            Admit::Judge(availability) => availability,
            // As an overloaded destination, which takes nothing at all; but the reason is another.
            Admit::NoRoom | Admit::NoAudit => Availability::Overloaded,
            Admit::Wait => return Judged::Blocked(Box::new(pending)),
        };
        let answer = match (availability, &pending.request) {
            (Availability::Poisoned, Request::Commit(asked)) => self.judge_poisoned(asked),
            (Availability::Poisoned, Request::CreateDomain(_) | Request::NoteClock) => {
                Err(self.unavailable(Unavailable::Poisoned))
            }
            (_, Request::Commit(asked)) => self.judge_commit(writer, &base, asked, availability),
            (_, Request::CreateDomain(create)) => {
                self.judge_create(writer, &base, create, availability)
            }
            (_, Request::NoteClock) => self.judge_clock(writer, &base, availability),
        };
        let answer = match admitted {
            Admit::NoRoom => for_want_of_room(answer),
            Admit::NoAudit => for_want_of_audit(answer),
            Admit::Judge(_) | Admit::Wait => answer,
        };
        // The index was closed to be opened anew, or has been opened anew meanwhile.
        let replaced = || !Arc::ptr_eq(&base, &self.base.load());
        if matches!(answer, Err(Error::Storage(_))) && (self.latch.is_index_away() || replaced()) {
            return Judged::Blocked(Box::new(pending));
        }
        self.queue.release(&pending);
        if self.audit.is_some() {
            writer.group.note_refusal(&pending.request, &answer);
        }
        writer.group.answers.push((pending.promise, answer));
        Judged::Answered
    }

    /// Whether there is room for an effect of up to so many bytes, in the group, in memory and in
    /// preallocated log. Where more is on its way the request waits; where the disk is full, or no
    /// file can be opened for more log, it is judged, so that it gets a reason.
    fn admit(&self, writer: &Writer, base: &Base, log_bytes: usize) -> Admit {
        if self.latch.is_poisoned() {
            return Admit::Judge(Availability::Poisoned);
        }
        match &self.audit {
            Some(audit) if audit.is_refusing() => return Admit::NoAudit,
            Some(audit) if audit.is_behind() => return Admit::Wait,
            _ => {}
        }
        let open = writer.group.frame.len();
        let payload_max = self.config.payload_bytes_max() as usize;
        let with_this = open.saturating_add(log_bytes);
        // A request that is too large for any frame is let through, to be refused with its size.
        if open > 0 && (open >= self.config.group_bytes || with_this > payload_max) {
            return Admit::Wait;
        }
        let layer_bytes = base.layers.first().map_or(0, |layer| layer.bytes());
        let memory_tight = base.layers.len() > 1 && layer_bytes >= self.config.memory_bytes / 2;
        let capacity = self
            .config
            .segment_bytes
            .saturating_sub(SEGMENT_HEADER_BYTES);
        let frame = with_this.min(payload_max);
        let has_place = |kept_back: usize| {
            self.room.fits(frame, capacity, || {
                self.pool.spares().saturating_sub(kept_back)
            })
        };
        // The segment kept back may be the active one by now, or not be made yet: that isn't for
        // data.
        let spares = self.pool.spares();
        let placed = spares >= KEPT_BACK_SEGMENTS && has_place(KEPT_BACK_SEGMENTS);
        if placed && !memory_tight {
            return Admit::Judge(Availability::Ready);
        }
        if !self.is_full() {
            if spares < SPARE_SEGMENTS as usize {
                self.spare_signal.raise();
            }
            // Nobody knows when somebody closes a file.
            let stuck = !placed && self.pool.lacking() == Some(Lacking::Descriptor);
            return if stuck {
                Admit::Judge(Availability::Overloaded)
            } else {
                Admit::Wait
            };
        }
        let hard_max = self.config.memory_bytes / 2 + self.config.memory_bytes / 4;
        if has_place(0) && layer_bytes < hard_max {
            return Admit::Judge(Availability::DiskFull);
        }
        Admit::NoRoom
    }

    /// Judges against the durable state alone: what was judged after it may not be on disk. Of that
    /// state the destination, the domain and the intents are looked at; that is all there is to say
    /// where no effects are taken.
    fn judge_durable(
        &self,
        asked: &Asked,
        availability: Availability,
    ) -> Result<Verdict, StorageError> {
        let (base, revision) = self.now();
        let domain = self
            .domains
            .load()
            .at(&asked.commit.domain, revision)
            .cloned();
        let destination = self.destination_view(&base, revision, availability);
        let mut view = View::new(destination, domain.clone());
        if let Some(domain) = domain.filter(|_| asked.commit.intent.is_some()) {
            let needs = Footprint::of_commit(&asked.commit, &domain.policy);
            base.at(revision)
                .fetch_intents(domain.id, &needs, &mut view)?;
        }
        view.command_digest = asked.digest;
        Ok(decide(&view, &asked.commit))
    }

    fn judge_poisoned(&self, asked: &Asked) -> Answer {
        match self.judge_durable(asked, Availability::Poisoned) {
            Ok(Verdict::Replayed(receipt)) => Ok(Outcome::Committed(receipt)),
            Ok(Verdict::Rejected(rejection)) => Err(Error::Rejected(rejection)),
            // A poisoned destination accepts nothing; were it to, nothing would be written. What it
            // can't read, it can't tell again.
            Ok(Verdict::Accepted(_)) | Err(_) => Err(self.unavailable(Unavailable::Poisoned)),
        }
    }

    /// The receipt of a step that was accepted before and is durable, for a request that finds no
    /// place in the queue.
    pub(crate) fn replayed(&self, request: &Request) -> Option<Box<Receipt>> {
        let Request::Commit(asked) = request else {
            return None;
        };
        asked.digest?;
        match self.judge_durable(asked, Availability::Overloaded) {
            Ok(Verdict::Replayed(receipt)) => Some(receipt),
            _ => None,
        }
    }

    fn judge_commit(
        &self,
        writer: &mut Writer,
        base: &Base,
        asked: &Asked,
        availability: Availability,
    ) -> Answer {
        let commit = &asked.commit;
        let domains = self.domains.load();
        let domain = domains.at(&commit.domain, Revision::MAX).cloned();
        let needs = domain.as_ref();
        let needs = needs.map(|domain| Footprint::of_commit(commit, &domain.policy));
        let leased = needs.as_ref().is_some_and(|needs| !needs.leases.is_empty());
        // May take a revision.
        let clock = leased.then(|| self.running_clock(writer, base, availability));
        let destination = self.destination_view(base, writer.revision, availability);
        let mut view = View::new(destination, domain.clone());
        view.lease_clock = clock.flatten();
        if let (Some(domain), Some(needs)) = (&domain, &needs) {
            fetch(writer, base, domain, needs, &mut view)?;
        }
        view.command_digest = asked.digest;
        view.advisory_time_ms = Some(wall_clock_ms());
        let accepted = match decide(&view, commit) {
            Verdict::Accepted(accepted) => *accepted,
            Verdict::Replayed(receipt) => return Ok(Outcome::Committed(receipt)),
            Verdict::Rejected(rejection) => return Err(Error::Rejected(rejection)),
        };
        self.take(writer, &view, accepted.effect)?;
        writer.group.note_touched(&accepted.receipt);
        Ok(Outcome::Committed(Box::new(accepted.receipt)))
    }

    fn judge_create(
        &self,
        writer: &mut Writer,
        base: &Base,
        create: &CreateDomain,
        availability: Availability,
    ) -> Answer {
        let domains = self.domains.load_full();
        let existing = domains.at(&create.name, Revision::MAX).cloned();
        let destination = self.destination_view(base, writer.revision, availability);
        let view = View::new(destination, existing);
        let effect = create_domain(&view, domains.len(), create)?;
        let created = match effect.change() {
            Change::DomainCreated(domain) => Arc::clone(domain),
            Change::Genesis { .. } | Change::Commit { .. } | Change::LeaseClock { .. } => {
                return Err(incomplete(&view));
            }
        };
        self.take(writer, &view, effect)?;
        self.domains
            .store(Arc::new(domains.with(Arc::clone(&created))));
        Ok(Outcome::Created(created))
    }

    /// Checks an effect, encodes it into the open group and folds it into memory.
    pub(crate) fn take(
        &self,
        writer: &mut Writer,
        view: &View,
        effect: Effect,
    ) -> Result<(), Error> {
        if let Err(violation) = check_effect(view, &effect) {
            tracing::error!(%violation, revision = %effect.revision(), "refused a wrong effect");
            return Err(incomplete(view));
        }
        let max = self.config.payload_bytes_max() as usize;
        if !writer.group.encode(&effect, max) {
            let bytes = max.saturating_add(1);
            let reason = Reason::Malformed(Malformed::CommitTooLarge { bytes, max });
            let observed = Observed::of(view);
            return Err(Error::Rejected(Box::new(Rejection { reason, observed })));
        }
        writer.fold(&effect);
        self.leases.note(&effect, &writer.group.layer);
        writer.group.effects.push(Arc::new(effect));
        if self.audit.is_some() {
            writer.group.touched.push(Vec::new());
        }
        Ok(())
    }
}

/// What an overloaded destination refuses, as one refuses it that has no room.
fn for_want_of_room(mut answer: Answer) -> Answer {
    if let Err(Error::Rejected(rejection)) = &mut answer
        && rejection.reason == Reason::Unavailable(Unavailable::Overloaded)
    {
        rejection.reason = Reason::Unavailable(Unavailable::DiskFull);
    }
    answer
}

/// What an overloaded destination refuses, as one refuses it that can't write its audit trail.
fn for_want_of_audit(answer: Answer) -> Answer {
    match answer {
        Err(Error::Rejected(rejection))
            if rejection.reason == Reason::Unavailable(Unavailable::Overloaded) =>
        {
            let observed = Box::new(rejection.observed);
            Err(Error::AuditUnavailable { observed })
        }
        other => other,
    }
}

fn incomplete(view: &View) -> Error {
    let reason = Reason::Unavailable(Unavailable::Incomplete);
    Error::Rejected(Box::new(Rejection {
        reason,
        observed: Observed::of(view),
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::store::Store;
    use crate::ticket::{Outcome, promise};
    use crate::wait::block_on_for;
    use highwater_core::{Authority, Commit, DomainName, Key, Policy, Value};

    use super::*;

    /// What isn't answered by now never will be.
    const FORGOTTEN: Duration = Duration::from_secs(60);

    #[test]
    fn who_finds_the_lock_taken_is_called_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), crate::Config::default()).unwrap();
        let name = DomainName::new("jobs").unwrap();
        let domain = store
            .create_domain(name.clone(), Policy::default(), None)
            .unwrap();
        let epoch = domain.epochs.current().epoch;
        let authority = Authority::parse(&format!("{epoch}/1@a")).unwrap();
        let request = || {
            let key = Key::new("k").unwrap();
            let commit = Commit::new(name.clone()).under(authority.clone());
            Request::commit(commit.put(key, Value::new("v").unwrap()))
        };
        let shared = store.shared();
        for in_inbox in [false, true] {
            let (promise, waiting) = promise();
            shared.with_writer(|writer| {
                assert!(shared.queue.try_push(request(), promise).is_ok());
                if in_inbox {
                    shared.queue.drain_into(&mut writer.inbox);
                }
                assert!(!shared.drive(), "the lock is taken");
            });
            let answer = block_on_for(waiting, FORGOTTEN);
            assert!(
                matches!(answer, Some(Ok(Outcome::Committed(_)))),
                "{answer:?}"
            );
        }
    }
}
