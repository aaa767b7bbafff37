//! What is told of leases, as JSON and as text.

use comfy_table::Cell;
use highwater::{
    EndCause, Epoch, Guard, Lease, LeaseEnd, LeaseReceipt, LeaseRecord, LeaseStanding,
    ObservedLease, escape,
};
use serde_json::{Map, Value, json};

use super::json::number;
use super::text::{facts, table};

/// Why a lease ended, with a name for scripts.
pub(crate) fn cause(cause: &EndCause) -> Value {
    let (name, by) = match cause {
        EndCause::Expired => ("expired", None),
        EndCause::Released => ("released", None),
        EndCause::Revoked { by } => ("revoked", Some(escape(by.as_bytes()))),
        EndCause::Superseded => ("superseded", None),
        EndCause::EpochTransition => ("epoch_transition", None),
        EndCause::Restore => ("restore", None),
    };
    match by {
        None => json!({ "cause": name }),
        Some(by) => json!({ "cause": name, "by": by }),
    }
}

fn lease(lease: &Lease) -> Value {
    json!({
        "lease": number(lease.id.get()),
        "authority": lease.authority().to_string(),
        "ttl_ms": number(lease.ttl.get()),
        "renewed_at": number(lease.renewed_at.get()),
    })
}

fn end(end: &LeaseEnd) -> Value {
    let mut object = cause(&end.cause);
    if let Some(map) = object.as_object_mut() {
        map.insert("lease".into(), number(end.lease.id.get()));
        map.insert("authority".into(), end.lease.authority().to_string().into());
        map.insert("at".into(), number(end.at.get()));
    }
    object
}

/// A lease's part of a receipt.
pub(crate) fn receipt(receipt: &LeaseReceipt) -> Value {
    let mut object = lease(&receipt.lease);
    if let Some(map) = object.as_object_mut() {
        map.insert("guard".into(), receipt.guard.to_string().into());
        map.insert("ended".into(), json!(receipt.ended.as_ref().map(cause)));
        let replaced = receipt.replaced.as_ref().map(cause);
        map.insert("replaced".into(), json!(replaced));
    }
    object
}

fn stored(map: &mut Map<String, Value>, record: &LeaseRecord) {
    map.insert("epoch".into(), record.epoch.to_string().into());
    let issued = record.issued().map(|sequence| number(sequence.get()));
    map.insert("issued".into(), json!(issued));
    let current = record.current.as_deref().map(lease);
    map.insert("current".into(), json!(current));
    map.insert("last_end".into(), json!(record.last_end.as_ref().map(end)));
    map.insert("changed_at".into(), number(record.changed_at.get()));
}

/// What is stored of a guard's leases.
pub(crate) fn record(guard: &Guard, record: &LeaseRecord) -> Value {
    let mut map = Map::new();
    map.insert("guard".into(), guard.to_string().into());
    stored(&mut map, record);
    Value::Object(map)
}

const fn standing_name(standing: Option<LeaseStanding>) -> &'static str {
    match standing {
        None => "none",
        Some(LeaseStanding::Live { .. }) => "live",
        Some(LeaseStanding::Lapsed { .. }) => "lapsed",
        Some(LeaseStanding::Retired) => "retired",
    }
}

const fn remaining_ms(standing: Option<LeaseStanding>) -> Option<u64> {
    match standing {
        Some(LeaseStanding::Live { remaining_ms }) => Some(remaining_ms),
        Some(LeaseStanding::Lapsed { .. }) => Some(0),
        Some(LeaseStanding::Retired) | None => None,
    }
}

/// A guard as it was looked at. One on which no lease was ever granted has no record.
pub(crate) fn seen(
    guard: &Guard,
    stored: Option<&LeaseRecord>,
    standing: Option<LeaseStanding>,
) -> Value {
    let mut object = match stored {
        Some(stored) => record(guard, stored),
        None => json!({ "guard": guard.to_string(), "current": null, "last_end": null }),
    };
    if let Some(map) = object.as_object_mut() {
        map.insert("standing".into(), standing_name(standing).into());
        let remaining = remaining_ms(standing).map(number);
        map.insert("remaining_ms".into(), json!(remaining));
    }
    object
}

/// Leases as they were observed at a refusal.
pub(crate) fn observed(observed: &ObservedLease) -> Value {
    let mut map = Map::new();
    if let Some(record) = &observed.record {
        stored(&mut map, record);
    }
    map.insert(
        "remaining_ms".into(),
        json!(observed.remaining_ms.map(number)),
    );
    Value::Object(map)
}

/// A guard's leases in one line.
pub(crate) fn line(guard: &Guard, record: &LeaseRecord) -> String {
    match (&record.current, &record.last_end) {
        (Some(lease), _) => format!(
            "{guard}: lease {} of {} for {}",
            lease.id,
            lease.authority(),
            lease.ttl
        ),
        (None, Some(end)) => format!("{guard}: lease {} {}", end.lease.id, end.cause),
        (None, None) => format!("{guard}: no lease"),
    }
}

/// A lease's part of a receipt, in one line.
pub(crate) fn receipt_line(receipt: &LeaseReceipt) -> String {
    let LeaseReceipt {
        guard,
        lease,
        ended,
        replaced,
    } = receipt;
    let what = match (ended, replaced) {
        (Some(cause), _) => format!("ended: {cause}"),
        (None, Some(cause)) => format!("for {}; the one before: {cause}", lease.ttl),
        (None, None) => format!("for {}", lease.ttl),
    };
    let (id, authority) = (lease.id, lease.authority());
    format!("guard {guard}: lease {id} of {authority}, {what}")
}

/// A guard as it was looked at, in full.
pub(crate) fn seen_text(
    guard: &Guard,
    stored: Option<&LeaseRecord>,
    standing: Option<LeaseStanding>,
    epoch: &Epoch,
) -> String {
    let none = || String::from("-");
    let current = stored.and_then(|record| record.current.as_ref());
    let end = stored.and_then(|record| record.last_end.as_ref());
    let issued = stored.and_then(LeaseRecord::issued);
    facts(&[
        ("guard", guard.to_string()),
        ("epoch", epoch.to_string()),
        ("standing", standing_name(standing).into()),
        (
            "remaining",
            remaining_ms(standing).map_or_else(none, |ms| format!("{ms} ms")),
        ),
        (
            "lease",
            current.map_or_else(none, |lease| lease.id.to_string()),
        ),
        (
            "authority",
            current.map_or_else(none, |lease| lease.authority().to_string()),
        ),
        (
            "time to live",
            current.map_or_else(none, |lease| lease.ttl.to_string()),
        ),
        (
            "highest issued",
            issued.map_or_else(none, |issued| issued.to_string()),
        ),
        (
            "last end",
            end.map_or_else(none, |end| format!("lease {} {}", end.lease.id, end.cause)),
        ),
    ])
}

/// Guards in a table.
pub(crate) fn list_text(rows: &[(Guard, LeaseRecord, Option<LeaseStanding>)]) -> String {
    let mut table = table(&["GUARD", "LEASE", "AUTHORITY", "STANDING", "REMAINING MS"]);
    for (guard, record, standing) in rows {
        let current = record.current.as_ref();
        let or = |text: Option<String>| Cell::new(text.unwrap_or_else(|| "-".into()));
        table.add_row([
            Cell::new(guard),
            or(current.map(|lease| lease.id.to_string())),
            or(current.map(|lease| lease.authority().to_string())),
            Cell::new(standing_name(*standing)),
            or(remaining_ms(*standing).map(|ms| ms.to_string())),
        ]);
    }
    table.trim_fmt()
}
