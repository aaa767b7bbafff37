//! The commands that read: get and scan.

use bytes::Bytes;
use highwater::{DomainName, Guard, Key, KeyRange, Malformed, Prefix, Record};
use highwater_proto::convert::{FromWire, ToWire};
use highwater_proto::v1;
use serde_json::Value;

use super::args::{Format, GetArgs, Global, GuardedArgs, ScanArgs};
use super::failure::{Effect, Failure};
use super::input::{Encoding, InputError};
use super::output::Output;
use super::remote::Remote;
use super::{json, text};

fn name(domain: &str) -> Result<String, InputError> {
    Ok(DomainName::new(domain)?.as_str().into())
}

fn guard(keys: Encoding, text: &str) -> Result<Bytes, InputError> {
    Ok(Guard::new(keys.bytes(text)?)?.to_wire())
}

/// The demand that an authority is still the highest.
fn read_guard(global: &Global, args: &GuardedArgs) -> Result<Option<v1::ReadGuard>, InputError> {
    if !args.guarded {
        return Ok(None);
    }
    let authority = global.authority.as_ref().ok_or(InputError::Missing {
        what: "--authority",
    })?;
    let names = args.read_guard.iter();
    let guards = names.map(|text| guard(global.keys(), text));
    Ok(Some(v1::ReadGuard {
        authority: Some(authority.to_wire()),
        guards: guards.collect::<Result<_, _>>()?,
    }))
}

/// A scan of other keys than those of one guard must name what it depends on.
fn scan_guard(global: &Global, args: &ScanArgs) -> Result<Option<v1::ReadGuard>, InputError> {
    let depends = args.guard.is_some() || !args.guarded.read_guard.is_empty();
    if args.guarded.guarded && !depends {
        return Err(InputError::Missing {
            what: "--read-guard (or --guard)",
        });
    }
    read_guard(global, &args.guarded)
}

/// Records out of an answer.
pub(crate) fn records(wire: Vec<v1::Record>) -> Result<Vec<(Key, Record)>, Failure> {
    let read: Result<_, Malformed> = wire.into_iter().map(FromWire::from_wire).collect();
    read.map_err(Failure::of_odd_read)
}

/// A record with the revision that was read.
fn row(key: &Key, record: &Record, revision: u64, base64: bool) -> Value {
    let mut object = json::record(key, record, base64);
    if let Some(map) = object.as_object_mut() {
        map.insert("revision".into(), json::number(revision));
    }
    object
}

/// Reads one key.
pub(crate) async fn get(global: &Global, args: &GetArgs, out: &mut Output) -> Result<(), Failure> {
    let key = Key::new(global.keys().bytes(&args.key)?).map_err(InputError::from)?;
    let message = v1::GetRequest {
        destination: global.expected_to_wire()?,
        domain: name(&args.domain)?,
        key: key.to_wire(),
        guard: read_guard(global, &args.guarded)?,
    };
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(message);
    let call = remote.client.get(request);
    let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    let Some(record) = answer.record else {
        return Err(Failure::Absent);
    };
    let (key, record): (Key, Record) = FromWire::from_wire(record).map_err(Failure::of_odd_read)?;
    if args.raw {
        return out.raw(record.value.as_bytes());
    }
    out.tell(
        || row(&key, &record, answer.revision, args.value_base64),
        || text::record(&key, &record),
    )
}

/// What a scan or a watch looks at.
pub(crate) enum Keys {
    /// Keys that begin with this.
    Prefix(Prefix),
    /// Keys of a range.
    Range(KeyRange),
}

impl Keys {
    /// Reads the arguments; without any of them it is every key.
    pub(crate) fn parse(
        keys: Encoding,
        prefix: Option<&str>,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<Self, InputError> {
        if from.is_some() || to.is_some() {
            let end = to.map(|to| keys.bytes(to)).transpose()?;
            let start = keys.bytes(from.unwrap_or_default())?;
            return Ok(Self::Range(KeyRange::between(start, end)));
        }
        let prefix = keys.bytes(prefix.unwrap_or_default())?;
        Ok(Self::Prefix(Prefix::new(prefix)?))
    }
}

/// Reads several keys, all at one revision.
pub(crate) async fn scan(
    global: &Global,
    args: &ScanArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    let bounds = (
        args.prefix.as_deref(),
        args.from.as_deref(),
        args.to.as_deref(),
    );
    let keys = match &args.guard {
        Some(text) => v1::scan_request::Keys::Guard(guard(global.keys(), text)?),
        None => match Keys::parse(global.keys(), bounds.0, bounds.1, bounds.2)? {
            Keys::Prefix(prefix) => v1::scan_request::Keys::Prefix(prefix.to_wire()),
            Keys::Range(range) => v1::scan_request::Keys::Range(range.to_wire()),
        },
    };
    let page_records = args.limit.unwrap_or(0);
    let message = v1::ScanRequest {
        destination: global.expected_to_wire()?,
        domain: name(&args.domain)?,
        keys: Some(keys),
        page_records: u32::try_from(page_records).unwrap_or(0),
        pages: 0,
        page_token: Bytes::new(),
        read_guard: scan_guard(global, args)?,
    };
    let mut remote = Remote::connect(global).await?;
    let call = remote.client.scan(tonic::Request::new(message));
    let mut stream = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    let mut rows = Rows::new(args.value_base64, args.limit);
    while !rows.is_full() {
        let Some(page) = Remote::next(remote.timeout, &mut stream).await? else {
            break;
        };
        rows.tell(records(page.records)?, page.revision, out)?;
    }
    Ok(())
}

/// Rows that are told page by page, up to a limit.
pub(crate) struct Rows {
    base64: bool,
    left: Option<u64>,
}

impl Rows {
    /// At most so many rows.
    pub(crate) const fn new(base64: bool, limit: Option<u64>) -> Self {
        Self {
            base64,
            left: limit,
        }
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    /// Tells a page.
    pub(crate) fn tell(
        &mut self,
        mut page: Vec<(Key, Record)>,
        revision: u64,
        out: &mut Output,
    ) -> Result<(), Failure> {
        if let Some(left) = &mut self.left {
            page.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left = left.saturating_sub(page.len() as u64);
        }
        if page.is_empty() {
            return Ok(());
        }
        match out.format() {
            Format::Table => out.tell(|| Value::Null, || text::records(&page)),
            Format::Json => page.iter().try_for_each(|(key, record)| {
                out.tell(|| row(key, record, revision, self.base64), String::new)
            }),
        }
    }
}
