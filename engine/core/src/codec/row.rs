//! Records, fences and domains.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::read::{DecodeError, Read, Reader};
use super::write;
use crate::authority::{Fence, Term};
use crate::counters::{
    DomainId, Epoch, EpochMark, EpochNumber, Generation, Metageneration, Revision, Sequence,
};
use crate::domain::{Domain, DomainState, EpochEntry, EpochTable};
use crate::metadata::Metadata;
use crate::names::{DomainName, Holder, Value};
use crate::policy::{Admission, GuardRule, HolderBinding, Policy, Terms};
use crate::record::Record;

/// Appends a record.
pub fn encode_record(record: &Record, out: &mut Vec<u8>) {
    write::u64(out, record.generation.get());
    write::u64(out, record.metageneration.get());
    write::u64(out, record.changed_at.get());
    match record.written_under {
        None => out.push(0),
        Some(term) => {
            out.push(1);
            put_term(&term, out);
        }
    }
    put_metadata(&record.metadata, out);
    write::long(out, record.value.as_bytes());
}

/// Reads a record that fills the bytes.
///
/// # Errors
///
/// [`DecodeError`] with the place that is wrong.
pub fn decode_record(bytes: &[u8]) -> Result<Record, DecodeError> {
    let mut from = Reader::new(bytes);
    let record = get_record(&mut from)?;
    from.end().map(|()| record)
}

pub(super) fn get_record(from: &mut Reader<'_>) -> Read<Record> {
    let generation = Generation::new(from.u64("generation")?);
    let generation = from.valid(generation, "generation")?;
    let metageneration = Metageneration::new(from.u64("metageneration")?);
    let metageneration = from.valid(metageneration, "metageneration")?;
    let changed_at = get_revision(from)?;
    let written_under = match from.byte("0 or 1 for a term")? {
        0 => None,
        1 => Some(get_term(from)?),
        _ => return from.wrong("0 or 1 for a term"),
    };
    let metadata = get_metadata(from)?;
    let value = Value::new(from.long("value")?).ok();
    let value = from.valid(value, "value")?;
    Ok(Record {
        generation,
        metageneration,
        changed_at,
        written_under,
        value,
        metadata,
    })
}

/// Appends a fence.
pub fn encode_fence(fence: &Fence, out: &mut Vec<u8>) {
    put_term(&fence.term, out);
    write::short(out, fence.holder.as_bytes());
}

/// Reads a fence that fills the bytes.
///
/// # Errors
///
/// [`DecodeError`] with the place that is wrong.
pub fn decode_fence(bytes: &[u8]) -> Result<Fence, DecodeError> {
    let mut from = Reader::new(bytes);
    let fence = get_fence(&mut from)?;
    from.end().map(|()| fence)
}

pub(super) fn get_fence(from: &mut Reader<'_>) -> Read<Fence> {
    let term = get_term(from)?;
    let holder = Holder::new(from.short("holder")?).ok();
    let holder = from.valid(holder, "holder")?;
    Ok(Fence { term, holder })
}

pub(super) fn put_term(term: &Term, out: &mut Vec<u8>) {
    put_epoch(&term.epoch, out);
    write::u64(out, term.sequence.get());
}

pub(super) fn get_term(from: &mut Reader<'_>) -> Read<Term> {
    let epoch = get_epoch(from)?;
    let sequence = Sequence::new(from.u64("sequence")?);
    Ok(Term {
        epoch,
        sequence: from.valid(sequence, "sequence")?,
    })
}

pub(super) fn put_epoch(epoch: &Epoch, out: &mut Vec<u8>) {
    write::u64(out, epoch.number().get());
    write::u64(out, epoch.mark().get());
}

pub(super) fn get_epoch(from: &mut Reader<'_>) -> Read<Epoch> {
    let number = EpochNumber::new(from.u64("epoch number")?);
    let number = from.valid(number, "epoch number")?;
    Ok(Epoch::new(number, EpochMark::new(from.u64("epoch mark")?)))
}

pub(super) fn get_revision(from: &mut Reader<'_>) -> Read<Revision> {
    let revision = Revision::new(from.u64("revision")?);
    from.valid(revision, "revision")
}

pub(super) fn put_metadata(metadata: &Metadata, out: &mut Vec<u8>) {
    match metadata.content_type() {
        None => out.push(0),
        Some(content_type) => {
            out.push(1);
            write::short(out, content_type.as_bytes());
        }
    }
    write::u16(
        out,
        u16::try_from(metadata.labels().len()).unwrap_or(u16::MAX),
    );
    for (name, value) in metadata.labels() {
        write::short(out, name.as_bytes());
        write::short(out, value.as_bytes());
    }
}

fn get_metadata(from: &mut Reader<'_>) -> Read<Metadata> {
    let mut metadata = Metadata::default();
    match from.byte("0 or 1 for a content type")? {
        0 => {}
        1 => {
            let with = metadata.with_content_type(from.text("content type")?).ok();
            metadata = from.valid(with, "content type")?;
        }
        _ => return from.wrong("0 or 1 for a content type"),
    }
    for _ in 0..from.u16("number of labels")? {
        let name = from.text("label name")?;
        // One form for one set of labels: in the order in which they are written.
        let rises = metadata.labels().last_key_value();
        let rises = rises.is_none_or(|(last, _)| last.as_str() < name);
        from.valid(rises.then_some(()), "label names in order")?;
        let with = metadata.with_label(name, from.text("label value")?).ok();
        metadata = from.valid(with, "label")?;
    }
    Ok(metadata)
}

