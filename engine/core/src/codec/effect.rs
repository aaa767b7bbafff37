//! Effects, as the log keeps them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::intent::{encode_intent, get_intent};
use super::read::{DecodeError, Read, Reader};
use super::row::{encode_domain, encode_fence, encode_record};
use super::row::{get_domain, get_fence, get_record, get_revision};
use super::write;
use crate::counters::{DestinationId, DomainId, Incarnation, IncarnationMark, IncarnationNumber};
use crate::effect::{Change, Effect, FenceChange, IntentChange, RecordChange};
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
        } => {
            out.push(if intents.is_empty() { 3 } else { 4 });
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
            if intents.is_empty() {
                return;
            }
            write::count(out, intents.len());
            for change in intents {
                write::short(out, change.id.as_bytes());
                encode_intent(&change.record, out);
            }
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
        _ => return from.wrong("kind 1 to 4"),
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

fn get_commit(from: &mut Reader<'_>, with_intents: bool) -> Read<Change> {
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
    let intents = if with_intents {
        get_intents(from)?
    } else {
        Vec::new()
    };
    Ok(Change::Commit {
        domain,
        records,
        fences,
        intents,
    })
}

/// At least one intent: without any, an effect has the kind that has no place for them.
fn get_intents(from: &mut Reader<'_>) -> Read<Vec<IntentChange>> {
    let count = from.u32("number of intents")?;
    from.valid((count > 0).then_some(()), "number of intents")?;
    let mut intents = Vec::new();
    for _ in 0..count {
        let id = IntentId::new(from.short("intent")?).ok();
        let id = from.valid(id, "intent")?;
        let record = Arc::new(get_intent(from, &id)?);
        intents.push(IntentChange { id, record });
    }
    Ok(intents)
}
