//! A second opinion on intents: what the contract says of them, naively, over bare values. No
//! comparison in it is the product's. The model of the core and that of the whole store share it.

use std::collections::{BTreeMap, BTreeSet};

use crate::raw::{Auth, Bytes, Change, Cond, Request, Task, presented};

/// What is stated of an accepted commit; the number 0 stands for "doesn't exist".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// The revision of the commit.
    pub revision: u64,
    /// Whether it is told again.
    pub replayed: bool,
    /// The step of an intent that it is of.
    pub intent: Option<(Bytes, u32)>,
    /// Each guard, its fence now, its fence before.
    pub guards: Vec<(Bytes, Auth, Option<Auth>)>,
    /// Each key that a condition looked at, and its generation before.
    pub inputs: Vec<(Bytes, u64)>,
    /// Each key written: generation and metageneration now, generation before.
    pub writes: Vec<(Bytes, u64, u64, u64)>,
}

/// The intents of a domain by their ids.
pub type Plans = BTreeMap<Bytes, Plan>;

/// Why an intent refuses a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The reason's code.
    pub code: &'static str,
    /// The intent.
    pub id: Bytes,
    /// In what the intent differs, or what it is in, and for which mutation.
    pub about: Option<String>,
}

/// What was asked in a step: all of it is kept, and compared as it is.
type Asked = (Vec<Change>, Vec<Cond>, bool);

/// An intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is stored of it.
    pub told: Told,
    /// What was asked in each step.
    pub asked: Vec<Asked>,
}

/// What is stored of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// "open", "indeterminate" or an ending.
    pub state: &'static str,
    /// Who owns it while it is indeterminate, and when it is to be looked at.
    pub owner: Option<(Bytes, u64)>,
    /// What it is bound to, under whose authority.
    pub binding: Option<(Task, Auth)>,
    /// What was stated of each step.
    pub steps: Vec<Statement>,
    /// The revision of its last change.
    pub changed: u64,
}

/// How many bytes of names are in what an intent is bound to.
#[must_use]
pub fn bytes(task: &Task) -> usize {
    let inputs: usize = task.inputs.iter().map(|(key, _)| key.len()).sum();
    inputs + task.guard.len() + task.configuration.as_ref().map_or(0, Vec::len)
}

/// Which kind of malformed a request is, as far as it is about intents.
#[must_use]
pub fn malformed(request: &Request) -> Option<&'static str> {
    let large = |change: &Change| matches!(change, Change::Bind(_, task) if task.inputs.len() > 64);
    let mut times: BTreeMap<&Bytes, usize> = BTreeMap::new();
    for id in request.changes.iter().filter_map(Change::intent) {
        *times.entry(id).or_default() += 1;
    }
    if request.changes.iter().any(large) || times.values().sum::<usize>() > 16 {
        return Some("TooMany");
    }
    let ends =
        |change: &Change, id| change.intent() == Some(id) && !matches!(change, Change::Bind(..));
    let twice = times.values().any(|times| *times > 1);
    let ends_twice = request.intent.as_ref().is_some_and(|(id, _, completes)| {
        *completes && request.changes.iter().any(|change| ends(change, id))
    });
    (twice || ends_twice).then_some("DuplicateIntent")
}

fn asked(request: &Request) -> Asked {
    let completes = request.intent.as_ref().is_some_and(|intent| intent.2);
    (request.changes.clone(), request.conds.clone(), completes)
}

fn place(step: u32) -> usize {
    usize::try_from(step).map_or(usize::MAX, |step| step.saturating_sub(1))
}

fn obstacle(code: &'static str, id: &Bytes, about: Option<String>) -> Obstacle {
    let id = id.clone();
    Obstacle { code, id, about }
}

fn conflict(id: &Bytes, what: &str) -> Obstacle {
    obstacle("IntentConflict", id, Some(what.into()))
}

fn ended(id: &Bytes, state: &str, mutation: Option<usize>) -> Obstacle {
    obstacle("IntentClosed", id, Some(closed(state, mutation)))
}

/// That an intent is closed, to a step of it or to a mutation.
#[must_use]
pub fn closed(state: &str, mutation: Option<usize>) -> String {
    match mutation {
        None => format!("{state} for a step"),
        Some(index) => format!("{state} for mutation {index}"),
    }
}

/// The statement of the step that this is, if there is one.
#[must_use]
pub fn replayed(plans: &Plans, request: &Request) -> Option<Statement> {
    let (id, step, _) = request.intent.as_ref()?;
    let statement = plans.get(id)?.told.steps.get(place(*step))?;
    Some(Statement {
        replayed: true,
        ..statement.clone()
    })
}

