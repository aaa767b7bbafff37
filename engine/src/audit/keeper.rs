//! Between the log and the trail: what is durable waits here until it has its line.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use highwater_core::{DomainId, DomainName, Rejection, Revision};
use parking_lot::Mutex;

use super::event::{Audited, Event};
use super::refusals::{INTERVAL_SECONDS, Refusals};
use super::settings::{AuditConfig, AuditFailure};
use super::trail::Trail;
use crate::wait::Signal;

/// So many bytes of log may wait for their lines; then who commits waits for the trail.
const BACKLOG_BYTES: usize = 32 << 20;
/// So many changes are written at once, a group more or less.
const BATCH_CHANGES: usize = 1_024;

/// Changes that are durable together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) changes: Vec<Audited>,
    /// Once they have their lines, the log isn't needed for the trail up to this frame.
    pub(crate) lsn: u64,
    /// What they take in the log, in bytes.
    pub(crate) bytes: usize,
}

/// Revisions that get no line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) cause: &'static str,
}

#[derive(Debug, Default)]
struct Backlog {
    groups: VecDeque<Group>,
    lost: Option<Lost>,
}

/// What only the one who writes uses.
#[derive(Debug)]
struct Desk {
    trail: Trail,
    /// Lines about no revision that aren't written yet.
    waiting: Vec<Event>,
    interval: Instant,
    warned: bool,
}

/// What is to be written first.
struct Due {
    events: Vec<Event>,
    groups: usize,
    /// How many revisions the gap has, if it is one.
    gap: Option<u64>,
}

/// How a store ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// In good order, at this revision.
    Closed(Revision),
    /// Poisoned.
    Poisoned,
}

/// The audit trail of an open store.
#[derive(Debug)]
pub(crate) struct Audit {
    on_failure: AuditFailure,
    backlog: Mutex<Backlog>,
    waiting_bytes: AtomicUsize,
    /// The log frame up to which the trail needs the log no more.
    through: AtomicU64,
    failing: AtomicBool,
    lost: AtomicU64,
    sequence: AtomicU64,
    audited: AtomicU64,
    refusals: Mutex<Refusals>,
    desk: Mutex<Desk>,
    pub(crate) signal: Signal,
}

/// The audit trail's figures at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AuditFigures {
    /// The sequence of the last line.
    pub sequence: u64,
    /// The revision up to which every change has its line, or lies in a gap.
    pub audited: u64,
    /// Whether the trail can't be written now.
    pub failing: bool,
    /// Whether changes are refused for that.
    pub refusing: bool,
    /// How many revisions were lost to a gap since the store was opened.
    pub lost: u64,
    /// How many refusals have no line of their own but are counted, since the store was opened.
    pub suppressed: u64,
}

impl Audit {
    /// Takes over an opened trail, what it lacks, and what it can't get any more.
    pub(crate) fn new(
        trail: Trail,
        config: &AuditConfig,
        groups: VecDeque<Group>,
        lost: Option<Lost>,
        (through, at): (u64, Revision),
    ) -> Self {
        let audited = trail.end.audited.unwrap_or(0);
        Self {
            on_failure: config.on_failure,
            waiting_bytes: AtomicUsize::new(groups.iter().map(|group| group.bytes).sum()),
            backlog: Mutex::new(Backlog { groups, lost }),
            through: AtomicU64::new(through),
            failing: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            sequence: AtomicU64::new(trail.end.seq),
            audited: AtomicU64::new(audited),
            refusals: Mutex::new(Refusals::new(config.refusals_per_second)),
            desk: Mutex::new(Desk {
                trail,
                waiting: vec![Event::Opened { at: at.to_string() }],
                interval: Instant::now(),
                warned: false,
            }),
            signal: Signal::default(),
        }
    }

