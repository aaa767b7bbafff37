//! The JSON forms. Every 64-bit number is a string, so that no reader rounds it above 2^53; keys,
//! guards and holders are the escaped text that every command reads back.

use highwater::{
    Authority, Condition, Domain, EpochEntry, Fence, Generation, GuardRule, Key, Metadata,
    Metageneration, Observed, Policy, Reason, Receipt, Record, Rejection, Revision, escape,
};
use highwater_client::{ClientError, Lost};
use highwater_proto::v1;
use serde_json::{Map, Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::input::to_base64;
use super::{intent_json, lease_form, text};

/// A 64-bit number.
pub(crate) fn number(number: u64) -> Value {
    Value::String(number.to_string())
}

/// A generation; 0 is "does not exist".
pub(crate) fn generation(generation: Option<Generation>) -> Value {
    number(generation.map_or(0, Generation::get))
}

fn metageneration(metageneration: Option<Metageneration>) -> Value {
    number(metageneration.map_or(0, Metageneration::get))
}

/// A fence.
pub(crate) fn fence(fence: &Fence) -> Value {
    json!({
        "epoch": fence.term.epoch.to_string(),
        "sequence": number(fence.term.sequence.get()),
        "holder": escape(fence.holder.as_bytes()),
    })
}

/// What a destination states about an accepted commit.
pub(crate) fn receipt(receipt: &Receipt) -> Value {
    let guards = receipt.guards.iter().map(|guard| {
        json!({
            "guard": guard.guard.to_string(),
            "fence": fence(&guard.fence),
            "previous": guard.previous.as_ref().map(fence),
        })
    });
    let inputs = receipt.inputs.iter().map(
        |input| json!({ "key": input.key.to_string(), "generation": generation(input.generation) }),
    );
    let writes = receipt.writes.iter().map(|write| {
        json!({
            "key": write.key.to_string(),
            "generation": generation(write.generation),
            "metageneration": metageneration(write.metageneration),
            "previous_generation": generation(write.previous),
        })
    });
    json!({
        "destination": receipt.destination.to_string(),
        "incarnation": receipt.incarnation.to_string(),
        "domain": receipt.domain.as_str(),
        "revision": number(receipt.revision.get()),
        "intent": receipt.intent.as_ref().map(intent_json::step),
        "guards": guards.collect::<Vec<_>>(),
        "inputs": inputs.collect::<Vec<_>>(),
        "writes": writes.collect::<Vec<_>>(),
        "leases": receipt.leases.iter().map(lease_form::receipt).collect::<Vec<_>>(),
        "replayed": receipt.replayed,
        "advisory_time_ms": receipt.advisory_time_ms.map(number),
    })
}

/// An accepted commit, or one that would be.
pub(crate) fn accepted(stated: &Receipt, dry_run: bool) -> Value {
    json!({ "verdict": "accepted", "dry_run": dry_run, "receipt": receipt(stated) })
}

/// A refused request with its evidence.
pub(crate) fn rejection(rejection: &Rejection) -> Value {
    let reason = &rejection.reason;
    let mut object = json!({
        "verdict": "rejected",
        "code": reason.code(),
        "rule": format!("{:?}", reason.rule()),
        "message": rejection.to_string(),
        "observed": observed(&rejection.observed),
    });
    if let Some(map) = object.as_object_mut() {
        details(map, reason);
    }
    object
}

/// What a reason holds besides what was observed.
fn details(map: &mut Map<String, Value>, reason: &Reason) {
    let text = |authority: &Authority| Value::String(authority.to_string());
    let wide = |size: usize| number(u64::try_from(size).unwrap_or(u64::MAX));
    let mut add = |name: &str, value| map.insert(name.into(), value);
    match reason {
        Reason::StaleEpoch { presented }
        | Reason::UnknownEpoch { presented }
        | Reason::StaleTerm { presented }
        | Reason::HolderConflict { presented }
        | Reason::WrongHolder { presented }
        | Reason::UnknownTerm { presented } => {
            add("presented", text(presented));
        }
        Reason::LeaseHeld { remaining_ms } | Reason::LeaseDelayed { remaining_ms } => {
            add("remaining_ms", number(*remaining_ms));
        }
        Reason::LeaseGone { lease, ended } => {
            add(
                "lease",
                lease.map_or(Value::Null, |lease| number(lease.get())),
            );
            add("ended", json!(ended.as_ref().map(lease_form::cause)));
        }
        Reason::NotLeased { presented, ended } => {
            add("presented", text(presented));
            add("ended", json!(ended.as_ref().map(lease_form::cause)));
        }
        Reason::SequenceJump {
            presented,
            step,
            max,
        } => {
            add("presented", text(presented));
            add("step", number(step.get()));
            add("max", number(max.get()));
        }
        Reason::ConditionFailed { index, condition } => {
            add("condition_index", json!(index));
            add("condition", condition_name(condition).into());
        }
        Reason::TooOld {
            index,
            remembers_since,
        } => {
            add("condition_index", json!(index));
            add("remembers_since", number(remembers_since.get()));
        }
        Reason::Malformed(_)
        | Reason::WrongDestination
        | Reason::UnknownDomain
        | Reason::DomainExists
        | Reason::TooManyDomains
        | Reason::Unavailable(_)
        | Reason::AuthorityRequired
        | Reason::PreconditionRequired
        | Reason::RevisionExhausted
        | Reason::MetagenerationExhausted
        | Reason::UnknownIntent
        | Reason::SequenceExhausted => {}
        Reason::IntentConflict(conflict) => intent_json::conflict(map, conflict),
        Reason::IntentClosed { state, mutation } => {
            add("mutation_index", json!(mutation));
            intent_json::state(map, state);
        }
        Reason::IntentExhausted { bytes, max } => {
            add("bytes", wide(*bytes));
            add("max", wide(*max));
        }
    }
}

/// The name that a condition has in a commit's JSON form.
const fn condition_name(condition: &Condition) -> &'static str {
    match condition {
        Condition::GenerationIs { .. } => "generation_is",
        Condition::GenerationIsNot { .. } => "generation_is_not",
        Condition::MetagenerationIs { .. } => "metageneration_is",
        Condition::MetagenerationIsNot { .. } => "metageneration_is_not",
        Condition::WrittenUnder { .. } => "written_under",
        Condition::ValueDigestIs { .. } => "value_digest_is",
        Condition::KeyUnchangedSince { .. } => "key_unchanged_since",
        Condition::PrefixUnchangedSince { .. } => "prefix_unchanged_since",
    }
}

