//! The JSON forms of intents.

use highwater::{
    Authority, Binding, BindingSummary, Effects, Input, IntentConflict, IntentId, IntentRecord,
    IntentState, IntentStep, IntentSummary, ObservedIntent, Step, StepRecord, StepSummary, escape,
};
use highwater_client::{IntentOutcome, StoredIntent};
use serde_json::{Map, Value, json};

use super::json::{generation, number, receipt};

/// What a state is called.
pub(crate) fn state_name(state: &IntentState) -> String {
    match state {
        IntentState::Open => "open".into(),
        IntentState::Indeterminate { .. } => "indeterminate".into(),
        IntentState::Ended(ending) => ending.to_string(),
    }
}

/// A state, with its owner and its time of review where it has them.
pub(crate) fn state(map: &mut Map<String, Value>, state: &IntentState) {
    map.insert("state".into(), state_name(state).into());
    if let IntentState::Indeterminate {
        owner,
        review_at_ms,
    } = state
    {
        map.insert("owner".into(), escape(owner.as_bytes()).into());
        map.insert("review_at_ms".into(), number(*review_at_ms));
    }
}

/// The step of an intent that a commit was.
pub(crate) fn step(of: &IntentStep) -> Value {
    json!({ "id": of.id.to_string(), "step": of.step.get() })
}

/// In what an intent differs.
pub(crate) fn conflict(map: &mut Map<String, Value>, conflict: &IntentConflict) {
    let name = match conflict {
        IntentConflict::Digest => "content",
        IntentConflict::Step { expected } => {
            map.insert("expected_step".into(), json!(expected.map(Step::get)));
            "step"
        }
        IntentConflict::Binding => "binding",
        IntentConflict::Guard => "guard",
    };
    map.insert("conflict".into(), name.into());
}

fn input(input: &Input) -> Value {
    match input {
        Input::Key {
            key,
            generation: version,
        } => json!({ "key": key.to_string(), "generation": generation(*version) }),
        Input::Named { name, digest } => {
            json!({ "name": escape(name.as_bytes()), "digest": digest.to_string() })
        }
    }
}

fn bound(
    guard: &highwater::Guard,
    authority: &Authority,
    configuration: Option<&highwater::Configuration>,
    inputs: Value,
) -> Value {
    json!({
        "guard": guard.to_string(),
        "authority": authority.to_string(),
        "configuration": configuration.map(|version| escape(version.as_bytes())),
        "inputs": inputs,
    })
}

fn binding(binding: &Binding) -> Value {
    let work = &binding.work;
    let inputs = work.inputs.iter().map(input).collect::<Vec<_>>();
    let configuration = work.configuration.as_ref();
    bound(
        &work.guard,
        &binding.authority,
        configuration,
        json!(inputs),
    )
}

fn binding_in_brief(binding: &BindingSummary) -> Value {
    let configuration = binding.configuration.as_ref();
    let inputs = json!(binding.inputs);
    bound(&binding.guard, &binding.authority, configuration, inputs)
}

fn object(id: &IntentId, of: &IntentState, rest: [(&str, Value); 3]) -> Value {
    let mut map = Map::new();
    map.insert("intent".into(), id.to_string().into());
    state(&mut map, of);
    map.extend(rest.map(|(name, value)| (name.into(), value)));
    Value::Object(map)
}

/// All that is stored of an intent, and the revision that was read.
pub(crate) fn record(id: &IntentId, record: &IntentRecord, revision: u64) -> Value {
    let mut object = whole(id, record);
    if let Some(map) = object.as_object_mut() {
        map.insert("revision".into(), number(revision));
    }
    object
}

/// All that is stored of an intent.
fn whole(id: &IntentId, record: &IntentRecord) -> Value {
    let step = |step: &StepRecord| {
        json!({
            "step": step.step.get(),
            "digest": step.digest.to_string(),
            "receipt": receipt(&step.receipt),
        })
    };
    let steps: Vec<Value> = record.steps.iter().map(|record| step(record)).collect();
    object(
        id,
        &record.state,
        [
            ("binding", json!(record.binding.as_deref().map(binding))),
            ("steps", json!(steps)),
            ("changed_at", number(record.changed_at.get())),
        ],
    )
}

/// An intent in brief.
pub(crate) fn summary(id: &IntentId, summary: &IntentSummary) -> Value {
    let step = |step: &StepSummary| {
        let at = number(step.revision.get());
        json!({ "step": step.step.get(), "revision": at })
    };
    let steps: Vec<Value> = summary.steps.iter().map(step).collect();
    let binding = summary.binding.as_ref();
    object(
        id,
        &summary.state,
        [
            ("binding", json!(binding.map(binding_in_brief))),
            ("steps", json!(steps)),
            ("changed_at", number(summary.changed_at.get())),
        ],
    )
}

/// An intent as it was observed. One that isn't known has no state.
pub(crate) fn observed(intent: &ObservedIntent) -> Value {
    match &intent.found {
        Some(found) => summary(&intent.id, found),
        None => json!({ "intent": intent.id.to_string(), "state": null }),
    }
}

/// What became of an intent is called so.
pub(crate) const fn effects_name(effects: Effects) -> &'static str {
    match effects {
        Effects::Present => "present",
        Effects::Absent => "absent",
        Effects::Indeterminate => "indeterminate",
    }
}

/// What became of an intent, with what is stored of it.
pub(crate) fn found(found: &IntentOutcome) -> Value {
    let stored = match &found.stored {
        None => Value::Null,
        Some(StoredIntent::Whole(record)) => whole(&found.id, record),
        Some(StoredIntent::Brief(brief)) => summary(&found.id, brief),
    };
    json!({
        "intent": found.id.to_string(),
        "effects": effects_name(found.finding.effects),
        "settled": found.finding.settled,
        "stored": stored,
    })
}
