//! The core's state and the oracle's, side by side: every step is taken by both and compared in
//! both directions.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use highwater_core::{
    Accepted, Availability, Binding, Change as CoreChange, Condition, CreateDomain, DestinationId,
    Domain, DomainName, DomainState, EpochEntry, EpochMark, EpochTable, GuardReceipt, Input,
    InputReceipt, IntentConflict, IntentRecord, IntentState, Key, Limits, Malformed, Policy,
    Reason, Receipt, Rejection, State, Verdict, WriteReceipt,
};

use crate::briefs;
use crate::oracle::{Model, Refusal, Row, Rules};
use crate::plans::{Plans, Statement, Told, closed};
use crate::raw::{self, Auth, Bytes, Cond, Place, Request, Task};

/// The mark of the first epoch of the domain "d".
pub(crate) const MARK: u64 = 0x11;
/// Destination, incarnation number and mark of every twin. The second incarnation, so that
/// revisions before the first one exist.
pub(crate) const HERE: Place = ([0xD5; 16], 2, 0x77);
/// The revision of a store of incarnation 2 that has committed nothing.
pub(crate) const START: u64 = 2 << 48;
/// Longest value that a twin accepts.
pub(crate) const VALUE_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct Twin {
    pub(crate) state: State,
    pub(crate) model: Model,
}

pub(crate) fn name() -> DomainName {
    DomainName::new("d").unwrap()
}

pub(crate) fn policy(rules: Rules) -> Policy {
    Policy::default()
        .with_guard(rules.guard)
        .unwrap()
        .with_admission(rules.admission)
        .with_holder_binding(rules.binding)
        .with_max_sequence_step(rules.step.and_then(NonZeroU64::new))
}

impl Twin {
    /// A destination with the domain "d" in epoch `1.MARK`.
    pub(crate) fn new(rules: Rules) -> Self {
        Self::with_values(rules, VALUE_MAX)
    }

    /// The same, with values up to this length.
    pub(crate) fn with_values(rules: Rules, value_bytes: usize) -> Self {
        let limits = Limits { value_bytes };
        let incarnation = raw::incarnation(HERE.1, HERE.2);
        let state = State::new(DestinationId::new(HERE.0), incarnation, limits);
        let mut state = state.with_digest(raw::digest);
        let create = CreateDomain::new(name(), policy(rules), EpochMark::new(MARK));
        state.create_domain(&create).unwrap();
        let model = Model {
            destination: HERE,
            revision: START + 1,
            floor: START,
            availability: Availability::Ready,
            value_max: value_bytes,
            rules,
            state: DomainState::Active,
            epochs: vec![(1, MARK)],
            rows: BTreeMap::new(),
            fences: BTreeMap::new(),
            history: Vec::new(),
            intents: Plans::new(),
        };
        let twin = Self { state, model };
        twin.compare();
        twin
    }

    pub(crate) fn domain(&self) -> Domain {
        (**self.state.domain(&name()).unwrap()).clone()
    }

    /// Retires the current epoch and installs one of the next number.
    pub(crate) fn new_epoch(&mut self, mark: u64) {
        let mut domain = self.domain();
        let mut retired = domain.epochs.retired().to_vec();
        let last = domain.epochs.current();
        retired.push(last);
        let number = last.epoch.number().get() + 1;
        let current = EpochEntry {
            epoch: raw::epoch(number, mark),
            installed_at: last.installed_at.next().unwrap(),
        };
        domain.epochs = EpochTable::with_retired(retired, current);
        self.state.replace_domain(domain);
        self.model.epochs.push((number, mark));
        self.model.fences.clear();
    }

    pub(crate) fn set_state(&mut self, state: DomainState) {
        let mut domain = self.domain();
        domain.state = state;
        self.state.replace_domain(domain);
        self.model.state = state;
    }

    pub(crate) fn set_availability(&mut self, availability: Availability) {
        self.state.set_availability(availability);
        self.model.availability = availability;
    }

    pub(crate) fn forget(&mut self) {
        self.state.forget_deletions();
        self.model.floor = self.model.revision;
    }

    /// Both judge the request; nothing changes.
    pub(crate) fn judge(&self, request: &Request) -> Verdict {
        let commit = request.commit();
        let verdict = self.state.judge(&commit);
        match (&verdict, self.model.answer(request)) {
            (Verdict::Replayed(receipt), Ok((next, statement))) if statement.replayed => {
                assert_eq!(next.revision, self.model.revision);
                self.compare_receipt(receipt, &statement);
            }
            (Verdict::Accepted(accepted), Ok((next, statement))) if !statement.replayed => {
                self.compare_accepted(accepted, &next, &statement);
            }
            (Verdict::Rejected(rejection), Err(refusal)) => {
                self.compare_rejection(request, rejection, &refusal);
            }
            (core, oracle) => panic!("{request:?}\n core: {core:?}\n oracle: {oracle:?}"),
        }
        verdict
    }