fn observed(observed: &Observed) -> Value {
    let about_key = observed.key.is_some();
    json!({
        "destination": observed.destination.to_string(),
        "incarnation": observed.incarnation.to_string(),
        "revision": number(observed.revision.get()),
        "epoch": observed.epoch.map(|epoch| epoch.to_string()),
        "guard": observed.guard.as_ref().map(ToString::to_string),
        "fence": observed.fence.as_ref().map(fence),
        "key": observed.key.as_ref().map(ToString::to_string),
        "generation": about_key.then(|| generation(observed.generation)),
        "metageneration": about_key.then(|| metageneration(observed.metageneration)),
        "changed_at": observed.changed_at.map(|revision| number(revision.get())),
        "digest": observed.digest.map(|digest| digest.to_string()),
        "intent": observed.intent.as_ref().map(intent_json::observed),
        "lease": observed.lease.as_ref().map(lease_form::observed),
    })
}

/// Any failure.
pub(crate) fn failure(failure: &Failure) -> Value {
    let message = failure.to_string();
    if let Some(refused) = failure.rejection() {
        return rejection(refused);
    }
    match failure {
        Failure::Untold { revision, .. } => json!({
            "error": failure.kind(),
            "accepted_at": number(revision.get()),
            "message": message,
        }),
        Failure::LeaseLost(lost) => json!({
            "error": failure.kind(),
            "message": message,
            "rejection": match lost {
                Lost::Refused(refused) => rejection(refused),
                Lost::Expired | Lost::Released => Value::Null,
            },
        }),
        _ if failure.exit() == Exit::OutcomeUnknown => {
            json!({ "verdict": "unknown", "message": message })
        }
        Failure::Call { error, .. } => match &**error {
            ClientError::WatchTooOld { requested, oldest } => {
                let known = |revision: &Option<Revision>| number(revision.map_or(0, Revision::get));
                json!({
                    "error": failure.kind(),
                    "message": message,
                    "requested": known(requested),
                    "oldest": known(oldest),
                })
            }
            _ => json!({ "error": failure.kind(), "message": message }),
        },
        _ => json!({ "error": failure.kind(), "message": message }),
    }
}

