//! How a script's answers are printed: revisions counted from the store's beginning, and no number
//! that is drawn at random.

use highwater::{Error, IntentState, IntentSummary, Receipt, escape};
use highwater_tests::model::Row;
use highwater_tests::plans::Told;
use highwater_tests::raw::{Auth, Bytes};
use highwater_tests::seen;

/// How many bits of a revision count, and those bits; above them is 1 for a new store.
const COUNTER_BITS: u32 = 48;
const COUNTER: u64 = (1 << COUNTER_BITS) - 1;

pub(super) fn name(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".into();
    }
    if bytes.len() > 40 {
        return format!("({} bytes)", bytes.len());
    }
    escape(bytes)
}

/// A generation or a revision.
pub(super) fn at(raw: u64) -> String {
    if raw == 0 {
        return "absent".into();
    }
    (raw & COUNTER).to_string()
}

pub(super) fn auth(auth: &Auth) -> String {
    let sequence = match auth.sequence {
        last if last == u64::MAX - 1 => "last".into(),
        other => other.to_string(),
    };
    format!("{sequence}@{}", escape(&auth.holder))
}

fn before(fence: Option<&Auth>) -> String {
    fence.map_or_else(|| "unfenced".into(), auth)
}

pub(super) fn row(key: &Bytes, row: &Row) -> String {
    let mut text = format!("{}={} g{}", name(key), name(&row.value), at(row.generation));
    if row.metageneration > 1 {
        text.push_str(&format!(" m{}", row.metageneration));
    }
    if !row.text.is_empty() {
        text.push_str(&format!(" {}", row.text));
    }
    text
}

pub(super) fn receipt(receipt: &Receipt) -> String {
    let statement = seen::statement(receipt);
    let again = if statement.replayed {
        "told again: "
    } else {
        ""
    };
    let mut text = format!("  {again}accepted at {}", at(statement.revision));
    if let Some((id, step)) = &statement.intent {
        text.push_str(&format!(", step {step} of {}", name(id)));
    }
    text.push('\n');
    for (guard, fence, previous) in &statement.guards {
        let (guard, fence, previous) = (name(guard), auth(fence), before(previous.as_ref()));
        text.push_str(&format!("  guard {guard}: {fence}, before {previous}\n"));
    }
    for (key, generation) in &statement.inputs {
        text.push_str(&format!("  looked at {}: {}\n", name(key), at(*generation)));
    }
    for (key, generation, metageneration, previous) in &statement.writes {
        let key = name(key);
        let (now, before) = (at(*generation), at(*previous));
        let version = match metageneration {
            0 | 1 => String::new(),
            more => format!(" metageneration {more}"),
        };
        text.push_str(&format!("  wrote {key}: {now}{version}, before {before}\n"));
    }
    text
}

/// An intent, in short.
pub(super) fn plan(id: &[u8], plan: &Told) -> String {
    let owner = plan.owner.as_ref().map(|(owner, _)| owner.as_slice());
    let binding = plan.binding.as_ref();
    let binding = binding.map(|(task, by)| (task.guard.as_slice(), auth(by)));
    described(id, (plan.state, owner), binding, plan.steps.len())
}

/// The same of one that was observed at a refusal.
fn observed_plan(id: &[u8], found: &IntentSummary) -> String {
    let state = found.state.to_string();
    let state = match &found.state {
        IntentState::Indeterminate { owner, .. } => ("indeterminate", Some(owner.as_bytes())),
        IntentState::Open | IntentState::Ended(_) => (state.as_str(), None),
    };
    let binding = found.binding.as_ref();
    let binding = binding.map(|binding| {
        let by = auth(&seen::authority(&binding.authority));
        (binding.guard.as_bytes(), by)
    });
    described(id, state, binding, found.steps.len())
}

fn described(
    id: &[u8],
    (state, owner): (&str, Option<&[u8]>),
    binding: Option<(&[u8], String)>,
    steps: usize,
) -> String {
    let mut text = format!("{} is {state}", name(id));
    if let Some(owner) = owner {
        text.push_str(&format!(" with {}", name(owner)));
    }
    if let Some((guard, by)) = binding {
        text.push_str(&format!(", bound to {} by {by}", name(guard)));
    }
    match steps {
        0 => {}
        count => text.push_str(&format!(", steps {count}")),
    }
    text
}

/// A refusal with its rule, its sentence, and everything that was observed.
pub(super) fn error(error: &Error, marks: &[String]) -> String {
    let Error::Rejected(rejection) = error else {
        return format!("  {}\n", plain(&error.to_string(), marks));
    };
    let rule = format!("{:?}", rejection.reason.rule());
    let sentence = plain(&rejection.to_string(), marks);
    let seen = seen::refusal(rejection);
    let mut observed = Vec::new();
    if let Some(guard) = &seen.guard {
        let fence = before(seen.fence.as_ref());
        observed.push(format!("guard {}: {fence}", name(guard)));
    }
    if let Some(key) = &seen.key {
        let generation = at(seen.generation.unwrap_or(0));
        observed.push(format!("key {}: {generation}", name(key)));
    }
    if let Some(version) = seen.metageneration {
        observed.push(format!("metageneration {version}"));
    }
    if let Some(changed) = seen.changed {
        observed.push(format!("changed at {}", at(changed)));
    }
    if let Some(intent) = &rejection.observed.intent {
        let id = intent.id.as_bytes();
        observed.push(match &intent.found {
            Some(found) => observed_plan(id, found),
            None => format!("{} is unknown", name(id)),
        });
    }
    let mut text = format!("  refused by {rule} {sentence}\n");
    if !observed.is_empty() {
        text.push_str(&format!("  observed {}\n", observed.join(", ")));
    }
    text
}

/// A sentence without what is random in it, and with revisions as everywhere else.
fn plain(sentence: &str, marks: &[String]) -> String {
    let mut sentence = sentence.to_owned();
    for mark in marks {
        sentence = sentence.replace(mark.as_str(), "*");
    }
    let is_number = |c: char| c.is_ascii_digit();
    let mut text = String::new();
    for word in sentence.split_inclusive(|c| !is_number(c)) {
        let digits = word.trim_end_matches(|c| !is_number(c));
        match digits.parse::<u64>() {
            Ok(raw) if raw > COUNTER && raw >> COUNTER_BITS == 1 => {
                text.push_str(&at(raw));
                text.push_str(&word[digits.len()..]);
            }
            _ => text.push_str(word),
        }
    }
    text
}