    /// Both take the request, and everything is compared. Whether it was accepted.
    pub(crate) fn step(&mut self, request: &Request) -> bool {
        let before = format!("{:?}", self.state);
        let judged = self.judge(request);
        assert_eq!(
            before,
            format!("{:?}", self.state),
            "judging changes nothing"
        );
        let verdict = self.state.commit(&request.commit());
        assert_eq!(judged, verdict, "a dry run gets what the commit gets");
        let accepted = matches!(verdict, Verdict::Accepted(_));
        if accepted {
            self.model = self.model.answer(request).unwrap().0;
        } else {
            assert_eq!(
                before,
                format!("{:?}", self.state),
                "a rejection leaves no trace"
            );
        }
        self.compare();
        accepted
    }

    /// The whole observable state is the oracle's, and every invariant holds.
    pub(crate) fn compare(&self) {
        self.state.check().unwrap();
        let (seen, model) = (self.state.destination(), &self.model);
        assert_eq!(seen.revision.get(), model.revision);
        assert_eq!(seen.remembers_since.get(), model.floor);
        assert_eq!(seen.availability, model.availability);
        let domain = self.state.domain(&name()).unwrap();
        let rows: BTreeMap<Bytes, Row> = self
            .state
            .records(domain.id)
            .map(|(key, record)| (key.as_bytes().to_vec(), raw_row(record)))
            .collect();
        assert_eq!(rows, model.rows);
        let intents: Vec<_> = self
            .state
            .intents(domain.id)
            .map(|(id, record)| (id.as_bytes().to_vec(), raw_plan(record)))
            .collect();
        let expected = model.intents.iter();
        assert!(
            intents
                .into_iter()
                .eq(expected.map(|(id, plan)| (id.clone(), plan.told.clone())))
        );
        let named = model.history.iter().map(|(_, key)| key.clone());
        let guards = named.map(|key| crate::oracle::guard_of(model.rules.guard, &key));
        for guard in guards.chain(model.fences.keys().cloned()) {
            let fence = self.state.fence(domain, &raw::guard(&guard));
            assert_eq!(fence.map(raw::raw_fence), model.fences.get(&guard).cloned());
        }
    }

    fn compare_accepted(&self, accepted: &Accepted, next: &Model, statement: &Statement) {
        assert_eq!(accepted.effect.revision().get(), next.revision);
        let CoreChange::Commit {
            records,
            fences,
            intents,
            ..
        } = accepted.effect.change()
        else {
            panic!("a commit has the effect of a commit");
        };
        for change in records {
            let after = change.record.as_deref().map(raw_row);
            assert_eq!(after.as_ref(), next.rows.get(change.key.as_bytes()));
        }
        let raised = fences
            .iter()
            .map(|f| (f.guard.as_bytes().to_vec(), raw::raw_fence(&f.fence)));
        let expected = next
            .fences
            .iter()
            .filter(|(guard, fence)| self.model.fences.get(*guard) != Some(fence))
            .map(|(guard, fence)| (guard.clone(), fence.clone()));
        assert!(raised.eq(expected), "exactly the fences that rise change");
        let noted = intents
            .iter()
            .map(|i| (i.id.as_bytes().to_vec(), raw_plan(&i.record)));
        let expected = next.intents.iter();
        let expected = expected.filter(|(id, plan)| self.model.intents.get(*id) != Some(plan));
        assert!(
            noted.eq(expected.map(|(id, plan)| (id.clone(), plan.told.clone()))),
            "exactly the intents that change are noted"
        );
        self.compare_receipt(&accepted.receipt, statement);
    }

    fn compare_receipt(&self, receipt: &Receipt, statement: &Statement) {
        assert_eq!(&stated(receipt), statement);
        assert_eq!(receipt.destination, DestinationId::new(HERE.0));
        assert_eq!(receipt.incarnation, raw::incarnation(HERE.1, HERE.2));
        assert_eq!(receipt.domain, name());
        assert!(receipt.advisory_time_ms.is_none());
    }