    /// Hands over a durable group, in the order of the log.
    pub(crate) fn push(&self, group: Group) {
        let mut backlog = self.backlog.lock();
        self.waiting_bytes.fetch_add(group.bytes, Ordering::SeqCst);
        backlog.groups.push_back(group);
        let failing = self.failing.load(Ordering::SeqCst);
        if failing && self.on_failure == AuditFailure::Continue && self.is_behind() {
            self.lose(&mut backlog);
        }
        drop(backlog);
        self.signal.raise();
    }

    /// Gives up the lines of all that waits.
    fn lose(&self, backlog: &mut Backlog) {
        for group in backlog.groups.drain(..) {
            let mut revisions = group.changes.iter().map(|c| c.effect.revision().get());
            let (Some(first), last) = (revisions.next(), revisions.next_back()) else {
                continue;
            };
            let to = last.unwrap_or(first);
            let from = backlog.lost.map_or(first, |lost| lost.from);
            let cause = "unwritable";
            backlog.lost = Some(Lost { from, to, cause });
            self.through.store(group.lsn, Ordering::SeqCst);
        }
        self.waiting_bytes.store(0, Ordering::SeqCst);
    }

    /// Notes a refusal.
    pub(crate) fn refuse(&self, domain: &DomainName, rejection: Option<&Rejection>) {
        self.refusals.lock().note(domain, rejection);
    }

    /// Whether changes are refused because the trail can't be written.
    pub(crate) fn is_refusing(&self) -> bool {
        self.on_failure == AuditFailure::Refuse && self.failing.load(Ordering::SeqCst)
    }