fn metadata(map: &mut Map<String, Value>, metadata: &Metadata) {
    map.insert("content_type".into(), json!(metadata.content_type()));
    map.insert("labels".into(), json!(metadata.labels()));
}

/// A record under its key. The value is `value` where it is UTF-8 and base64 isn't asked for, and
/// `value_base64` otherwise: always exactly one of the two.
pub(crate) fn record(key: &Key, record: &Record, base64: bool) -> Value {
    let mut map = Map::new();
    map.insert("key".into(), key.to_string().into());
    map.insert("generation".into(), number(record.generation.get()));
    map.insert("metageneration".into(), number(record.metageneration.get()));
    map.insert("changed_at".into(), number(record.changed_at.get()));
    let under = record.written_under.map(|term| term.to_string());
    map.insert("written_under".into(), json!(under));
    let bytes = record.value.as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) if !base64 => map.insert("value".into(), text.into()),
        _ => map.insert("value_base64".into(), to_base64(bytes).into()),
    };
    metadata(&mut map, &record.metadata);
    Value::Object(map)
}

fn epoch(entry: &EpochEntry) -> Value {
    json!({
        "epoch": entry.epoch.to_string(),
        "installed_at": number(entry.installed_at.get()),
    })
}

fn policy(policy: &Policy) -> Value {
    let guard = match policy.guard() {
        GuardRule::Key => json!({ "rule": "key" }),
        GuardRule::Domain => json!({ "rule": "domain" }),
        GuardRule::Prefix { delimiter, depth } => {
            json!({ "rule": "prefix", "delimiter": escape(&[delimiter]), "depth": depth })
        }
    };
    json!({
        "guard": guard,
        "admission": text::admission(policy),
        "holder_binding": text::binding(policy),
        "terms": text::terms(policy),
        "strict": policy.strict(),
        "grace_ms": number(policy.grace_ms()),
        "max_sequence_step": policy.max_sequence_step().map(|step| number(step.get())),
    })
}

/// A domain. `epoch` is the text that an authority begins with.
pub(crate) fn domain(domain: &Domain) -> Value {
    let current = domain.epochs.current();
    json!({
        "id": domain.id.get(),
        "name": domain.name.as_str(),
        "epoch": current.epoch.to_string(),
        "epoch_installed_at": number(current.installed_at.get()),
        "retired": domain.epochs.retired().iter().map(epoch).collect::<Vec<_>>(),
        "state": text::state(domain),
        "policy": policy(&domain.policy),
        "created_at": number(domain.created_at.get()),
    })
}

/// One change that a watch tells of.
pub(crate) fn event(revision: Revision, kind: &str, mut fields: Value) -> Value {
    if let Some(map) = fields.as_object_mut() {
        map.insert("event".into(), kind.into());
        map.insert("revision".into(), number(revision.get()));
    }
    fields
}

/// What a destination says about itself.
pub(crate) fn status(destination: &str, incarnation: &str, wire: &v1::StatusResponse) -> Value {
    let numbers = |map: std::collections::BTreeMap<&String, &u64>| {
        let entries = map.into_iter().map(|(name, n)| (name.clone(), number(*n)));
        Value::Object(entries.collect())
    };
    json!({
        "destination": destination,
        "incarnation": incarnation,
        "revision": number(wire.revision),
        "availability": text::availability(wire),
        "domains": wire.domains,
        "value_bytes_max": number(wire.value_bytes_max),
        "message_bytes_max": number(wire.message_bytes_max),
        "server_version": wire.server_version,
        "counters": numbers(wire.counters.iter().collect()),
        "rejections": numbers(wire.rejections.iter().collect()),
    })
}