    fn compare_rejection(&self, request: &Request, rejection: &Rejection, refusal: &Refusal) {
        let reason = &rejection.reason;
        assert_eq!(reason.code(), refusal.code, "{request:?}: {rejection:?}");
        assert_eq!(malformed(reason), refusal.what, "{request:?}");
        assert_eq!(presented(reason), refusal.presented, "{request:?}");
        self.compare_details(request, reason, refusal);
        let seen = &rejection.observed;
        assert_eq!(seen.destination, DestinationId::new(HERE.0));
        assert_eq!(seen.incarnation, raw::incarnation(HERE.1, HERE.2));
        assert_eq!(seen.revision.get(), self.model.revision);
        let epoch = seen.epoch.map(|e| (e.number().get(), e.mark().get()));
        let current = self.model.epochs.last().copied();
        assert_eq!(epoch, current.filter(|_| request.domain == "d"));
        let guard = seen.guard.as_ref().map(|g| g.as_bytes().to_vec());
        assert_eq!(guard, refusal.guard);
        let fence = guard.and_then(|guard| self.model.fences.get(&guard).cloned());
        assert_eq!(seen.fence.as_ref().map(raw::raw_fence), fence);
        let intent = seen.intent.as_ref();
        let id = intent.map(|seen| seen.id.as_bytes().to_vec());
        assert_eq!(id, refusal.intent);
        let known = id.and_then(|id| self.model.intents.get(&id));
        let found = intent.and_then(|seen| seen.found.as_ref());
        briefs::compare(found, known.map(|plan| &plan.told));
        self.compare_key(request, rejection, refusal);
    }

    fn compare_key(&self, request: &Request, rejection: &Rejection, refusal: &Refusal) {
        let seen = &rejection.observed;
        assert_eq!(
            seen.key.as_ref().map(|k| k.as_bytes().to_vec()),
            refusal.key
        );
        let model = &self.model;
        let row = refusal.key.as_ref().and_then(|key| model.rows.get(key));
        assert_eq!(seen.generation.map(|g| g.get()), row.map(|r| r.generation));
        let metageneration = seen.metageneration.map(|m| m.get());
        assert_eq!(metageneration, row.map(|r| r.metageneration));
        let asked = |of: fn(&Cond, &Bytes) -> bool| {
            let key = refusal.key.as_ref();
            key.is_some_and(|key| request.conds.iter().any(|cond| of(cond, key)))
        };
        let since = asked(|cond, key| matches!(cond, Cond::KeySince(on, _) if on == key));
        let known = match (&refusal.key, &refusal.prefix) {
            (Some(key), _) if row.is_some() || since => model.known_change(|name| name == key),
            (None, Some(prefix)) => model.known_change(|name| name.starts_with(prefix)),
            _ => None,
        };
        assert_eq!(seen.changed_at.map(|at| at.get()), known, "{request:?}");
        let hashed = asked(|cond, key| matches!(cond, Cond::DigestOf(on, _) if on == key));
        let value = row.filter(|_| hashed).map(|row| row.value.clone());
        let value = value.map(|v| raw::digest(&v));
        assert_eq!(seen.digest, value);
    }

    /// What some reasons say beside their code.
    fn compare_details(&self, request: &Request, reason: &Reason, refusal: &Refusal) {
        match reason {
            Reason::SequenceJump { step, max, .. } => {
                let fence = &self.model.fences[refusal.guard.as_ref().unwrap()];
                let presented = refusal.presented.as_ref().unwrap();
                assert_eq!(step.get(), presented.sequence - fence.sequence);
                assert_eq!(Some(max.get()), self.model.rules.step);
            }
            Reason::ConditionFailed { index, condition } => {
                assert_eq!(*index, refusal.index);
                let implied = |key: &Key| Condition::GenerationIsNot {
                    key: key.clone(),
                    generation: None,
                };
                let expected = match index {
                    Some(at) => request.commit().conditions[*at].clone(),
                    None => implied(condition.key().unwrap()),
                };
                assert_eq!(*condition, expected);
            }
            Reason::TooOld {
                index,
                remembers_since,
            } => {
                assert_eq!(Some(*index), refusal.index);
                assert_eq!(remembers_since.get(), self.model.floor);
            }
            _ => assert_eq!(None, refusal.index),
        }
        let about = match reason {
            Reason::IntentConflict(IntentConflict::Step { expected }) => {
                let number = expected.map_or(65, |step| step.get());
                Some(format!("step {number}"))
            }
            Reason::IntentConflict(IntentConflict::Digest) => Some("content".into()),
            Reason::IntentConflict(IntentConflict::Binding) => Some("binding".into()),
            Reason::IntentConflict(IntentConflict::Guard) => Some("guard".into()),
            Reason::IntentClosed { state, mutation } => {
                let state = state.to_string();
                Some(closed(state.split(',').next().unwrap(), *mutation))
            }
            Reason::IntentExhausted { bytes, max } => {
                assert_eq!(*max, 256 * 1024);
                Some(bytes.to_string())
            }
            _ => None,
        };
        assert_eq!(about, refusal.about, "{request:?}");
    }
}

