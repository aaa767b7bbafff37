//! A second opinion: what the contract says, written down naively over raw numbers, byte strings
//! and ordered maps. It shares no comparison with the core: settings are read, never asked.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{Admission, Availability, DomainState, GuardRule, HolderBinding};

use crate::plans::{self, Plans, Statement};
use crate::raw::{Auth, Auths, Bytes, Change, Cond, Place, Request, prefix_of, presented};

/// The last 48 bits of a revision count the commits of an incarnation.
const COUNTER_END: u64 = 0xFFFF_FFFF_FFFF;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) generation: u64,
    pub(crate) metageneration: u64,
    pub(crate) changed: u64,
    pub(crate) under: Option<(u64, u64, u64)>,
    pub(crate) value: Bytes,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) guard: GuardRule,
    pub(crate) admission: Admission,
    pub(crate) binding: HolderBinding,
    pub(crate) step: Option<u64>,
}

/// One destination with one domain, "d".
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) destination: Place,
    pub(crate) revision: u64,
    /// Deletions up to here are forgotten.
    pub(crate) floor: u64,
    pub(crate) availability: Availability,
    pub(crate) value_max: usize,
    pub(crate) rules: Rules,
    pub(crate) state: DomainState,
    /// Number and mark of every epoch; the last is current.
    pub(crate) epochs: Vec<(u64, u64)>,
    pub(crate) rows: BTreeMap<Bytes, Row>,
    /// The highest authority accepted under each guard since the current epoch began.
    pub(crate) fences: BTreeMap<Bytes, Auth>,
    /// Every change of a key there ever was, oldest first.
    pub(crate) history: Vec<(u64, Bytes)>,
    pub(crate) intents: Plans,
}

/// A refusal: the reason's code, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    /// Which kind of malformed.
    pub(crate) what: Option<&'static str>,
    pub(crate) guard: Option<Bytes>,
    pub(crate) key: Option<Bytes>,
    pub(crate) prefix: Option<Bytes>,
    pub(crate) presented: Option<Auth>,
    /// Which condition.
    pub(crate) index: Option<usize>,
    pub(crate) intent: Option<Bytes>,
    /// In what an intent differs, or what it is in, and for which mutation.
    pub(crate) about: Option<String>,
}

enum Truth {
    Holds,
    Fails,
    TooOld,
}

pub(crate) fn refusal(code: &'static str) -> Refusal {
    Refusal {
        code,
        ..Refusal::default()
    }
}

/// The guard of a key: its first components, glued together again.
pub(crate) fn guard_of(rule: GuardRule, key: &[u8]) -> Bytes {
    match rule {
        GuardRule::Key => key.to_vec(),
        GuardRule::Domain => Vec::new(),
        GuardRule::Prefix { delimiter, depth } => {
            let parts: Vec<&[u8]> = key.split(|byte| *byte == delimiter).collect();
            parts[..parts.len().min(depth.into())].join(&delimiter)
        }
    }
}

/// The guard that a change touches.
pub(crate) fn touches(rule: GuardRule, change: &Change) -> Option<Bytes> {
    match change.key() {
        Some(key) => Some(guard_of(rule, key)),
        None => change.named_guard().cloned(),
    }
}

/// Whether some key is under the guard: one of the two shortest that could be.
pub(crate) fn is_guard(rule: GuardRule, guard: &[u8]) -> bool {
    let separator = match rule {
        GuardRule::Prefix { delimiter, .. } => delimiter,
        GuardRule::Key | GuardRule::Domain => b'x',
    };
    let below = [guard, &[separator]].concat();
    [guard, &below]
        .iter()
        .any(|key| !key.is_empty() && guard_of(rule, key) == guard)
}

impl Model {
    /// What a request gets, and what is there afterwards.
    pub(crate) fn answer(&self, request: &Request) -> Result<(Self, Statement), Box<Refusal>> {
        let touched = self.touched(request);
        let refused = Self::malformed(self, request)
            .or_else(|| self.elsewhere(request))
            .or_else(|| self.strange_guard(request, &touched))
            .or_else(|| plans::other_outcome(&self.intents, request).map(Refusal::from));
        if refused.is_none()
            && let Some(statement) = plans::replayed(&self.intents, request)
        {
            return Ok((self.clone(), statement));
        }
        let refused = refused
            .or_else(|| self.closed(request))
            .or_else(|| self.incomplete_request(request))
            .or_else(|| self.other_epoch(request, &touched))
            .or_else(|| self.fenced_out(request, &touched))
            .or_else(|| self.condition_fails(request))
            .or_else(|| plans::unfit(&self.intents, request, &touched).map(Refusal::from))
            .or_else(|| self.exhausted(request))
            .or_else(|| self.overfull_intent(request, &touched));
        match refused {
            Some(refusal) => Err(Box::new(refusal)),
            None => Ok(self.accepted(request, &touched)),
        }
    }

