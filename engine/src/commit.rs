//! The log's role: make the open group durable, then release its answers. Whoever holds the log has
//! the role.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::Waker;

use highwater_core::{DomainName, Effect, Fence, Guard, Unavailable};
use highwater_wal::{Log, LogError};

use crate::audit::{self, Audited};
use crate::base::Base;
use crate::config::SPARE_SEGMENTS;
use crate::counters::Counters;
use crate::error::Error;
use crate::group::Group;
use crate::layer::Layer;
use crate::shared::{Shared, Writer};
use crate::threads::PanicGuard;
use crate::ticket::{Answer, Outcome, Promise};

impl Shared {
    /// Judges what waits, then sees to it that the open group becomes durable. A lone commit is
    /// made durable by the calling thread itself: no other thread has to wake for it. A crowd is
    /// left to the log's thread, so that judging goes on while it syncs. True if requests had to be
    /// left waiting for room.
    pub(crate) fn drive(&self) -> bool {
        let blocked = self.judge_all();
        match self.open_answers.load(Ordering::SeqCst) {
            0 => {}
            1 => self.sync_groups(1),
            // Nothing is synced any more, and its thread may have ended.
            _ if self.latch.is_poisoned() => self.sync_groups(usize::MAX),
            _ => self.log_signal.raise(),
        }
        blocked
    }

    /// Makes open groups durable, at most `max` of them, unless another thread is doing so.
    pub(crate) fn sync_groups(&self, max: usize) {
        let mut done = 0;
        loop {
            // Pairs with the one below, as where requests are judged.
            fence(Ordering::SeqCst);
            // Dropped after the lock, as there.
            let _guard = PanicGuard(self);
            let Some(mut log) = self.log.try_lock() else {
                return;
            };
            self.syncing.store(true, Ordering::SeqCst);
            while done < max {
                // What came during the last sync and wasn't worth waking the judge for.
                self.judge_all();
                let Some(group) = self.take_group() else {
                    break;
                };
                self.make_durable(log.as_mut(), group);
                done += 1;
            }
            self.syncing.store(false, Ordering::SeqCst);
            drop(log);
            fence(Ordering::SeqCst);
            // Whoever queued something or filled the group while the log was held relies on these
            // looks.
            if self.queue.len() > 0 {
                self.judge_signal.raise();
            }
            if self.open_answers.load(Ordering::SeqCst) == 0 {
                return;
            }
            if done >= max {
                self.log_signal.raise();
                return;
            }
        }
    }

    /// Takes the open group and leaves an empty one. Between two groups a full layer can be closed,
    /// so that no group's effects are ever spread over two layers.
    fn take_group(&self) -> Option<Group> {
        self.with_writer(|writer| {
            if writer.group.is_empty() {
                return None;
            }
            let bytes = writer.group.frame.len();
            writer.log_bytes = writer.log_bytes.saturating_add(bytes as u64);
            self.room.set_in_flight(bytes);
            let layer = self.layer_for_next(writer);
            let group = std::mem::replace(&mut writer.group, Group::new(layer, self.buffer()));
            self.open_answers.store(0, Ordering::SeqCst);
            Some(group)
        })
    }

    /// The layer for the next group: a new one if this one is full and none waits to be written to
    /// the index yet.
    fn layer_for_next(&self, writer: &mut Writer) -> Arc<Layer> {
        let current = Arc::clone(&writer.group.layer);
        let full = current.bytes() >= self.config.memory_bytes / 2
            || writer.log_bytes >= self.config.log_bytes / 2;
        if !full || self.base.load().layers.len() > 1 {
            return current;
        }
        self.begin_layer(writer)
    }

    /// Puts a new layer on top and asks for a checkpoint of the one below.
    pub(crate) fn begin_layer(&self, writer: &mut Writer) -> Arc<Layer> {
        let base = self.base.load_full();
        let top = Arc::new(Layer::over(writer.group.layer.clock()));
        let layers = std::iter::once(Arc::clone(&top))
            .chain(base.layers.iter().cloned())
            .collect();
        let next = Base {
            layers,
            index: base.index.clone(),
            indexed: base.indexed,
            remembers_since: base.remembers_since,
        };
        writer.log_bytes = 0;
        self.base.store(Arc::new(next));
        self.checkpoint_signal.raise();
        top
    }

    /// Appends a group to the log and releases its answers. A group of rejections alone needs no
    /// append: everything that it was judged on became durable with the group before.
    fn make_durable(&self, log: Option<&mut Log>, mut group: Group) {
        let result = match log {
            _ if self.latch.is_poisoned() => Err(()),
            _ if group.frame.is_empty() => Ok(None),
            Some(log) => self.append(log, &mut group).map(Some),
            None => Err(()),
        };
        // Before anybody is answered: who commits again at once finds the room that there is.
        self.room.set_in_flight(0);
        match result {
            Ok(lsn) => self.release(group, lsn),
            Err(()) => self.fail(group),
        }
    }

    fn append(&self, log: &mut Log, group: &mut Group) -> Result<u64, ()> {
        let appended = log.append(&mut group.frame);
        let status = log.status();
        self.room.set_active_left(status.active_bytes_left);
        *self.log_figures.lock() = status;
        if status.spares < SPARE_SEGMENTS as usize {
            self.spare_signal.raise();
        }
        match appended {
            Ok(durable) => Ok(durable.lsn().get()),
            Err(error) => {
                self.poison(&error);
                Err(())
            }
        }
    }

    /// Latches that the durability path failed. Any failure to append does it: the effects are
    /// folded already, and room for them had been made sure of.
    pub(crate) fn poison(&self, error: &LogError) {
        self.stop_writing();
        tracing::error!(%error, "the log failed: no more writes are accepted until a reopen");
    }

