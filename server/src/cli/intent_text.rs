//! Intents as people read them.

use comfy_table::Cell;
use highwater::{Input, IntentId, IntentRecord, IntentState, IntentSummary};
use highwater_client::{IntentOutcome, StoredIntent};

use super::intent_json::{self, state_name};
use super::text::{facts, generation, shown, table};

/// A state, and of an indeterminate intent who looks at it when.
fn state(state: &IntentState) -> String {
    match state {
        IntentState::Indeterminate {
            owner,
            review_at_ms,
        } => format!(
            "indeterminate, to be resolved by {}, review at {review_at_ms} ms",
            shown(owner.as_bytes())
        ),
        IntentState::Open | IntentState::Ended(_) => state_name(state),
    }
}

fn input(input: &Input) -> String {
    match input {
        Input::Key {
            key,
            generation: version,
        } => format!("key {key} at generation {}", generation(*version)),
        Input::Named { name, digest } => {
            format!("{} with digest {digest}", shown(name.as_bytes()))
        }
    }
}

/// All that is stored of an intent; of its receipts the revisions.
pub(crate) fn record(id: &IntentId, record: &IntentRecord) -> String {
    let mut rows = vec![
        ("intent", id.to_string()),
        ("state", state(&record.state)),
        ("changed at", record.changed_at.to_string()),
    ];
    if let Some(binding) = &record.binding {
        let work = &binding.work;
        rows.push(("bound to guard", work.guard.to_string()));
        rows.push(("bound by", binding.authority.to_string()));
        let configuration = work.configuration.as_ref();
        rows.extend(configuration.map(|version| ("configuration", shown(version.as_bytes()))));
        rows.extend(work.inputs.iter().map(|from| ("input", input(from))));
    }
    let steps = record.steps.iter();
    rows.extend(steps.map(|step| {
        let at = step.receipt.revision;
        ("step", format!("{} accepted at revision {at}", step.step))
    }));
    facts(&rows)
}

/// Intents in a table.
pub(crate) fn summaries(intents: &[(IntentId, IntentSummary)]) -> String {
    let mut table = table(&[
        "INTENT",
        "STATE",
        "GUARD",
        "BOUND BY",
        "STEPS",
        "CHANGED AT",
    ]);
    for (id, summary) in intents {
        let binding = summary.binding.as_ref();
        let absent = || String::from("-");
        table.add_row([
            Cell::new(id),
            Cell::new(state(&summary.state)),
            Cell::new(binding.map_or_else(absent, |binding| binding.guard.to_string())),
            Cell::new(binding.map_or_else(absent, |binding| binding.authority.to_string())),
            Cell::new(summary.steps.len()),
            Cell::new(summary.changed_at),
        ]);
    }
    table.trim_fmt()
}

/// What became of an intent, in one line.
pub(crate) fn found(found: &IntentOutcome) -> String {
    let steps = match &found.stored {
        None => 0,
        Some(StoredIntent::Whole(record)) => record.steps.len(),
        Some(StoredIntent::Brief(summary)) => summary.steps.len(),
    };
    let settled = if found.finding.settled {
        ""
    } else {
        ", and an earlier holder can still add to it"
    };
    let effects = intent_json::effects_name(found.finding.effects);
    format!("intent {}: {effects}, {steps} steps{settled}", found.id)
}