/// Appends a domain.
pub fn encode_domain(domain: &Domain, out: &mut Vec<u8>) {
    write::u32(out, domain.id.get());
    write::short(out, domain.name.as_str().as_bytes());
    put_policy(&domain.policy, out);
    out.push(match domain.state {
        DomainState::Active => 0,
        DomainState::Frozen => 1,
        DomainState::RecoveryRequired => 2,
    });
    write::u64(out, domain.created_at.get());
    write::count(out, domain.epochs.retired().len());
    for entry in domain
        .epochs
        .retired()
        .iter()
        .chain([&domain.epochs.current()])
    {
        put_epoch(&entry.epoch, out);
        write::u64(out, entry.installed_at.get());
    }
}

/// Reads a domain that fills the bytes.
///
/// # Errors
///
/// [`DecodeError`] with the place that is wrong.
pub fn decode_domain(bytes: &[u8]) -> Result<Domain, DecodeError> {
    let mut from = Reader::new(bytes);
    let domain = get_domain(&mut from)?;
    from.end().map(|()| domain)
}

pub(super) fn get_domain(from: &mut Reader<'_>) -> Read<Domain> {
    let id = DomainId::new(from.u32("domain number")?);
    let id = from.valid(id, "domain number")?;
    let name = DomainName::new(from.text("domain name")?).ok();
    let name = from.valid(name, "domain name")?;
    let policy = get_policy(from)?;
    let state = match from.byte("domain state")? {
        0 => DomainState::Active,
        1 => DomainState::Frozen,
        2 => DomainState::RecoveryRequired,
        _ => return from.wrong("domain state"),
    };
    let created_at = get_revision(from)?;
    let retired_count = from.u32("number of retired epochs")?;
    let mut retired = Vec::new();
    for _ in 0..retired_count {
        retired.push(get_epoch_entry(from)?);
    }
    let epochs = EpochTable::with_retired(retired, get_epoch_entry(from)?);
    Ok(Domain {
        id,
        name,
        policy,
        epochs,
        state,
        created_at,
    })
}

fn get_epoch_entry(from: &mut Reader<'_>) -> Read<EpochEntry> {
    let epoch = get_epoch(from)?;
    Ok(EpochEntry {
        epoch,
        installed_at: get_revision(from)?,
    })
}

fn put_policy(policy: &Policy, out: &mut Vec<u8>) {
    let guard = match policy.guard() {
        GuardRule::Key => [0, 0, 0],
        GuardRule::Prefix { delimiter, depth } => [1, delimiter, depth],
        GuardRule::Domain => [2, 0, 0],
    };
    out.extend_from_slice(&guard);
    out.push(match policy.admission() {
        Admission::Fenced => 0,
        Admission::Versioned => 1,
        Admission::Open => 2,
    });
    let binding = match policy.holder_binding() {
        HolderBinding::None => 0,
        HolderBinding::Prefix => 1,
        HolderBinding::Exact => 2,
    };
    // What a policy says of leases stands there only if it isn't the default.
    let of_leases = says_of_leases(policy);
    out.push(if of_leases {
        binding | OF_LEASES
    } else {
        binding
    });
    // Zero stands for "unlimited": it is no step.
    write::u64(out, policy.max_sequence_step().map_or(0, NonZeroU64::get));
    if of_leases {
        out.push(match policy.terms() {
            Terms::External => 0,
            Terms::Issued => 1,
        });
        out.push(u8::from(policy.strict()));
        write::u64(out, policy.grace_ms());
    }
}

/// Marks a holder binding behind whose policy stands what it says of leases.
const OF_LEASES: u8 = 0x80;

fn says_of_leases(policy: &Policy) -> bool {
    policy.terms() != Terms::External || policy.strict() || policy.grace_ms() != 0
}

fn get_policy(from: &mut Reader<'_>) -> Read<Policy> {
    let rule = (
        from.byte("guard rule")?,
        from.byte("delimiter")?,
        from.byte("depth")?,
    );
    let guard = match rule {
        (0, 0, 0) => GuardRule::Key,
        (1, delimiter, depth) => GuardRule::Prefix { delimiter, depth },
        (2, 0, 0) => GuardRule::Domain,
        _ => return from.wrong("guard rule"),
    };
    let admission = match from.byte("admission")? {
        0 => Admission::Fenced,
        1 => Admission::Versioned,
        2 => Admission::Open,
        _ => return from.wrong("admission"),
    };
    let binding = from.byte("holder binding")?;
    let of_leases = binding & OF_LEASES != 0;
    let binding = match binding & !OF_LEASES {
        0 => HolderBinding::None,
        1 => HolderBinding::Prefix,
        2 => HolderBinding::Exact,
        _ => return from.wrong("holder binding"),
    };
    let step = NonZeroU64::new(from.u64("maximum sequence step")?);
    let policy = from.valid(Policy::default().with_guard(guard).ok(), "guard depth")?;
    let policy = policy
        .with_admission(admission)
        .with_holder_binding(binding);
    let policy = policy.with_max_sequence_step(step);
    if !of_leases {
        return Ok(policy);
    }
    let terms = match from.byte("terms")? {
        0 => Terms::External,
        1 => Terms::Issued,
        _ => return from.wrong("terms"),
    };
    let strict = match from.byte("0 or 1 for strict")? {
        0 => false,
        1 => true,
        _ => return from.wrong("0 or 1 for strict"),
    };
    let policy = policy.with_terms(terms).with_strict(strict);
    let graced = policy.with_grace_ms(from.u64("grace")?).ok();
    let policy = from.valid(graced, "grace")?;
    // One form for one policy: without any of it, none of it stands there.
    from.valid(says_of_leases(&policy).then_some(policy), "a say of leases")
}
