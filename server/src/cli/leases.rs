//! The commands of leases.

use bytes::Bytes;
use highwater::{
    Commit, DomainName, Epoch, Guard, Key, LeaseRecord, LeaseStanding, Malformed, Receipt,
};
use highwater_client::Acquire;
use highwater_proto::convert::{FromWire, ToWire, optional, required};
use highwater_proto::v1;
use serde_json::Value;

use super::args::{Format, Global};
use super::failure::{Effect, Failure};
use super::input::InputError;
use super::lease_args::{AcquireArgs, LeaseCommand};
use super::output::Output;
use super::remote::{Remote, stated};
use super::{json, lease_form, lease_run, text, writes};

type Row = (Guard, LeaseRecord, Option<LeaseStanding>);

/// Gets, renews, ends, shows or lists leases, or runs a command under one.
pub(crate) async fn lease(
    global: &Global,
    command: &LeaseCommand,
    out: &mut Output,
) -> Result<(), Failure> {
    let keys = global.keys();
    match command {
        LeaseCommand::Acquire(args) => acquire(global, args, out).await,
        LeaseCommand::Renew(args) => {
            writes::authority(global)?;
            writes::commit(global, args.commit(keys)?, args.dry_run, out).await
        }
        LeaseCommand::Release(args) => {
            writes::authority(global)?;
            writes::commit(global, args.commit(keys)?, args.dry_run, out).await
        }
        LeaseCommand::Revoke(args) => {
            without_authority(global, args.commit(keys)?, args.dry_run, out).await
        }
        LeaseCommand::List {
            domain,
            live,
            limit,
        } => list(global, domain, *live, *limit, out).await,
        LeaseCommand::Observe { domain, guard, key } => {
            observe(global, domain, guard.as_deref(), key.as_deref(), out).await
        }
        LeaseCommand::Run(args) => lease_run::run(global, args).await,
    }
}

fn tell(receipt: &Receipt, dry_run: bool, out: &mut Output) -> Result<(), Failure> {
    let (json, text) = (
        || json::accepted(receipt, dry_run),
        || text::accepted(receipt, dry_run),
    );
    if dry_run {
        return out.tell(json, text);
    }
    out.tell_accepted(receipt.revision, json, text)
}

/// Sends a commit that presents no authority, whatever the environment holds.
async fn without_authority(
    global: &Global,
    mut commit: Commit,
    dry_run: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    commit.destination = global.expected()?;
    let mut remote = Remote::connect(global).await?;
    let receipt = remote.commit(&commit, dry_run).await?;
    tell(&receipt, dry_run, out)
}

async fn acquire(global: &Global, args: &AcquireArgs, out: &mut Output) -> Result<(), Failure> {
    let (commit, wish) = args.wish(global.keys())?;
    if args.dry_run {
        return without_authority(global, commit, true, out).await;
    }
    let Acquire {
        guard,
        holder,
        ttl,
        seal,
        supersede,
        intent,
        wait,
    } = wish;
    let mut request = tonic::Request::new(v1::AcquireRequest {
        destination: global.expected_to_wire()?,
        domain: commit.domain.as_str().into(),
        guard: guard.to_wire(),
        holder: holder.to_wire(),
        ttl_ms: ttl.get(),
        seal: Some(seal),
        supersede,
        intent: intent.as_ref().map(ToWire::to_wire),
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
    });
    let mut remote = Remote::connect(global).await?;
    let limit = remote.timeout.saturating_add(wait);
    request.set_timeout(limit);
    let call = remote.client.acquire(request);
    let answer = Remote::answer(limit, Effect::Writes, call).await?;
    tell(&stated(answer.receipt, Effect::Writes)?, false, out)
}

async fn observe(
    global: &Global,
    domain: &str,
    name: Option<&str>,
    key: Option<&str>,
    out: &mut Output,
) -> Result<(), Failure> {
    let keys = global.keys();
    let target = match key {
        Some(key) => {
            let key = Key::new(keys.bytes(key)?).map_err(InputError::from)?;
            v1::get_lease_request::Target::Key(key.to_wire())
        }
        None => {
            let name = keys.bytes(name.unwrap_or_default())?;
            let guard = Guard::new(name).map_err(InputError::from)?;
            v1::get_lease_request::Target::Guard(guard.to_wire())
        }
    };
    let domain = DomainName::new(domain).map_err(InputError::from)?;
    let message = v1::GetLeaseRequest {
        destination: global.expected_to_wire()?,
        domain: domain.as_str().into(),
        target: Some(target),
    };
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(message);
    let call = remote.client.get_lease(request);
    let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    let odd = Failure::of_odd_read;
    let guard = Guard::from_wire(answer.guard).map_err(odd)?;
    let record: Option<LeaseRecord> = optional(answer.record).map_err(odd)?;
    let standing: Option<LeaseStanding> = optional(answer.standing).map_err(odd)?;
    let epoch: Epoch = required(answer.epoch, "epoch").map_err(odd)?;
    out.tell(
        || lease_form::seen(&guard, record.as_ref(), standing),
        || lease_form::seen_text(&guard, record.as_ref(), standing, &epoch),
    )
}

fn page(wire: Vec<v1::ListedLease>) -> Result<Vec<Row>, Failure> {
    let read: Result<_, Malformed> = wire.into_iter().map(FromWire::from_wire).collect();
    read.map_err(Failure::of_odd_read)
}

async fn list(
    global: &Global,
    domain: &str,
    live: bool,
    limit: Option<u64>,
    out: &mut Output,
) -> Result<(), Failure> {
    let domain = DomainName::new(domain).map_err(InputError::from)?;
    let filter = match live {
        true => v1::LeaseFilter::Live,
        false => v1::LeaseFilter::All,
    };
    let destination = global.expected_to_wire()?;
    let mut remote = Remote::connect(global).await?;
    let mut left = limit.unwrap_or(u64::MAX);
    let mut page_token = Bytes::new();
    while left > 0 {
        let request = remote.request(v1::ListLeasesRequest {
            destination: destination.clone(),
            domain: domain.as_str().into(),
            filter: i32::from(filter),
            page_leases: u32::try_from(left).unwrap_or(0),
            page_token,
        });
        let call = remote.client.list_leases(request);
        let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
        let mut rows = page(answer.leases)?;
        rows.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left = left.saturating_sub(rows.len() as u64);
        tell_rows(&rows, out)?;
        page_token = answer.page_token;
        if page_token.is_empty() {
            break;
        }
    }
    Ok(())
}

fn tell_rows(rows: &[Row], out: &mut Output) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    match out.format() {
        Format::Table => out.tell(|| Value::Null, || lease_form::list_text(rows)),
        Format::Json => rows.iter().try_for_each(|(guard, record, standing)| {
            let seen = || lease_form::seen(guard, Some(record), *standing);
            out.tell(seen, String::new)
        }),
    }
}
