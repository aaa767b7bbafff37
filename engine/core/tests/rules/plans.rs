//! The oracle's opinion on intents: what the contract says of them, naively, over raw values.

use std::collections::{BTreeMap, BTreeSet};

use crate::oracle::{Model, Refusal, refusal};
use crate::raw::{Auth, Bytes, Change, Cond, Request, Task, presented};

/// What is stated of an accepted commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) revision: u64,
    pub(crate) replayed: bool,
    pub(crate) intent: Option<(Bytes, u32)>,
    pub(crate) guards: Vec<(Bytes, Auth, Option<Auth>)>,
    pub(crate) inputs: Vec<(Bytes, u64)>,
    /// Key, generation, metageneration, previous generation.
    pub(crate) writes: Vec<(Bytes, u64, u64, u64)>,
}

/// What was asked in a step: all of it is kept, and compared as it is.
type Asked = (Vec<Change>, Vec<Cond>, bool);

/// An intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// "open", "indeterminate" or an ending.
    pub(crate) state: &'static str,
    pub(crate) owner: Option<(Bytes, u64)>,
    pub(crate) binding: Option<(Task, Auth)>,
    pub(crate) steps: Vec<(Asked, Statement)>,
    pub(crate) changed: u64,
}

pub(crate) fn bytes(task: &Task) -> usize {
    let inputs: usize = task.inputs.iter().map(|(key, _)| key.len()).sum();
    inputs + task.guard.len() + task.configuration.as_ref().map_or(0, Vec::len)
}

/// Which kind of malformed a request is, as far as it is about intents.
pub(crate) fn malformed(request: &Request) -> Option<&'static str> {
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

fn about(code: &'static str, id: &Bytes, what: String, mutation: Option<usize>) -> Refusal {
    Refusal {
        intent: Some(id.clone()),
        about: Some((what, mutation)),
        ..refusal(code)
    }
}

impl Model {
    /// The statement of the step that this is, if there is one.
    pub(crate) fn replayed(&self, request: &Request) -> Option<Statement> {
        let (id, step, _) = request.intent.as_ref()?;
        let at = usize::try_from(*step).unwrap() - 1;
        let (_, statement) = self.intents.get(id)?.steps.get(at)?;
        Some(Statement {
            replayed: true,
            ..statement.clone()
        })
    }

    /// Why the step can't be this one.
    pub(crate) fn other_outcome(&self, request: &Request) -> Option<Refusal> {
        let (id, step, _) = request.intent.as_ref()?;
        let at = usize::try_from(*step).unwrap() - 1;
        let none = Vec::new();
        let plan = self.intents.get(id);
        let steps = plan.map_or(&none, |plan| &plan.steps);
        match (steps.get(at), plan) {
            (Some((before, _)), _) => (*before != asked(request))
                .then(|| about("IntentConflict", id, "Digest".into(), None)),
            (None, Some(plan)) if plan.state != "open" => {
                Some(about("IntentClosed", id, plan.state.into(), None))
            }
            (None, _) if at == steps.len() => None,
            _ => {
                let what = format!("Step {}", steps.len() + 1);
                Some(about("IntentConflict", id, what, None))
            }
        }
    }

    /// Why an intent can't be changed as a request wants it.
    pub(crate) fn unfit_intent(&self, request: &Request) -> Option<Refusal> {
        for (index, change) in request.changes.iter().enumerate() {
            let Some(id) = change.intent() else { continue };
            let plan = self.intents.get(id);
            let wrong = match (change, plan) {
                (Change::Bind(_, task), Some(plan)) => {
                    let auth = presented(request, &task.guard).unwrap();
                    let same = plan
                        .binding
                        .as_ref()
                        .is_some_and(|(t, a)| t == task && a == auth);
                    (!same).then(|| about("IntentConflict", id, "Binding".into(), None))
                }
                (Change::Bind(..), None) => None,
                (_, None) => Some(about("UnknownIntent", id, String::new(), None)),
                (_, Some(plan)) => {
                    let bound = plan.binding.as_ref().map(|(task, _)| &task.guard);
                    if !["open", "indeterminate"].contains(&plan.state) {
                        Some(about("IntentClosed", id, plan.state.into(), Some(index)))
                    } else if bound != change.names() {
                        Some(about("IntentConflict", id, "Guard".into(), None))
                    } else {
                        None
                    }
                }
            };
            if wrong.is_some() {
                return wrong;
            }
        }
        None
    }

    /// Whether an intent's record would be above 256 KiB, counted as the format writes it.
    pub(crate) fn overfull_intent(
        &self,
        request: &Request,
        touched: &BTreeSet<Bytes>,
    ) -> Option<Refusal> {
        let (id, ..) = request.intent.as_ref()?;
        let (next, _) = self.accepted(request, touched);
        let plan = &next.intents[id];
        let fence = |auth: &Auth| 26 + auth.holder.len();
        let binding = plan.binding.as_ref().map_or(0, |(task, auth)| {
            let names = 2 + 1 + 2 + 2 * usize::from(task.configuration.is_some());
            names + bytes(task) + 11 * task.inputs.len() + fence(auth)
        });
        let step = |(_, s): &(Asked, Statement)| {
            let guard = |(guard, now, before): &(Bytes, Auth, Option<Auth>)| {
                2 + guard.len() + fence(now) + 1 + before.as_ref().map_or(0, fence)
            };
            let guards: usize = s.guards.iter().map(guard).sum();
            let inputs: usize = s.inputs.iter().map(|i| 2 + i.0.len() + 8).sum();
            let writes: usize = s.writes.iter().map(|w| 2 + w.0.len() + 24).sum();
            32 + 26 + 2 + "d".len() + 8 + 1 + 16 + guards + inputs + writes
        };
        let owner = plan
            .owner
            .as_ref()
            .map_or(0, |(name, _)| 2 + name.len() + 8);
        let steps: usize = plan.steps.iter().map(step).sum();
        let size = 1 + owner + 1 + binding + 8 + 2 + steps;
        (size > 256 * 1024).then(|| about("IntentExhausted", id, size.to_string(), None))
    }

    /// What an accepted request leaves of its intents.
    pub(crate) fn note_intents(&mut self, request: &Request, statement: &Statement) {
        let new = Plan {
            state: "open",
            owner: None,
            binding: None,
            steps: Vec::new(),
            changed: 0,
        };
        let used = request.intent.iter().map(|(id, ..)| id);
        let named: BTreeSet<&Bytes> = request
            .changes
            .iter()
            .filter_map(Change::intent)
            .chain(used)
            .collect();
        for id in named {
            let mut plan = self.intents.get(id).cloned().unwrap_or_else(|| new.clone());
            for change in request.changes.iter().filter(|c| c.intent() == Some(id)) {
                match change {
                    Change::Bind(_, task) => {
                        let auth = presented(request, &task.guard).unwrap().clone();
                        plan.binding = Some((task.clone(), auth));
                    }
                    Change::Close(_, _, how) => (plan.state, plan.owner) = (how, None),
                    Change::Suspend(_, _, owner, at) => {
                        plan.state = "indeterminate";
                        plan.owner = Some((owner.clone(), *at));
                    }
                    _ => {}
                }
            }
            if let Some((_, _, completes)) = request.intent.as_ref().filter(|i| i.0 == *id) {
                plan.steps.push((asked(request), statement.clone()));
                if *completes {
                    plan.state = "completed";
                }
            }
            if self.intents.get(id) != Some(&plan) {
                plan.changed = self.revision;
                self.intents.insert(id.clone(), plan);
            }
        }
    }
}