/// Why the step can't be this one.
#[must_use]
pub fn other_outcome(plans: &Plans, request: &Request) -> Option<Obstacle> {
    let (id, step, _) = request.intent.as_ref()?;
    let plan = plans.get(id);
    let done = plan.map_or(&[][..], |plan| &plan.asked);
    match (done.get(place(*step)), plan) {
        (Some(before), _) => (*before != asked(request)).then(|| conflict(id, "content")),
        (None, Some(plan)) if plan.told.state != "open" => Some(ended(id, plan.told.state, None)),
        (None, _) if place(*step) == done.len() => None,
        _ => Some(conflict(id, &format!("step {}", done.len() + 1))),
    }
}

/// Why an intent can't be changed as a request wants it, or go on by it; `touched` are the guards
/// that the request touches.
#[must_use]
pub fn unfit(plans: &Plans, request: &Request, touched: &BTreeSet<Bytes>) -> Option<Obstacle> {
    for (index, change) in request.changes.iter().enumerate() {
        let Some(id) = change.intent() else { continue };
        let told = plans.get(id).map(|plan| &plan.told);
        let wrong = match (change, told) {
            (Change::Bind(_, task), Some(told)) => {
                let by = presented(request, &task.guard);
                let same = told.binding.as_ref().map(|(known, by)| (known, Some(by)));
                if same == Some((task, by)) {
                    None
                } else if !["open", "indeterminate"].contains(&told.state) {
                    Some(ended(id, told.state, Some(index)))
                } else if let Some((known, before)) = &told.binding {
                    let goes_on = told.state == "open"
                        && told.steps.is_empty()
                        && known.guard == task.guard
                        && (by.is_some_and(|by| {
                            (by.epoch, by.mark, by.sequence)
                                != (before.epoch, before.mark, before.sequence)
                        }) || (known.inputs.is_empty() && known.configuration.is_none()));
                    (!goes_on).then(|| conflict(id, "binding"))
                } else {
                    None
                }
            }
            (Change::Bind(..), None) => None,
            (_, None) => Some(obstacle("UnknownIntent", id, None)),
            (_, Some(told)) => {
                let bound = told.binding.as_ref().map(|(task, _)| &task.guard);
                if !["open", "indeterminate"].contains(&told.state) {
                    Some(ended(id, told.state, Some(index)))
                } else if bound != change.named_guard() {
                    Some(conflict(id, "guard"))
                } else {
                    None
                }
            }
        };
        if wrong.is_some() {
            return wrong;
        }
    }
    let (id, ..) = request.intent.as_ref()?;
    let (task, _) = plans.get(id)?.told.binding.as_ref()?;
    let may = touched.contains(&task.guard) && presented(request, &task.guard).is_some();
    (!may).then(|| conflict(id, "guard"))
}

/// What an accepted request leaves of its intents.
pub fn note(plans: &mut Plans, request: &Request, statement: &Statement) {
    let used = request.intent.iter().map(|(id, ..)| id);
    let changed = request.changes.iter().filter_map(Change::intent);
    for id in changed.chain(used).collect::<BTreeSet<_>>() {
        let before = plans.get(id);
        let mut plan = before.cloned().unwrap_or_else(Plan::new);
        for change in request.changes.iter().filter(|c| c.intent() == Some(id)) {
            plan.change(change, request);
        }
        if let Some((_, _, completes)) = request.intent.as_ref().filter(|i| i.0 == *id) {
            plan.asked.push(asked(request));
            plan.told.steps.push(statement.clone());
            if *completes {
                plan.told.state = "completed";
            }
        }
        if before != Some(&plan) {
            plan.told.changed = statement.revision;
            plans.insert(id.clone(), plan);
        }
    }
}

impl Plan {
    const fn new() -> Self {
        let told = Told {
            state: "open",
            owner: None,
            binding: None,
            steps: Vec::new(),
            changed: 0,
        };
        Self {
            told,
            asked: Vec::new(),
        }
    }

    fn change(&mut self, change: &Change, request: &Request) {
        let told = &mut self.told;
        match change {
            Change::Bind(_, task) => {
                let auth = presented(request, &task.guard).cloned();
                told.binding = auth.map(|auth| (task.clone(), auth));
            }
            Change::Close(_, _, how) => (told.state, told.owner) = (how, None),
            Change::Suspend(_, _, owner, at) => {
                told.state = "indeterminate";
                told.owner = Some((owner.clone(), *at));
            }
            Change::Put(..) | Change::Delete(_) | Change::Label(..) | Change::Advance(_) => {}
        }
    }
}