    /// Whether so much waits for its lines that nothing more may.
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting_bytes.load(Ordering::SeqCst) >= BACKLOG_BYTES
    }

    /// The log frame up to which the log may be given back.
    pub(crate) fn through(&self) -> u64 {
        self.through.load(Ordering::SeqCst)
    }

    /// The figures now.
    pub(crate) fn figures(&self) -> AuditFigures {
        let audited = self.audited.load(Ordering::SeqCst);
        let untold = self.backlog.lock().lost.map_or(0, |lost| {
            let from = lost.from.max(audited.saturating_add(1));
            Lost { from, ..lost }.count()
        });
        AuditFigures {
            sequence: self.sequence.load(Ordering::SeqCst),
            audited,
            failing: self.failing.load(Ordering::SeqCst),
            refusing: self.is_refusing(),
            lost: self.lost.load(Ordering::SeqCst).saturating_add(untold),
            suppressed: self.refusals.lock().suppressed,
        }
    }

    /// Writes what waits. At the end of a store also the counts of what is suppressed, and, where
    /// it ends in good order, that it does.
    pub(crate) fn write(
        &self,
        domain: &dyn Fn(DomainId) -> Option<DomainName>,
        ending: Option<Ending>,
    ) {
        let mut desk = self.desk.lock();
        let written = self
            .write_changes(&mut desk, domain)
            .and_then(|()| self.write_rest(&mut desk, ending));
        self.sequence.store(desk.trail.end.seq, Ordering::SeqCst);
        let audited = desk.trail.end.audited.unwrap_or(0);
        self.audited.store(audited, Ordering::SeqCst);
        match written {
            Ok(()) => {
                if self.failing.swap(false, Ordering::SeqCst) {
                    desk.warned = false;
                    tracing::info!("the audit trail is written again");
                }
            }
            Err(error) => {
                self.failing.store(true, Ordering::SeqCst);
                if !std::mem::replace(&mut desk.warned, true) {
                    let refused = self.on_failure == AuditFailure::Refuse;
                    tracing::error!(%error, changes_refused = refused,
                        "the audit trail can't be written; this is tried again");
                }
            }
        }
    }

    fn write_changes(
        &self,
        desk: &mut Desk,
        domain: &dyn Fn(DomainId) -> Option<DomainName>,
    ) -> io::Result<()> {
        while let Some(due) = self.due(&desk.trail, domain) {
            desk.trail.append(&due.events).1?;
            let mut backlog = self.backlog.lock();
            if let Some(count) = due.gap {
                self.lost.fetch_add(count, Ordering::SeqCst);
                // More may have been lost meanwhile: what is told already isn't told again.
                let told = desk.trail.end.audited;
                backlog.lost = backlog.lost.filter(|lost| Some(lost.to) > told);
            }
            // What was lost meanwhile isn't there any more, though it has its lines.
            let done = |group: &Group| {
                let last = group.changes.last().map(|c| c.effect.revision().get());
                last <= desk.trail.end.audited
            };
            for _ in 0..due.groups {
                let Some(group) = backlog.groups.pop_front_if(|group| done(group)) else {
                    break;
                };
                self.waiting_bytes.fetch_sub(group.bytes, Ordering::SeqCst);
                self.through.store(group.lsn, Ordering::SeqCst);
            }
        }
        Ok(())
    }

    /// What is to be written next: what is lost first, for it was first.
    fn due(&self, trail: &Trail, domain: &dyn Fn(DomainId) -> Option<DomainName>) -> Option<Due> {
        let backlog = self.backlog.lock();
        let end = trail.end.audited;
        if let Some(lost) = backlog.lost {
            let next = end.map_or(lost.from, |end| end.saturating_add(1));
            let told = lost.to < next;
            let from = next.max(lost.from);
            let events = (!told).then(|| Event::gap(from, lost.to, lost.cause));
            return Some(Due {
                events: events.into_iter().collect(),
                groups: 0,
                gap: Some(Lost { from, ..lost }.count()),
            });
        }
        let mut changes: Vec<Audited> = Vec::new();
        let mut groups = 0;
        for group in &backlog.groups {
            groups += 1;
            let new = |change: &&Audited| Some(change.effect.revision().get()) > end;
            changes.extend(group.changes.iter().filter(new).cloned());
            if changes.len() >= BATCH_CHANGES {
                break;
            }
        }
        drop(backlog);
        let events = changes.iter().map(|change| Event::of(change, domain));
        (groups > 0).then(|| Due {
            events: events.collect(),
            groups,
            gap: None,
        })
    }

    /// What is about no revision.
    fn write_rest(&self, desk: &mut Desk, ending: Option<Ending>) -> io::Result<()> {
        let interval = Duration::from_secs(u64::from(INTERVAL_SECONDS));
        if desk.waiting.is_empty() {
            let ends = ending.is_some() || desk.interval.elapsed() >= interval;
            if ends {
                desk.interval = Instant::now();
            }
            desk.waiting = self.refusals.lock().take(ends);
        }
        let (done, written) = desk.trail.append(&desk.waiting);
        desk.waiting.drain(..done);
        written?;
        if let Some(ending) = ending {
            let rest = self.refusals.lock().take(true);
            desk.trail.append(&rest).1?;
            desk.trail.retain()?;
            if let Ending::Closed(at) = ending {
                let closed = Event::Closed { at: at.to_string() };
                desk.trail.append(&[closed]).1?;
            }
            return Ok(());
        }
        desk.trail.retain()
    }
}

impl Lost {
    const fn count(self) -> u64 {
        self.to.saturating_add(1).saturating_sub(self.from)
    }
}

/// The changes of the log that the trail has no lines of, in groups.
pub(crate) fn grouped(
    changes: impl Iterator<Item = (u64, Arc<highwater_core::Effect>)>,
) -> VecDeque<Group> {
    let mut groups: VecDeque<Group> = VecDeque::new();
    for (lsn, effect) in changes {
        let change = Audited {
            effect,
            guards: None,
        };
        match groups.back_mut() {
            Some(group) if group.lsn == lsn || group.changes.len() < BATCH_CHANGES => {
                group.changes.push(change);
                group.lsn = lsn;
            }
            _ => groups.push_back(Group {
                changes: vec![change],
                lsn,
                bytes: 0,
            }),
        }
    }
    groups
}