    fn touched(&self, request: &Request) -> BTreeSet<Bytes> {
        let guards = request.changes.iter();
        guards
            .filter_map(|change| touches(self.rules.guard, change))
            .collect()
    }

    fn malformed(&self, request: &Request) -> Option<Refusal> {
        let malformed = |what| Refusal {
            what: Some(what),
            ..refusal("Malformed")
        };
        if request.changes.is_empty() {
            return Some(malformed("Empty"));
        }
        if request.changes.len() > 1024 || request.conds.len() > 1024 {
            return Some(malformed("TooMany"));
        }
        let mut total = 0;
        for change in &request.changes {
            let (value, text) = match change {
                Change::Put(_, value, text) => (value.len(), text.len()),
                Change::Label(_, text) => (0, text.len()),
                Change::Bind(_, task) => (0, plans::bytes(task)),
                _ => (0, 0),
            };
            if value > self.value_max {
                return Some(malformed("ValueTooLarge"));
            }
            total += value + text + change.key().map_or(0, Vec::len);
        }
        if total > 16 * 1024 * 1024 {
            return Some(malformed("CommitTooLarge"));
        }
        let keys: Vec<_> = request.changes.iter().filter_map(Change::key).collect();
        if keys.iter().collect::<BTreeSet<_>>().len() < keys.len() {
            return Some(malformed("DuplicateKey"));
        }
        let advanced = |change: &Change| match change {
            Change::Advance(guard) => Some(guard.clone()),
            _ => None,
        };
        let raised: Vec<Bytes> = request.changes.iter().filter_map(advanced).collect();
        let named: Vec<Bytes> = match &request.auth {
            Auths::PerGuard(list) => list.iter().map(|(guard, _)| guard.clone()).collect(),
            Auths::None | Auths::One(_) => Vec::new(),
        };
        let twice = |list: &[Bytes]| list.iter().collect::<BTreeSet<_>>().len() < list.len();
        if twice(&raised) || twice(&named) {
            return Some(malformed("DuplicateGuard"));
        }
        plans::malformed(request).map(malformed)
    }

    fn elsewhere(&self, request: &Request) -> Option<Refusal> {
        if request.destination.is_some_and(|d| d != self.destination) {
            return Some(refusal("WrongDestination"));
        }
        (request.domain != "d").then(|| refusal("UnknownDomain"))
    }

    fn strange_guard(&self, request: &Request, touched: &BTreeSet<Bytes>) -> Option<Refusal> {
        let malformed = |what| Refusal {
            what: Some(what),
            ..refusal("Malformed")
        };
        for change in &request.changes {
            if let Some(guard) = change.named_guard()
                && !is_guard(self.rules.guard, guard)
            {
                return Some(malformed("NoSuchGuard"));
            }
        }
        let Auths::PerGuard(list) = &request.auth else {
            return None;
        };
        let stray = list.iter().any(|(guard, _)| !touched.contains(guard));
        stray.then(|| malformed("UntouchedGuard"))
    }

    fn closed(&self, request: &Request) -> Option<Refusal> {
        let adds = |c: &Change| matches!(c, Change::Put(..) | Change::Label(..) | Change::Bind(..));
        let grows = request.intent.is_some() || request.changes.iter().any(adds);
        let recovering = self.availability == Availability::RecoveryRequired
            || self.state == DomainState::RecoveryRequired;
        let closed = [
            ("Poisoned", self.availability == Availability::Poisoned),
            ("RecoveryRequired", recovering),
            ("Frozen", self.state == DomainState::Frozen),
            ("Overloaded", self.availability == Availability::Overloaded),
            (
                "DiskFull",
                self.availability == Availability::DiskFull && grows,
            ),
        ];
        let first = closed.iter().find(|(_, applies)| *applies);
        first.map(|(code, _)| refusal(code))
    }

