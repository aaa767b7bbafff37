//! Effects, as the log keeps them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::intent::{encode_intent, get_intent};
use super::lease::{encode_lease, get_lease};
use super::read::{DecodeError, Read, Reader};
use super::row::{encode_domain, encode_fence, encode_record};
use super::row::{get_domain, get_fence, get_record, get_revision};
use super::write;
use crate::counters::{DestinationId, DomainId, Incarnation, IncarnationMark, IncarnationNumber};
use crate::effect::{Change, Effect, FenceChange, IntentChange, LeaseChange, RecordChange};
use crate::names::{Guard, IntentId, Key};

/// The version of the encoding: the first byte of every effect.
const VERSION: u8 = 1;

/// Appends an effect.
pub fn encode_effect(effect: &Effect, out: &mut Vec<u8>) {
    out.push(VERSION);
    write::u64(out, effect.revision().get());
    match effect.change() {
        Change::Genesis {
            destination,
            incarnation,
        } => {
            out.push(1);
            out.extend_from_slice(&destination.bytes());
            write::u16(out, incarnation.number().get());
            write::u64(out, incarnation.mark().get());
        }
        Change::DomainCreated(domain) => {
            out.push(2);
            encode_domain(domain, out);
        }
        Change::Commit {
            domain,
            records,
            fences,
            intents,
            leases,
        } => {
            let plain = intents.is_empty() && leases.is_empty();
            out.push(if plain { 3 } else { 4 });
            write::u32(out, domain.get());
            write::count(out, records.len());
            for change in records {
                write::short(out, change.key.as_bytes());
                match &change.record {
                    None => out.push(0),
                    Some(record) => {
                        out.push(1);
                        encode_record(record, out);
                    }
                }
            }
            write::count(out, fences.len());
            for change in fences {
                write::short(out, change.guard.as_bytes());
                encode_fence(&change.fence, out);
            }
            if plain {
                return;
            }
            write::count(out, intents.len());
            for change in intents {
                write::short(out, change.id.as_bytes());
                encode_intent(&change.record, out);
            }
            write::count(out, leases.len());
            for change in leases {
                write::short(out, change.guard.as_bytes());
                encode_lease(&change.record, out);
            }
        }
        Change::LeaseClock { now_ms, opened } => {
            out.push(5);
            write::u64(out, *now_ms);
            out.push(u8::from(*opened));
        }
    }
}

/// Reads an effect that fills the bytes.
///
/// # Errors
///
/// [`DecodeError`] with the place that is wrong.
pub fn decode_effect(bytes: &[u8]) -> Result<Effect, DecodeError> {
    let mut from = Reader::new(bytes);
    if from.byte("version")? != VERSION {
        return from.wrong("version 1");
    }
    let revision = get_revision(&mut from)?;
    let change = match from.byte("kind")? {
        1 => get_genesis(&mut from)?,
        2 => Change::DomainCreated(Arc::new(get_domain(&mut from)?)),
        3 => get_commit(&mut from, false)?,
        4 => get_commit(&mut from, true)?,
        5 => get_lease_clock(&mut from)?,
        _ => return from.wrong("kind 1 to 5"),
    };
    from.end().map(|()| Effect::new(revision, change))
}

fn get_genesis(from: &mut Reader<'_>) -> Read<Change> {
    let destination = DestinationId::new(from.bytes16("destination id")?);
    let number = IncarnationNumber::new(from.u16("incarnation number")?);
    let number = from.valid(number, "incarnation number")?;
    let mark = IncarnationMark::new(from.u64("incarnation mark")?);
    Ok(Change::Genesis {
        destination,
        incarnation: Incarnation::new(number, mark),
    })
}

fn get_commit(from: &mut Reader<'_>, with_more: bool) -> Read<Change> {
    let domain = DomainId::new(from.u32("domain number")?);
    let domain = from.valid(domain, "domain number")?;
    let mut records = Vec::new();
    for _ in 0..from.u32("number of keys")? {
        let key = Key::new(from.short("key")?).ok();
        let key = from.valid(key, "key")?;
        let record = match from.byte("0 or 1 for a record")? {
            0 => None,
            1 => Some(Arc::new(get_record(from)?)),
            _ => return from.wrong("0 or 1 for a record"),
        };
        records.push(RecordChange { key, record });
    }
    let mut fences = Vec::new();
    for _ in 0..from.u32("number of fences")? {
        let guard = Guard::new(from.short("guard")?).ok();
        let guard = from.valid(guard, "guard")?;
        fences.push(FenceChange {
            guard,
            fence: get_fence(from)?,
        });
    }
    let (intents, leases) = if with_more {
        get_more(from)?
    } else {
        (Vec::new(), Vec::new())
    };
    Ok(Change::Commit {
        domain,
        records,
        fences,
        intents,
        leases,
    })
}

/// At least one intent or lease: without any, an effect has the kind that has no place for them.
fn get_more(from: &mut Reader<'_>) -> Read<(Vec<IntentChange>, Vec<LeaseChange>)> {
    let mut intents = Vec::new();
    for _ in 0..from.u32("number of intents")? {
        let id = IntentId::new(from.short("intent")?).ok();
        let id = from.valid(id, "intent")?;
        let record = Arc::new(get_intent(from, &id)?);
        intents.push(IntentChange { id, record });
    }
    let mut leases = Vec::new();
    for _ in 0..from.u32("number of leases")? {
        let guard = Guard::new(from.short("guard")?).ok();
        let guard = from.valid(guard, "guard")?;
        let record = Arc::new(get_lease(from)?);
        leases.push(LeaseChange { guard, record });
    }
    let any = !intents.is_empty() || !leases.is_empty();
    from.valid(any.then_some((intents, leases)), "an intent or a lease")
}

fn get_lease_clock(from: &mut Reader<'_>) -> Read<Change> {
    let now_ms = from.u64("time on the lease clock")?;
    let opened = match from.byte("0 or 1 for an opening")? {
        0 => false,
        1 => true,
        _ => return from.wrong("0 or 1 for an opening"),
    };
    Ok(Change::LeaseClock { now_ms, opened })
}
