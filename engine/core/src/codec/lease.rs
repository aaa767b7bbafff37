//! What is stored of a guard's leases. A record's epoch and its last grant aren't repeated in its
//! current lease.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::read::{DecodeError, Read, Reader};
use super::row::{get_epoch, get_revision, get_term, put_epoch, put_term};
use super::write;
use crate::authority::Term;
use crate::counters::{LeaseId, Sequence};
use crate::lease::{EndCause, Grant, Lease, LeaseEnd, LeaseRecord, Ttl};
use crate::limits::GRANTS_KEPT;
use crate::names::{Holder, Owner};

/// Appends what is stored of a guard's leases. There must be a grant, and a current lease must be
/// of the last one.
pub fn encode_lease(record: &LeaseRecord, out: &mut Vec<u8>) {
    put_epoch(&record.epoch, out);
    out.push(u8::try_from(record.grants.len()).unwrap_or(u8::MAX));
    for grant in &record.grants {
        write::u64(out, grant.sequence.get());
        write::short(out, grant.holder.as_bytes());
    }
    match &record.current {
        None => out.push(0),
        Some(lease) => {
            out.push(1);
            put_times(lease, out);
        }
    }
    match &record.last_end {
        None => out.push(0),
        Some(end) => put_end(end, out),
    }
    write::u64(out, record.changed_at.get());
}

/// Reads what is stored of a guard's leases, which fills the bytes.
///
/// # Errors
///
/// [`DecodeError`] with the place that is wrong.
pub fn decode_lease(bytes: &[u8]) -> Result<LeaseRecord, DecodeError> {
    let mut from = Reader::new(bytes);
    let record = get_lease(&mut from)?;
    from.end().map(|()| record)
}

pub(super) fn get_lease(from: &mut Reader<'_>) -> Read<LeaseRecord> {
    let epoch = get_epoch(from)?;
    let count = usize::from(from.byte("number of grants")?);
    from.valid((count <= GRANTS_KEPT).then_some(()), "at most 8 grants")?;
    let mut grants: Vec<Grant> = Vec::new();
    for _ in 0..count {
        let sequence = Sequence::new(from.u64("sequence")?);
        let sequence = from.valid(sequence, "sequence")?;
        let last = grants.last().map_or(0, |grant| grant.sequence.get());
        let rises = last < sequence.get();
        from.valid(rises.then_some(()), "sequences in order")?;
        let holder = get_holder(from)?;
        grants.push(Grant { sequence, holder });
    }
    let last = from.valid(grants.last().cloned(), "at least one grant")?;
    let current = match from.byte("0 or 1 for a lease")? {
        0 => None,
        1 => {
            let term = Term {
                epoch,
                sequence: last.sequence,
            };
            Some(Arc::new(get_times(from, term, last.holder)?))
        }
        _ => return from.wrong("0 or 1 for a lease"),
    };
    let last_end = get_end(from)?;
    Ok(LeaseRecord {
        epoch,
        grants,
        current,
        last_end,
        changed_at: get_revision(from)?,
    })
}

fn get_holder(from: &mut Reader<'_>) -> Read<Holder> {
    let holder = Holder::new(from.short("holder")?).ok();
    from.valid(holder, "holder")
}

/// A lease beside its term and holder.
fn put_times(lease: &Lease, out: &mut Vec<u8>) {
    write::u64(out, lease.id.get());
    write::u64(out, lease.ttl.get());
    write::u64(out, lease.renewed_at.get());
    write::u64(out, lease.renewed_clock_ms);
}

fn get_times(from: &mut Reader<'_>, term: Term, holder: Holder) -> Read<Lease> {
    let id = LeaseId::new(from.u64("lease")?);
    let id = from.valid(id, "lease")?;
    let ttl = Ttl::new(from.u64("time to live")?);
    let ttl = from.valid(ttl, "time to live")?;
    Ok(Lease {
        id,
        term,
        holder,
        ttl,
        renewed_at: get_revision(from)?,
        renewed_clock_ms: from.u64("time on the lease clock")?,
    })
}

/// A lease by itself.
pub(super) fn put_whole(lease: &Lease, out: &mut Vec<u8>) {
    put_term(&lease.term, out);
    write::short(out, lease.holder.as_bytes());
    put_times(lease, out);
}

pub(super) fn get_whole(from: &mut Reader<'_>) -> Read<Arc<Lease>> {
    let term = get_term(from)?;
    let holder = get_holder(from)?;
    get_times(from, term, holder).map(Arc::new)
}

fn put_end(end: &LeaseEnd, out: &mut Vec<u8>) {
    put_cause(Some(&end.cause), out);
    put_whole(&end.lease, out);
    write::u64(out, end.at.get());
    write::u64(out, end.clock_ms);
}

fn get_end(from: &mut Reader<'_>) -> Read<Option<LeaseEnd>> {
    let Some(cause) = get_cause(from)? else {
        return Ok(None);
    };
    Ok(Some(LeaseEnd {
        cause,
        lease: get_whole(from)?,
        at: get_revision(from)?,
        clock_ms: from.u64("time on the lease clock")?,
    }))
}

/// Why a lease ended; 0 stands for none.
pub(super) fn put_cause(cause: Option<&EndCause>, out: &mut Vec<u8>) {
    match cause {
        None => out.push(0),
        Some(EndCause::Expired) => out.push(1),
        Some(EndCause::Released) => out.push(2),
        Some(EndCause::Revoked { by }) => {
            out.push(3);
            write::short(out, by.as_bytes());
        }
        Some(EndCause::Superseded) => out.push(4),
        Some(EndCause::EpochTransition) => out.push(5),
        Some(EndCause::Restore) => out.push(6),
    }
}

pub(super) fn get_cause(from: &mut Reader<'_>) -> Read<Option<EndCause>> {
    Ok(Some(match from.byte("cause")? {
        0 => return Ok(None),
        1 => EndCause::Expired,
        2 => EndCause::Released,
        3 => {
            let by = Owner::new(from.short("owner")?).ok();
            EndCause::Revoked {
                by: from.valid(by, "owner")?,
            }
        }
        4 => EndCause::Superseded,
        5 => EndCause::EpochTransition,
        6 => EndCause::Restore,
        _ => return from.wrong("cause"),
    }))
}
