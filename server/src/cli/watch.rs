//! The command that follows changes: one object a line, or one line of text.

use highwater::{DomainName, Fence, Guard, Key, LeaseRecord, Record, Revision};
use highwater_proto::convert::{FromWire, ToWire, required};
use highwater_proto::v1;
use highwater_proto::v1::watch_change::Kind;
use serde_json::json;

use super::args::{Global, WatchArgs};
use super::failure::{Effect, Failure};
use super::input::InputError;
use super::output::Output;
use super::reads::Keys;
use super::remote::Remote;
use super::{json as form, lease_form, text};

/// Follows changes until the count is reached, the output is closed, or the call ends.
pub(crate) async fn watch(
    global: &Global,
    args: &WatchArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    let bounds = (
        args.prefix.as_deref(),
        args.from.as_deref(),
        args.to.as_deref(),
    );
    let keys = match Keys::parse(global.keys(), bounds.0, bounds.1, bounds.2)? {
        Keys::Prefix(prefix) => v1::watch_request::Keys::Prefix(prefix.to_wire()),
        Keys::Range(range) => v1::watch_request::Keys::Range(range.to_wire()),
    };
    let domain = DomainName::new(&args.domain).map_err(InputError::from)?;
    let message = v1::WatchRequest {
        destination: global.expected_to_wire()?,
        domain: domain.as_str().into(),
        keys: Some(keys),
        fences: args.fences,
        leases: args.leases,
        after: args.after.map(Revision::get),
    };
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut remote = Remote::connect(global).await?;
    let call = remote.client.watch(tonic::Request::new(message));
    let mut stream = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    while left > 0 {
        let next = stream.message().await;
        let next = next.map_err(|status| Failure::of_status(status, Effect::Reads))?;
        let Some(answer) = next else { break };
        let Some(v1::watch_response::Kind::Event(event)) = answer.kind else {
            continue;
        };
        let revision = Revision::from_wire(event.revision).map_err(Failure::of_odd_read)?;
        for change in event.changes {
            if left == 0 {
                break;
            }
            tell(revision, change, args.value_base64, out)?;
            left -= 1;
        }
    }
    Ok(())
}

fn tell(
    revision: Revision,
    change: v1::WatchChange,
    base64: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    let missing = highwater::Malformed::Missing {
        what: "watch event",
    };
    match change.kind.ok_or_else(|| Failure::of_odd_read(missing))? {
        Kind::Put(wire) => record("put", revision, wire, base64, out),
        Kind::Metadata(wire) => record("metadata", revision, wire, base64, out),
        Kind::Deleted(wire) => {
            let key = Key::from_wire(wire).map_err(Failure::of_odd_read)?;
            out.tell(
                || form::event(revision, "deleted", json!({ "key": key.to_string() })),
                || format!("{revision} deleted {key}"),
            )
        }
        Kind::Leased(wire) => {
            let guard = Guard::from_wire(wire.guard).map_err(Failure::of_odd_read)?;
            let record: LeaseRecord =
                required(wire.record, "record").map_err(Failure::of_odd_read)?;
            out.tell(
                || form::event(revision, "leased", lease_form::record(&guard, &record)),
                || format!("{revision} leased {}", lease_form::line(&guard, &record)),
            )
        }
        Kind::Fenced(wire) => {
            let guard = Guard::from_wire(wire.guard).map_err(Failure::of_odd_read)?;
            let fence: Fence = required(wire.fence, "fence").map_err(Failure::of_odd_read)?;
            let object = json!({ "guard": guard.to_string(), "fence": form::fence(&fence) });
            out.tell(
                || form::event(revision, "fenced", object),
                || format!("{revision} fenced {guard} at {fence}"),
            )
        }
    }
}

fn record(
    kind: &str,
    revision: Revision,
    wire: v1::Record,
    base64: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    let read: (Key, Record) = FromWire::from_wire(wire).map_err(Failure::of_odd_read)?;
    let (key, record) = read;
    out.tell(
        || form::event(revision, kind, form::record(&key, &record, base64)),
        || {
            format!(
                "{revision} {kind} {key} {}",
                text::shown(record.value.as_bytes())
            )
        },
    )
}
