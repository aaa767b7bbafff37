//! Intents. Their steps stand in order, so that the place of a step is its number.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::read::{DecodeError, Read, Reader};
use super::receipt::{get_receipt, put_receipt};
use super::row::{encode_fence, get_fence, get_revision};
use super::write;
use crate::authority::Authority;
use crate::counters::Generation;
use crate::intent::{
    Binding, Ending, Input, IntentRecord, IntentState, IntentStep, Step, StepRecord, Work,
};
use crate::limits::INPUTS_MAX;
use crate::names::{Configuration, Digest, Guard, InputName, IntentId, Key, Owner};

/// Appends what is stored of an intent. Its steps must be numbered from 1 without a gap.
pub fn encode_intent(record: &IntentRecord, out: &mut Vec<u8>) {
    put_state(&record.state, out);
    match &record.binding {
        None => out.push(0),
        Some(binding) => {
            out.push(1);
            put_work(&binding.work, out);
            encode_fence(&binding.authority.to_fence(), out);
        }
    }
    write::u64(out, record.changed_at.get());
    write::u16(out, u16::try_from(record.steps.len()).unwrap_or(u16::MAX));
    for step in &record.steps {
        out.extend_from_slice(&step.digest.bytes());
        put_receipt(&step.receipt, out);
    }
}

/// Reads what is stored of the intent of this id, which fills the bytes.
///
/// # Errors
///
/// [`DecodeError`] with the place that is wrong.
pub fn decode_intent(id: &IntentId, bytes: &[u8]) -> Result<IntentRecord, DecodeError> {
    let mut from = Reader::new(bytes);
    let record = get_intent(&mut from, id)?;
    from.end().map(|()| record)
}

pub(super) fn get_intent(from: &mut Reader<'_>, id: &IntentId) -> Read<IntentRecord> {
    let state = get_state(from)?;
    let binding = match from.byte("0 or 1 for a binding")? {
        0 => None,
        1 => {
            let work = get_work(from)?;
            let fence = get_fence(from)?;
            let authority = Authority::new(fence.term, fence.holder);
            Some(Arc::new(Binding { work, authority }))
        }
        _ => return from.wrong("0 or 1 for a binding"),
    };
    let changed_at = get_revision(from)?;
    let mut steps = Vec::new();
    let mut next = Some(Step::FIRST);
    for _ in 0..from.u16("number of steps")? {
        let step = from.valid(next, "at most 64 steps")?;
        next = step.next();
        let digest = Digest::new(from.bytes32("digest")?);
        let id = id.clone();
        let receipt = get_receipt(from, IntentStep { id, step })?;
        steps.push(Arc::new(StepRecord {
            step,
            digest,
            receipt,
        }));
    }
    Ok(IntentRecord {
        state,
        binding,
        steps,
        changed_at,
    })
}

pub(super) fn put_state(state: &IntentState, out: &mut Vec<u8>) {
    match state {
        IntentState::Open => out.push(0),
        IntentState::Indeterminate {
            owner,
            review_at_ms,
        } => {
            out.push(1);
            write::short(out, owner.as_bytes());
            write::u64(out, *review_at_ms);
        }
        IntentState::Ended(ending) => out.push(match ending {
            Ending::Completed => 2,
            Ending::Superseded => 3,
            Ending::Cancelled => 4,
            Ending::Rejected => 5,
        }),
    }
}

fn get_state(from: &mut Reader<'_>) -> Read<IntentState> {
    Ok(match from.byte("state")? {
        0 => IntentState::Open,
        1 => {
            let owner = Owner::new(from.short("owner")?).ok();
            IntentState::Indeterminate {
                owner: from.valid(owner, "owner")?,
                review_at_ms: from.u64("time of review")?,
            }
        }
        2 => IntentState::Ended(Ending::Completed),
        3 => IntentState::Ended(Ending::Superseded),
        4 => IntentState::Ended(Ending::Cancelled),
        5 => IntentState::Ended(Ending::Rejected),
        _ => return from.wrong("state"),
    })
}

/// A guard that may be absent.
pub(super) fn put_guard(guard: Option<&Guard>, out: &mut Vec<u8>) {
    match guard {
        None => out.push(0),
        Some(guard) => {
            out.push(1);
            write::short(out, guard.as_bytes());
        }
    }
}

pub(super) fn put_work(work: &Work, out: &mut Vec<u8>) {
    write::short(out, work.guard.as_bytes());
    match &work.configuration {
        None => out.push(0),
        Some(configuration) => {
            out.push(1);
            write::short(out, configuration.as_bytes());
        }
    }
    write::u16(out, u16::try_from(work.inputs.len()).unwrap_or(u16::MAX));
    for input in &work.inputs {
        match input {
            Input::Key { key, generation } => {
                out.push(0);
                write::short(out, key.as_bytes());
                write::u64(out, generation.map_or(0, Generation::get));
            }
            Input::Named { name, digest } => {
                out.push(1);
                write::short(out, name.as_bytes());
                out.extend_from_slice(&digest.bytes());
            }
        }
    }
}

fn get_work(from: &mut Reader<'_>) -> Read<Work> {
    let guard = Guard::new(from.short("guard")?).ok();
    let mut work = Work::under(from.valid(guard, "guard")?);
    match from.byte("0 or 1 for a configuration")? {
        0 => {}
        1 => {
            let configuration = Configuration::new(from.short("configuration")?).ok();
            work.configuration = Some(from.valid(configuration, "configuration")?);
        }
        _ => return from.wrong("0 or 1 for a configuration"),
    }
    let count = usize::from(from.u16("number of inputs")?);
    from.valid((count <= INPUTS_MAX).then_some(()), "at most 64 inputs")?;
    for _ in 0..count {
        work.inputs.push(get_input(from)?);
    }
    Ok(work)
}

fn get_input(from: &mut Reader<'_>) -> Read<Input> {
    match from.byte("0 or 1 for an input")? {
        0 => {
            let key = Key::new(from.short("key")?).ok();
            let key = from.valid(key, "key")?;
            let generation = super::receipt::get_generation(from)?;
            Ok(Input::Key { key, generation })
        }
        1 => {
            let name = InputName::new(from.short("name of an input")?).ok();
            let name = from.valid(name, "name of an input")?;
            let digest = Digest::new(from.bytes32("digest")?);
            Ok(Input::Named { name, digest })
        }
        _ => from.wrong("0 or 1 for an input"),
    }
}