    fn incomplete_request(&self, request: &Request) -> Option<Refusal> {
        for change in &request.changes {
            let Some(guard) = touches(self.rules.guard, change) else {
                if self.rules.admission == Admission::Fenced {
                    return Some(refusal("AuthorityRequired"));
                }
                continue;
            };
            let advances = matches!(change, Change::Advance(_) | Change::Bind(..));
            let fenced = self.rules.admission == Admission::Fenced;
            if (fenced || advances) && presented(request, &guard).is_none() {
                return Some(Refusal {
                    guard: Some(guard),
                    ..refusal("AuthorityRequired")
                });
            }
            let Some(key) = change.key() else { continue };
            let pinned = |c: &Cond| matches!(c, Cond::GenerationIs(on, _) if on == key);
            if self.rules.admission == Admission::Versioned && !request.conds.iter().any(pinned) {
                return Some(Refusal {
                    key: Some(key.clone()),
                    ..refusal("PreconditionRequired")
                });
            }
        }
        None
    }

    fn other_epoch(&self, request: &Request, touched: &BTreeSet<Bytes>) -> Option<Refusal> {
        for guard in touched {
            let Some(auth) = presented(request, guard) else {
                continue;
            };
            let place = self
                .epochs
                .iter()
                .position(|e| *e == (auth.epoch, auth.mark));
            let code = match place {
                Some(place) if place + 1 == self.epochs.len() => continue,
                Some(_) => "StaleEpoch",
                None => "UnknownEpoch",
            };
            return Some(Refusal {
                presented: Some(auth.clone()),
                ..refusal(code)
            });
        }
        None
    }

    fn fenced_out(&self, request: &Request, touched: &BTreeSet<Bytes>) -> Option<Refusal> {
        for guard in touched {
            let Some(auth) = presented(request, guard) else {
                continue;
            };
            let code = match self.fences.get(guard) {
                Some(fence) if auth.sequence < fence.sequence => "StaleTerm",
                Some(fence) if auth.sequence == fence.sequence && auth.holder != fence.holder => {
                    "HolderConflict"
                }
                Some(fence)
                    if self.rules.step.is_some_and(|n| {
                        u128::from(auth.sequence) > u128::from(fence.sequence) + u128::from(n)
                    }) =>
                {
                    "SequenceJump"
                }
                _ if !self.may_use(&auth.holder, request.caller.as_deref()) => "WrongHolder",
                _ => continue,
            };
            return Some(Refusal {
                guard: Some(guard.clone()),
                presented: Some(auth.clone()),
                ..refusal(code)
            });
        }
        None
    }

    fn may_use(&self, holder: &[u8], caller: Option<&[u8]>) -> bool {
        match (self.rules.binding, caller) {
            (HolderBinding::None, _) => true,
            (_, None) => false,
            (HolderBinding::Exact, Some(caller)) => holder == caller,
            (HolderBinding::Prefix, Some(caller)) => {
                holder == caller || holder.starts_with(&[caller, b"/"].concat())
            }
        }
    }

    fn condition_fails(&self, request: &Request) -> Option<Refusal> {
        for (index, cond) in request.conds.iter().enumerate() {
            let code = match self.truth(cond) {
                Truth::Holds => continue,
                Truth::Fails => "ConditionFailed",
                Truth::TooOld => "TooOld",
            };
            let failed = code == "ConditionFailed";
            return Some(Refusal {
                key: cond.key().filter(|_| failed).cloned(),
                prefix: prefix_of(cond).filter(|_| failed).cloned(),
                index: Some(index),
                ..refusal(code)
            });
        }
        request.changes.iter().find_map(|change| match change {
            Change::Label(key, _) if !self.rows.contains_key(key) => Some(Refusal {
                key: Some(key.clone()),
                ..refusal("ConditionFailed")
            }),
            _ => None,
        })
    }

    fn truth(&self, cond: &Cond) -> Truth {
        let generation = |key| self.rows.get(key).map_or(0, |row: &Row| row.generation);
        let metageneration = |key| self.rows.get(key).map_or(0, |row: &Row| row.metageneration);
        let holds = match cond {
            Cond::GenerationIs(key, number) => generation(key) == *number,
            Cond::GenerationIsNot(key, number) => generation(key) != *number,
            Cond::MetagenerationIs(key, number) => metageneration(key) == *number,
            Cond::MetagenerationIsNot(key, number) => metageneration(key) != *number,
            Cond::WrittenUnder(key, term) => {
                self.rows.get(key).and_then(|row| row.under) == Some(*term)
            }
            Cond::DigestOf(key, value) => self.rows.get(key).is_some_and(|row| row.value == *value),
            Cond::KeySince(key, since) => {
                let known = self.known_change(|name| name == key);
                let certain = self.rows.contains_key(key) || known.is_some();
                return self.quiet(*since, known, certain, |name| name == key);
            }
            Cond::PrefixSince(prefix, since) => {
                let under = |name: &Bytes| name.starts_with(prefix);
                return self.quiet(*since, self.known_change(under), false, under);
            }
        };
        if holds { Truth::Holds } else { Truth::Fails }
    }