/// A receipt in raw values.
fn stated(receipt: &Receipt) -> Statement {
    let guard = |g: &GuardReceipt| {
        let previous = g.previous.as_ref().map(raw::raw_fence);
        let name = g.guard.as_bytes().to_vec();
        (name, raw::raw_fence(&g.fence), previous)
    };
    let input = |i: &InputReceipt| {
        let generation = i.generation.map_or(0, |g| g.get());
        (i.key.as_bytes().to_vec(), generation)
    };
    let write = |w: &WriteReceipt| {
        (
            w.key.as_bytes().to_vec(),
            w.generation.map_or(0, |g| g.get()),
            w.metageneration.map_or(0, |m| m.get()),
            w.previous.map_or(0, |g| g.get()),
        )
    };
    let intent = receipt.intent.as_ref();
    Statement {
        revision: receipt.revision.get(),
        replayed: receipt.replayed,
        intent: intent.map(|of| (of.id.as_bytes().to_vec(), of.step.get())),
        guards: receipt.guards.iter().map(guard).collect(),
        inputs: receipt.inputs.iter().map(input).collect(),
        writes: receipt.writes.iter().map(write).collect(),
    }
}

/// What is stored of an intent in raw values.
fn raw_plan(record: &IntentRecord) -> Told {
    let mut owner = None;
    let state = match &record.state {
        IntentState::Open => "open",
        IntentState::Indeterminate {
            owner: name,
            review_at_ms,
        } => {
            owner = Some((name.as_bytes().to_vec(), *review_at_ms));
            "indeterminate"
        }
        IntentState::Ended(ending) => {
            let name = |(_, of): &&(&str, _)| of == ending;
            raw::ENDINGS.iter().find(name).unwrap().0
        }
    };
    let input = |input: &Input| match input {
        Input::Key { key, generation } => {
            (key.as_bytes().to_vec(), generation.map_or(0, |g| g.get()))
        }
        Input::Named { .. } => panic!("nobody names such an input"),
    };
    let binding = |binding: &Binding| {
        let configuration = binding.work.configuration.as_ref();
        let task = Task {
            guard: binding.work.guard.as_bytes().to_vec(),
            inputs: binding.work.inputs.iter().map(input).collect(),
            configuration: configuration.map(|c| c.as_bytes().to_vec()),
        };
        (task, raw::raw_fence(&binding.authority.to_fence()))
    };
    let numbers = record.steps.iter().map(|step| step.step.get());
    assert!(numbers.eq(1..=u32::try_from(record.steps.len()).unwrap()));
    let steps = record.steps.iter().map(|step| stated(&step.receipt));
    Told {
        state,
        owner,
        binding: record.binding.as_deref().map(binding),
        steps: steps.collect(),
        changed: record.changed_at.get(),
    }
}

fn raw_row(record: &highwater_core::Record) -> Row {
    Row {
        generation: record.generation.get(),
        metageneration: record.metageneration.get(),
        changed: record.changed_at.get(),
        under: record.written_under.map(|term| {
            let epoch = term.epoch;
            (
                epoch.number().get(),
                epoch.mark().get(),
                term.sequence.get(),
            )
        }),
        value: record.value.as_bytes().to_vec(),
        text: record.metadata.content_type().unwrap_or("").into(),
    }
}

fn presented(reason: &Reason) -> Option<Auth> {
    match reason {
        Reason::StaleEpoch { presented }
        | Reason::UnknownEpoch { presented }
        | Reason::StaleTerm { presented }
        | Reason::HolderConflict { presented }
        | Reason::SequenceJump { presented, .. }
        | Reason::WrongHolder { presented } => Some(raw::raw_fence(&presented.to_fence())),
        _ => None,
    }
}

pub(crate) fn malformed(reason: &Reason) -> Option<&'static str> {
    let Reason::Malformed(malformed) = reason else {
        return None;
    };
    Some(match malformed {
        Malformed::Name(_) => "Name",
        Malformed::Metadata(_) => "Metadata",
        Malformed::Policy(_) => "Policy",
        Malformed::Missing { .. } => "Missing",
        Malformed::Number { .. } => "Number",
        Malformed::Empty => "Empty",
        Malformed::TooMany { .. } => "TooMany",
        Malformed::ValueTooLarge { .. } => "ValueTooLarge",
        Malformed::CommitTooLarge { .. } => "CommitTooLarge",
        Malformed::DuplicateKey(_) => "DuplicateKey",
        Malformed::DuplicateGuard(_) => "DuplicateGuard",
        Malformed::UntouchedGuard(_) => "UntouchedGuard",
        Malformed::NoSuchGuard(_) => "NoSuchGuard",
        Malformed::DuplicateIntent(_) => "DuplicateIntent",
    })
}