    /// Accepts nothing any more, and sees to it that those who wait hear of it.
    pub(crate) fn stop_writing(&self) {
        self.latch.poison();
        // Whoever was syncing may be gone, and look for no more work.
        self.syncing.store(false, Ordering::SeqCst);
        self.judge_signal.raise();
        self.log_signal.raise();
        self.leases.signal.raise();
    }

    fn release(&self, group: Group, lsn: Option<u64>) {
        let Group {
            frame,
            layer,
            effects,
            answers,
            touched,
            refused,
        } = group;
        if let (Some(lsn), Some(last)) = (lsn, effects.last()) {
            layer.set_last_lsn(lsn);
            let revision = last.revision();
            Counters::add(&self.counters.groups, 1);
            Counters::add(&self.counters.log_bytes, frame.len() as u64);
            self.set_durable(revision);
            for effect in &effects {
                self.leases.tell(effect);
            }
            self.audit_group(&effects, touched, lsn, frame.len());
            self.history.push(effects, lsn);
        }
        self.audit_refusals(&answers, refused);
        self.keep_buffer(frame);
        self.tell(answers);
    }

    /// Hands a durable group to the audit trail.
    fn audit_group(
        &self,
        effects: &[Arc<Effect>],
        touched: Vec<Vec<(Guard, Fence)>>,
        lsn: u64,
        bytes: usize,
    ) {
        let Some(audit) = &self.audit else { return };
        let changes = effects.iter().zip(touched).map(|(effect, guards)| Audited {
            effect: Arc::clone(effect),
            guards: Some(guards),
        });
        audit.push(audit::Group {
            changes: changes.collect(),
            lsn,
            bytes,
        });
    }

    /// Tells the audit trail what was refused, now that what it was judged on is durable.
    fn audit_refusals(&self, answers: &[(Promise, Answer)], refused: Vec<(usize, DomainName)>) {
        let Some(audit) = &self.audit else { return };
        for (at, domain) in refused {
            match answers.get(at) {
                Some((_, Err(Error::Rejected(rejection)))) => {
                    audit.refuse(&domain, Some(rejection));
                }
                Some((_, Err(Error::AuditUnavailable { .. }))) => audit.refuse(&domain, None),
                _ => {}
            }
        }
    }

    /// Gives all the answers first, and wakes those who wait for them then.
    fn tell(&self, answers: Vec<(Promise, Answer)>) {
        let mut wakers = Vec::with_capacity(answers.len());
        for (promise, answer) in answers {
            self.count(&answer);
            wakers.extend(promise.settle(answer));
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    fn count(&self, answer: &Answer) {
        match answer {
            Ok(Outcome::Committed(receipt)) if receipt.replayed => {
                Counters::add(&self.counters.replayed, 1);
            }
            Ok(_) => Counters::add(&self.counters.accepted, 1),
            Err(Error::Rejected(rejection)) => self.counters.reject(rejection),
            Err(Error::AuditUnavailable { .. }) => self.counters.refuse(audit::UNAVAILABLE),
            Err(_) => Counters::add(&self.counters.indeterminate, 1),
        }
    }

    /// Answers a group that couldn't be made durable. What was accepted may or may not be on disk;
    /// what was refused wasn't written, but the state that it was judged on isn't known to last. A
    /// receipt of an earlier, durable commit is as true as it was.
    fn fail(&self, group: Group) {
        let durable = self.durable();
        let honest = |(promise, answer)| match answer {
            Ok(Outcome::Committed(receipt)) if receipt.replayed && receipt.revision <= durable => {
                (promise, Ok(Outcome::Committed(receipt)))
            }
            Ok(_) => (promise, Err(Error::Indeterminate)),
            Err(Error::Rejected(_)) => (promise, Err(self.unavailable(Unavailable::Poisoned))),
            Err(error) => (promise, Err(error)),
        };
        self.tell(group.answers.into_iter().map(honest).collect());
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::sync::Mutex;
    use std::task::{Context, Wake};
    use std::time::Duration;

    use highwater_core::{DomainName, Policy};

    use super::*;
    use crate::queue::Request;
    use crate::store::Store;
    use crate::ticket::promise;
    use crate::wait::block_on_for;

    /// What isn't answered by now never will be.
    const FORGOTTEN: Duration = Duration::from_secs(60);

    /// Notes at its wake whether a frame as large as what the active segment has left would fit.
    struct Prober(Store, Mutex<Option<bool>>);

    impl Wake for Prober {
        fn wake(self: Arc<Self>) {
            let room = &self.0.shared().room;
            let most = room.most_without_spare();
            *self.1.lock().unwrap() = Some(room.fits(most, 0, || 0));
        }
    }

    #[test]
    fn who_is_answered_finds_the_room_that_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), crate::Config::default()).unwrap();
        let name = DomainName::new("jobs").unwrap();
        let prober = Arc::new(Prober(store.clone(), Mutex::default()));
        let waker = Waker::from(Arc::clone(&prober));
        let (promise, mut waiting) = promise();
        let request = Request::CreateDomain(Box::new(highwater_core::CreateDomain::new(
            name,
            Policy::default(),
            highwater_core::EpochMark::new(1),
        )));
        assert!(store.shared().queue.try_push(request, promise).is_ok());
        let polled = std::pin::Pin::new(&mut waiting).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        store.shared().judge_signal.raise();
        let begun = std::time::Instant::now();
        while prober.1.lock().unwrap().is_none() {
            assert!(begun.elapsed() < FORGOTTEN, "never woken");
            std::thread::park_timeout(Duration::from_millis(1));
        }
        assert_eq!(*prober.1.lock().unwrap(), Some(true));
        assert!(block_on_for(waiting, FORGOTTEN).unwrap().is_ok());
    }
}
