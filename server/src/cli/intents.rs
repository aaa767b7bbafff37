//! The commands of intents.

use bytes::Bytes;
use highwater::{DomainName, Guard, IntentId, IntentRecord, IntentState, IntentSummary, Malformed};
use highwater_client::IntentOutcome;
use highwater_proto::convert::{FromWire, ToWire, optional};
use highwater_proto::v1;
use serde_json::Value;

use super::args::{Format, Global};
use super::failure::{Effect, Failure};
use super::input::InputError;
use super::intent_args::{CloseArgs, IntentCommand, ListArgs, ReconcileArgs};
use super::output::Output;
use super::remote::{Remote, stated};
use super::{intent_json, intent_text, json, text, writes};

/// Binds, shows, lists, ends or suspends intents.
pub(crate) async fn intent(
    global: &Global,
    command: &IntentCommand,
    out: &mut Output,
) -> Result<(), Failure> {
    let keys = global.keys();
    match command {
        IntentCommand::Bind(args) => {
            writes::authority(global)?;
            writes::commit(global, args.commit(keys)?, args.dry_run, out).await
        }
        IntentCommand::Show { domain, intent } => show(global, domain, intent, out).await,
        IntentCommand::List(args) => list(global, args, out).await,
        IntentCommand::Close(args) => {
            writes::commit(global, args.commit(keys)?, args.dry_run, out).await
        }
        IntentCommand::Suspend(args) => {
            writes::commit(global, args.commit(keys)?, args.dry_run, out).await
        }
        IntentCommand::Reconcile(args) => reconcile(global, args, out).await,
        IntentCommand::Resolve(args) => resolve(global, args, out).await,
    }
}

/// What is stored of an intent, and the revision that was read.
async fn look(
    global: &Global,
    domain: &str,
    id: &IntentId,
) -> Result<(Option<IntentRecord>, u64), Failure> {
    let domain = DomainName::new(domain).map_err(InputError::from)?;
    let message = v1::GetIntentRequest {
        destination: global.expected_to_wire()?,
        domain: domain.as_str().into(),
        id: id.to_wire(),
    };
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(message);
    let call = remote.client.get_intent(request);
    let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    let record = optional(answer.intent).map_err(Failure::of_odd_read)?;
    Ok((record, answer.revision))
}

async fn show(
    global: &Global,
    domain: &str,
    id: &IntentId,
    out: &mut Output,
) -> Result<(), Failure> {
    let (record, revision) = look(global, domain, id).await?;
    let record = record.ok_or(Failure::UnknownIntent)?;
    out.tell(
        || intent_json::record(id, &record, revision),
        || intent_text::record(id, &record),
    )
}

/// Ends an indeterminate intent. One that is indeterminate can only end, so the look before holds.
async fn resolve(global: &Global, args: &CloseArgs, out: &mut Output) -> Result<(), Failure> {
    let commit = args.commit(global.keys())?;
    let (record, _) = look(global, &args.domain, &args.intent).await?;
    if record.is_some_and(|record| record.state == IntentState::Open) {
        return Err(Failure::NotIndeterminate);
    }
    writes::commit(global, commit, args.dry_run, out).await
}

fn page(wire: Vec<v1::ListedIntent>) -> Result<Vec<(IntentId, IntentSummary)>, Failure> {
    let read: Result<_, Malformed> = wire.into_iter().map(FromWire::from_wire).collect();
    read.map_err(Failure::of_odd_read)
}

async fn list(global: &Global, args: &ListArgs, out: &mut Output) -> Result<(), Failure> {
    let domain = DomainName::new(&args.domain).map_err(InputError::from)?;
    let (filter, due_before_ms) = args.filter()?.to_wire();
    let destination = global.expected_to_wire()?;
    let mut remote = Remote::connect(global).await?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut page_token = Bytes::new();
    while left > 0 {
        let request = remote.request(v1::ListIntentsRequest {
            destination: destination.clone(),
            domain: domain.as_str().into(),
            filter: i32::from(filter),
            due_before_ms,
            page_intents: u32::try_from(left).unwrap_or(0),
            page_token,
        });
        let call = remote.client.list_intents(request);
        let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
        let mut intents = page(answer.intents)?;
        intents.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left = left.saturating_sub(intents.len() as u64);
        tell(&intents, out)?;
        page_token = answer.page_token;
        if page_token.is_empty() {
            break;
        }
    }
    Ok(())
}

fn tell(intents: &[(IntentId, IntentSummary)], out: &mut Output) -> Result<(), Failure> {
    if intents.is_empty() {
        return Ok(());
    }
    match out.format() {
        Format::Table => out.tell(|| Value::Null, || intent_text::summaries(intents)),
        Format::Json => intents.iter().try_for_each(|(id, summary)| {
            out.tell(|| intent_json::summary(id, summary), String::new)
        }),
    }
}

/// Fences the guard, where one is named, and tells what became of intents.
async fn reconcile(global: &Global, args: &ReconcileArgs, out: &mut Output) -> Result<(), Failure> {
    let domain = DomainName::new(&args.domain).map_err(InputError::from)?;
    let (fence, effect) = match &args.guard {
        None => (None, Effect::Reads),
        Some(name) => {
            let guard = Guard::new(global.keys().bytes(name)?).map_err(InputError::from)?;
            let fence = v1::GuardAuthority {
                guard: guard.to_wire(),
                authority: Some(writes::authority(global)?.to_wire()),
            };
            (Some(fence), Effect::Writes)
        }
    };
    let message = v1::ReconcileRequest {
        destination: global.expected_to_wire()?,
        domain: domain.as_str().into(),
        intents: args.intents.iter().map(ToWire::to_wire).collect(),
        fence,
    };
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(message);
    let call = remote.client.reconcile(request);
    let answer = Remote::answer(remote.timeout, effect, call).await?;
    match answer.receipt {
        None => tell_found(answer.found, out),
        Some(receipt) => {
            let receipt = stated(Some(receipt), effect)?;
            out.tell(
                || json::accepted(&receipt, false),
                || text::accepted(&receipt, false),
            )
            .and_then(|()| tell_found(answer.found, out))
            .map_err(|failure| failure.after_acceptance(receipt.revision))
        }
    }
}

/// Tells what was found of intents.
pub(crate) fn tell_found(found: Vec<v1::FoundIntent>, out: &mut Output) -> Result<(), Failure> {
    for wire in found {
        let one = IntentOutcome::from_wire(wire).map_err(Failure::of_odd_read)?;
        out.tell(|| intent_json::found(&one), || intent_text::found(&one))?;
    }
    Ok(())
}
