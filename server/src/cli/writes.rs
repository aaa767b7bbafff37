//! The commands that write: put, delete, commit, and those of fences.

use std::time::Duration;

use highwater::{Authority, Commit, DomainName, Epoch, Fence, Guard, Key, Receipt, Record};
use highwater_proto::convert::{FromWire, ToWire, optional, required};
use highwater_proto::v1;
use highwater_proto::v1::take_over_request::By;
use tonic::Streaming;

use super::args::{FenceCommand, Global};
use super::commit_json;
use super::failure::{Effect, Failure};
use super::input::{self, InputError};
use super::output::Output;
use super::reads::{self, Rows};
use super::remote::{Remote, stated};
use super::write_args::CommitArgs;
use super::{intents, json, text};

/// Sends a commit and tells its verdict.
pub(crate) async fn commit(
    global: &Global,
    commit: Commit,
    dry_run: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    let commit = global.complete(commit)?;
    let receipt = Remote::connect(global)
        .await?
        .commit(&commit, dry_run)
        .await?;
    let (json, text) = (
        || json::accepted(&receipt, dry_run),
        || text::accepted(&receipt, dry_run),
    );
    if dry_run {
        return out.tell(json, text);
    }
    out.tell_accepted(receipt.revision, json, text)
}

/// Sends a commit that is written as JSON.
pub(crate) async fn commit_file(
    global: &Global,
    args: &CommitArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    let parsed = commit_json::parse(&input::read(&args.file)?)?;
    commit(global, args.step.apply(parsed)?, args.dry_run, out).await
}

/// The authority, where a command can't do without one.
pub(crate) fn authority(global: &Global) -> Result<Authority, InputError> {
    let missing = InputError::Missing {
        what: "--authority",
    };
    global.authority.clone().ok_or(missing)
}

fn guard(global: &Global, text: &str) -> Result<Guard, InputError> {
    Ok(Guard::new(global.keys().bytes(text)?)?)
}

/// Shows or raises a fence.
pub(crate) async fn fence(
    global: &Global,
    command: &FenceCommand,
    out: &mut Output,
) -> Result<(), Failure> {
    match command {
        FenceCommand::Show {
            domain,
            guard: name,
            key,
        } => show(global, domain, name.as_deref(), key.as_deref(), out).await,
        FenceCommand::Advance {
            domain,
            guard: name,
            dry_run,
        } => {
            authority(global)?;
            let domain = DomainName::new(domain).map_err(InputError::from)?;
            let raised = Commit::new(domain).advance(guard(global, name)?);
            commit(global, raised, *dry_run, out).await
        }
        FenceCommand::Takeover {
            domain,
            guard: name,
            value_base64,
            intent,
            acquire,
            ttl,
        } => {
            let by = match acquire.as_ref().zip(*ttl) {
                Some((holder, ttl)) => By::Acquire(v1::TakeOverLease {
                    holder: holder.to_wire(),
                    ttl_ms: ttl.get(),
                    supersede: false,
                }),
                None => By::Authority(authority(global)?.to_wire()),
            };
            let message = v1::TakeOverRequest {
                destination: global.expected_to_wire()?,
                domain: domain.into(),
                guard: guard(global, name)?.to_wire(),
                by: Some(by),
                page_records: 0,
                pages: 0,
                intents: intent.iter().map(ToWire::to_wire).collect(),
            };
            take_over(global, message, *value_base64, out).await
        }
    }
}

async fn show(
    global: &Global,
    domain: &str,
    name: Option<&str>,
    key: Option<&str>,
    out: &mut Output,
) -> Result<(), Failure> {
    let target = match (name, key) {
        (_, Some(key)) => {
            let key = Key::new(global.keys().bytes(key)?).map_err(InputError::from)?;
            v1::get_fence_request::Target::Key(key.to_wire())
        }
        (name, None) => {
            let name = guard(global, name.unwrap_or_default())?;
            v1::get_fence_request::Target::Guard(name.to_wire())
        }
    };
    let message = v1::GetFenceRequest {
        destination: global.expected_to_wire()?,
        domain: domain.into(),
        target: Some(target),
    };
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(message);
    let call = remote.client.get_fence(request);
    let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    let guard = Guard::from_wire(answer.guard).map_err(Failure::of_odd_read)?;
    let fence: Option<Fence> = optional(answer.fence).map_err(Failure::of_odd_read)?;
    let epoch: Epoch = required(answer.epoch, "epoch").map_err(Failure::of_odd_read)?;
    out.tell(
        || {
            serde_json::json!({
                "guard": guard.to_string(),
                "fence": fence.as_ref().map(json::fence),
                "epoch": epoch.to_string(),
                "revision": json::number(answer.revision),
            })
        },
        || text::fence(&guard, fence.as_ref(), &epoch.to_string()),
    )
}

async fn take_over(
    global: &Global,
    message: v1::TakeOverRequest,
    base64: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    let mut remote = Remote::connect(global).await?;
    let limit = remote.timeout;
    let call = remote.client.take_over(tonic::Request::new(message));
    let mut stream = Remote::answer(limit, Effect::Writes, call).await?;
    // Until the receipt is here, the fence may or may not be raised.
    let first = match tokio::time::timeout(limit, stream.message()).await {
        Ok(Ok(first)) => first.unwrap_or_default(),
        Ok(Err(status)) => return Err(Failure::of_status(status, Effect::Writes)),
        Err(_) => return Err(Failure::of_timeout(Effect::Writes)),
    };
    let receipt = stated(first.receipt.clone(), Effect::Writes)?;
    tell_taken(&receipt, first, stream, (limit, base64), out)
        .await
        .map_err(|failure| failure.after_acceptance(receipt.revision))
}

/// Tells that a fence is raised, and what is under it.
async fn tell_taken(
    receipt: &Receipt,
    first: v1::TakeOverResponse,
    mut stream: Streaming<v1::TakeOverResponse>,
    (limit, base64): (Duration, bool),
    out: &mut Output,
) -> Result<(), Failure> {
    out.tell(
        || json::accepted(receipt, false),
        || text::accepted(receipt, false),
    )?;
    if let Some(acquired) = first.acquired {
        let acquired = stated(Some(acquired), Effect::Reads)?;
        out.tell(
            || json::accepted(&acquired, false),
            || text::accepted(&acquired, false),
        )?;
    }
    intents::tell_found(first.found, out)?;
    let mut page = first.page;
    let mut rows = Rows::new(base64, None);
    loop {
        if let Some(page) = page {
            let read: Vec<(Key, Record)> = reads::records(page.records)?;
            rows.tell(read, page.revision, out)?;
        }
        match Remote::next(limit, &mut stream).await? {
            Some(next) => page = next.page,
            None => return Ok(()),
        }
    }
}