    /// The last change of the keys that is still known: those of keys that exist, and deletions
    /// above the floor.
    pub(crate) fn known_change(&self, of: impl Fn(&Bytes) -> bool) -> Option<u64> {
        let mut last: BTreeMap<&Bytes, u64> = BTreeMap::new();
        for (at, key) in self.history.iter().filter(|(_, key)| of(key)) {
            last.insert(key, *at);
        }
        let known = |(key, at): &(&Bytes, u64)| self.rows.contains_key(*key) || *at > self.floor;
        last.into_iter().filter(known).map(|(_, at)| at).max()
    }

    fn quiet(
        &self,
        since: u64,
        known: Option<u64>,
        certain: bool,
        of: impl Fn(&Bytes) -> bool,
    ) -> Truth {
        if since > self.revision || known.is_some_and(|at| at > since) {
            return Truth::Fails;
        }
        if since < self.floor && !certain {
            return Truth::TooOld;
        }
        let changed = self.history.iter().any(|(at, key)| *at > since && of(key));
        assert!(!changed, "nothing that is forgotten may count as unchanged");
        Truth::Holds
    }

    fn exhausted(&self, request: &Request) -> Option<Refusal> {
        if self.revision & COUNTER_END == COUNTER_END {
            return Some(refusal("RevisionExhausted"));
        }
        let full = |change: &Change| match change {
            Change::Label(key, _) => self.rows[key].metageneration == u64::MAX,
            _ => false,
        };
        let any = request.changes.iter().any(full);
        any.then(|| refusal("MetagenerationExhausted"))
    }

    pub(crate) fn accepted(
        &self,
        request: &Request,
        touched: &BTreeSet<Bytes>,
    ) -> (Self, Statement) {
        let mut next = self.clone();
        let mut statement = Statement::default();
        next.revision += 1;
        statement.revision = next.revision;
        statement.intent = request.intent.as_ref().map(|i| (i.0.clone(), i.1));
        for guard in touched {
            if let Some(auth) = presented(request, guard) {
                let previous = next.fences.insert(guard.clone(), auth.clone());
                statement
                    .guards
                    .push((guard.clone(), auth.clone(), previous));
            }
        }
        let looked_at: BTreeSet<&Bytes> = request.conds.iter().filter_map(Cond::key).collect();
        let generation = |of: &Self, key: &Bytes| of.rows.get(key).map_or(0, |row| row.generation);
        for key in looked_at {
            statement.inputs.push((key.clone(), generation(self, key)));
        }
        for change in &request.changes {
            next.change(change, request);
            if let Some(key) = change.key() {
                let after = next.rows.get(key);
                statement.writes.push((
                    key.clone(),
                    after.map_or(0, |row| row.generation),
                    after.map_or(0, |row| row.metageneration),
                    generation(self, key),
                ));
            }
        }
        plans::note(&mut next.intents, request, &statement);
        (next, statement)
    }

    fn change(&mut self, change: &Change, request: &Request) {
        let revision = self.revision;
        match change {
            Change::Put(key, value, text) => {
                let auth = presented(request, &guard_of(self.rules.guard, key));
                let row = Row {
                    generation: revision,
                    metageneration: 1,
                    changed: revision,
                    under: auth.map(|auth| (auth.epoch, auth.mark, auth.sequence)),
                    value: value.clone(),
                    text: text.clone(),
                };
                self.rows.insert(key.clone(), row);
            }
            Change::Label(key, text) => {
                let row = self.rows.get_mut(key).unwrap();
                row.metageneration += 1;
                row.changed = revision;
                row.text.clone_from(text);
            }
            Change::Delete(key) => {
                if self.rows.remove(key).is_none() {
                    return;
                }
            }
            Change::Advance(_) | Change::Bind(..) | Change::Close(..) | Change::Suspend(..) => {
                return;
            }
        }
        self.history.push((revision, change.key().unwrap().clone()));
    }
}
