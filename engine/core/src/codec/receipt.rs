//! Receipts, as intents keep them.

use alloc::vec::Vec;

use super::lease::{get_cause, get_whole, put_cause, put_whole};
use super::read::{Read, Reader};
use super::row::{encode_fence, get_fence, get_revision};
use super::write;
use crate::counters::{
    DestinationId, Generation, Incarnation, IncarnationMark, IncarnationNumber, Metageneration,
};
use crate::intent::IntentStep;
use crate::names::{DomainName, Guard, Key};
use crate::receipt::{GuardReceipt, InputReceipt, LeaseReceipt, Receipt, WriteReceipt};

/// Appends a receipt, without the step that it is of: that is told by where it stands. It isn't a
/// replayed one; it becomes that when it is given out.
pub(super) fn put_receipt(receipt: &Receipt, out: &mut Vec<u8>) {
    out.extend_from_slice(&receipt.destination.bytes());
    write::u16(out, receipt.incarnation.number().get());
    write::u64(out, receipt.incarnation.mark().get());
    write::short(out, receipt.domain.as_str().as_bytes());
    write::u64(out, receipt.revision.get());
    match receipt.advisory_time_ms {
        None => out.push(0),
        Some(time) => {
            out.push(1);
            write::u64(out, time);
        }
    }
    write::count(out, receipt.guards.len());
    for guard in &receipt.guards {
        write::short(out, guard.guard.as_bytes());
        encode_fence(&guard.fence, out);
        match &guard.previous {
            None => out.push(0),
            Some(fence) => {
                out.push(1);
                encode_fence(fence, out);
            }
        }
    }
    write::count(out, receipt.inputs.len());
    for input in &receipt.inputs {
        write::short(out, input.key.as_bytes());
        put_generation(input.generation, out);
    }
    write::count(out, receipt.writes.len());
    for written in &receipt.writes {
        write::short(out, written.key.as_bytes());
        put_generation(written.generation, out);
        write::u64(out, written.metageneration.map_or(0, Metageneration::get));
        put_generation(written.previous, out);
    }
    write::count(out, receipt.leases.len());
    for leased in &receipt.leases {
        write::short(out, leased.guard.as_bytes());
        put_whole(&leased.lease, out);
        put_cause(leased.ended.as_ref(), out);
        put_cause(leased.replaced.as_ref(), out);
    }
}

pub(super) fn get_receipt(from: &mut Reader<'_>, of: IntentStep) -> Read<Receipt> {
    let destination = DestinationId::new(from.bytes16("destination id")?);
    let number = IncarnationNumber::new(from.u16("incarnation number")?);
    let number = from.valid(number, "incarnation number")?;
    let mark = IncarnationMark::new(from.u64("incarnation mark")?);
    let domain = DomainName::new(from.text("domain name")?).ok();
    let domain = from.valid(domain, "domain name")?;
    let revision = get_revision(from)?;
    let advisory_time_ms = match from.byte("0 or 1 for a time")? {
        0 => None,
        1 => Some(from.u64("time")?),
        _ => return from.wrong("0 or 1 for a time"),
    };
    let mut guards = Vec::new();
    for _ in 0..from.u32("number of guards")? {
        guards.push(get_guard_receipt(from)?);
    }
    let mut inputs = Vec::new();
    for _ in 0..from.u32("number of inputs")? {
        let key = get_key(from)?;
        let generation = get_generation(from)?;
        inputs.push(InputReceipt { key, generation });
    }
    let mut writes = Vec::new();
    for _ in 0..from.u32("number of writes")? {
        writes.push(WriteReceipt {
            key: get_key(from)?,
            generation: get_generation(from)?,
            metageneration: Metageneration::new(from.u64("metageneration")?),
            previous: get_generation(from)?,
        });
    }
    let mut leases = Vec::new();
    for _ in 0..from.u32("number of leases")? {
        let guard = Guard::new(from.short("guard")?).ok();
        leases.push(LeaseReceipt {
            guard: from.valid(guard, "guard")?,
            lease: get_whole(from)?,
            ended: get_cause(from)?,
            replaced: get_cause(from)?,
        });
    }
    Ok(Receipt {
        destination,
        incarnation: Incarnation::new(number, mark),
        domain,
        revision,
        intent: Some(of),
        guards,
        inputs,
        writes,
        leases,
        replayed: false,
        advisory_time_ms,
    })
}

fn get_guard_receipt(from: &mut Reader<'_>) -> Read<GuardReceipt> {
    let guard = Guard::new(from.short("guard")?).ok();
    let guard = from.valid(guard, "guard")?;
    let fence = get_fence(from)?;
    let previous = match from.byte("0 or 1 for a fence")? {
        0 => None,
        1 => Some(get_fence(from)?),
        _ => return from.wrong("0 or 1 for a fence"),
    };
    Ok(GuardReceipt {
        guard,
        fence,
        previous,
    })
}

fn get_key(from: &mut Reader<'_>) -> Read<Key> {
    let key = Key::new(from.short("key")?).ok();
    from.valid(key, "key")
}

fn put_generation(generation: Option<Generation>, out: &mut Vec<u8>) {
    write::u64(out, generation.map_or(0, Generation::get));
}

/// A generation; 0 stands for none.
pub(super) fn get_generation(from: &mut Reader<'_>) -> Read<Option<Generation>> {
    let number = from.u64("generation")?;
    let generation = Generation::new(number);
    let valid = generation.is_some() || number == 0;
    from.valid(valid.then_some(generation), "generation")
}
