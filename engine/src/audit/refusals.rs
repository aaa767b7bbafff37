//! What was refused: a bounded number of lines for each cause, and an exact count of the rest.

use std::collections::BTreeMap;

use highwater_core::{DomainName, Guard, Rejection};

use super::event::{Event, Suppressed};

/// So long is what was refused counted, before what has no line is told, in seconds.
pub(crate) const INTERVAL_SECONDS: u32 = 10;
/// So many times the lines of one cause are written for all causes of an interval together.
const IN_ALL: u32 = 16;
/// So many causes of an interval are told apart; the rest is counted by reason alone.
const CAUSES_MAX: usize = 64;

/// The code of a refusal that has no rejection: the trail itself can't be written.
pub(crate) const UNAVAILABLE: &str = "AuditUnavailable";

/// Why something was refused: domain, reason, guard.
type Cause = (DomainName, &'static str, Option<Guard>);

#[derive(Debug, Default)]
struct Count {
    told: u32,
    suppressed: u64,
}

/// The refusals of an interval.
#[derive(Debug)]
pub(crate) struct Refusals {
    per_cause: u32,
    told: u32,
    causes: BTreeMap<Cause, Count>,
    /// Of causes beyond the bound, by reason.
    others: BTreeMap<&'static str, u64>,
    lines: Vec<Event>,
    /// All that were suppressed since the store was opened.
    pub(crate) suppressed: u64,
}

impl Refusals {
    /// Nothing refused yet.
    pub(crate) const fn new(per_second: u32) -> Self {
        Self {
            per_cause: per_second.saturating_mul(INTERVAL_SECONDS),
            told: 0,
            causes: BTreeMap::new(),
            others: BTreeMap::new(),
            lines: Vec::new(),
            suppressed: 0,
        }
    }

    /// Notes a refusal; without a rejection, one for want of the trail.
    pub(crate) fn note(&mut self, domain: &DomainName, rejection: Option<&Rejection>) {
        let code = rejection.map_or(UNAVAILABLE, |rejection| rejection.reason.code());
        let guard = rejection.and_then(|rejection| rejection.observed.guard.clone());
        let cause = (domain.clone(), code, guard);
        if !self.causes.contains_key(&cause) && self.causes.len() >= CAUSES_MAX {
            let count = self.others.entry(code).or_default();
            *count = count.saturating_add(1);
            self.suppressed = self.suppressed.saturating_add(1);
            return;
        }
        let count = self.causes.entry(cause).or_default();
        let in_all = self.per_cause.saturating_mul(IN_ALL);
        if count.told < self.per_cause && self.told < in_all {
            count.told += 1;
            self.told += 1;
            self.lines.push(Event::refused(domain, rejection));
        } else {
            count.suppressed = count.suppressed.saturating_add(1);
            self.suppressed = self.suppressed.saturating_add(1);
        }
    }

    /// Takes the lines so far. At the end of an interval also the counts, and begins the next.
    pub(crate) fn take(&mut self, interval_ends: bool) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.lines);
        if !interval_ends {
            return events;
        }
        self.told = 0;
        let text = |guard: Guard| highwater_core::escape(guard.as_bytes());
        let mut counts: Vec<_> = std::mem::take(&mut self.causes)
            .into_iter()
            .filter(|(_, count)| count.suppressed > 0)
            .map(|((domain, reason, guard), count)| Suppressed {
                domain: Some(domain.to_string()),
                reason,
                guard: guard.map(text),
                count: count.suppressed.to_string(),
            })
            .collect();
        let others = std::mem::take(&mut self.others).into_iter();
        counts.extend(others.map(|(reason, count)| Suppressed {
            domain: None,
            reason,
            guard: None,
            count: count.to_string(),
        }));
        if !counts.is_empty() {
            events.push(Event::RefusalsSuppressed { counts });
        }
        events
    }
}
