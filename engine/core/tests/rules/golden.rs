//! The frozen bytes of each kind of row and effect, written down by hand from the format, and the
//! values that they are.

use std::num::NonZeroU64;
use std::sync::Arc;

use highwater_core::{
    Admission, Change, DestinationId, Domain, DomainId, DomainName, DomainState, EpochEntry,
    EpochTable, Fence, FenceChange, Generation, GuardRule, Holder, HolderBinding, Metadata,
    Metageneration, Policy, Record, RecordChange, Term, Value,
};

use crate::raw;

/// The first revision of the first incarnation.
const R: u64 = 1 << 48;
const MARK: u64 = 0x3FA9_C1D2_E0B1_4C55;

/// Reads the text form of frozen bytes: hexadecimal digits, and behind `#` what they are.
fn bytes(text: &str) -> Vec<u8> {
    let digits = |line: &str| line.split('#').next().unwrap().trim().to_owned();
    let digits: String = text.lines().map(digits).collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

macro_rules! frozen {
    ($name:literal) => {
        bytes(include_str!(concat!("golden/", $name, ".hex")))
    };
}

pub(crate) fn records() -> Vec<(Vec<u8>, Record)> {
    let labels = || {
        let typed = Metadata::default().with_content_type("text/plain").unwrap();
        typed.with_label("kind", "result").unwrap()
    };
    let full = record(
        (5, 2, 7),
        Some(42),
        labels().with_label("size", "").unwrap(),
        b"done\x00\xFF",
    );
    let plain = record((5, 1, 5), None, Metadata::default(), b"");
    vec![(frozen!("record"), full), (frozen!("record-plain"), plain)]
}

pub(crate) fn fences() -> Vec<(Vec<u8>, Fence)> {
    vec![(frozen!("fence"), fence(42, b"worker-a"))]
}

pub(crate) fn domains() -> Vec<(Vec<u8>, Domain)> {
    let plain = Domain {
        id: DomainId::new(1).unwrap(),
        name: DomainName::new("a").unwrap(),
        policy: Policy::default().with_admission(Admission::Versioned),
        epochs: EpochTable::new(entry(1, 0x11, R + 1)),
        state: DomainState::Active,
        created_at: raw::revision(R + 1),
    };
    let single = Domain {
        id: DomainId::new(2).unwrap(),
        name: DomainName::new("one_leader.x-1").unwrap(),
        policy: Policy::default()
            .with_guard(GuardRule::Domain)
            .unwrap()
            .with_admission(Admission::Open)
            .with_holder_binding(HolderBinding::Exact)
            .with_max_sequence_step(NonZeroU64::new(1)),
        state: DomainState::RecoveryRequired,
        ..plain.clone()
    };
    vec![
        (frozen!("domain"), jobs()),
        (frozen!("domain-plain"), plain),
        (frozen!("domain-single"), single),
    ]
}

/// Bytes, revision and change of each kind of effect.
pub(crate) fn effects() -> Vec<(Vec<u8>, u64, Change)> {
    let id: Vec<u8> = (0xA0..0xB0).collect();
    let genesis = Change::Genesis {
        destination: DestinationId::new(id.try_into().unwrap()),
        incarnation: raw::incarnation(2, 0x77),
    };
    let metadata = Metadata::default().with_content_type("text/plain").unwrap();
    let metadata = metadata.with_label("kind", "result").unwrap();
    let put = record((7, 1, 7), Some(42), Metadata::default(), b"v");
    let labelled = record((5, 2, 7), None, metadata, b"");
    let change = |key: &[u8], record: Option<Record>| RecordChange {
        key: raw::key(key),
        record: record.map(Arc::new),
    };
    let raise = |guard: &[u8], fence| FenceChange {
        guard: raw::guard(guard),
        fence,
    };
    let commit = Change::Commit {
        domain: DomainId::new(3).unwrap(),
        records: vec![
            change(b"job-7", Some(put)),
            change(b"job-7/old", None),
            change(b"job-8", Some(labelled)),
        ],
        fences: vec![
            raise(b"", fence(42, b"worker-a")),
            raise(b"job-7", fence(u64::MAX - 1, &[0x00, 0xFF])),
        ],
    };
    let nothing = Change::Commit {
        domain: DomainId::new(1).unwrap(),
        records: Vec::new(),
        fences: Vec::new(),
    };
    vec![
        (frozen!("effect-genesis"), 2 * R, genesis),
        (
            frozen!("effect-domain"),
            R + 2,
            Change::DomainCreated(Arc::new(jobs())),
        ),
        (frozen!("effect-commit"), R + 7, commit),
        (frozen!("effect-nothing"), R + 8, nothing),
    ]
}

fn record(
    (generation, metageneration, changed): (u64, u64, u64),
    sequence: Option<u64>,
    metadata: Metadata,
    value: &[u8],
) -> Record {
    Record {
        generation: Generation::new(R + generation).unwrap(),
        metageneration: Metageneration::new(metageneration).unwrap(),
        changed_at: raw::revision(R + changed),
        written_under: sequence.map(term),
        value: Value::new(value).unwrap(),
        metadata,
    }
}

fn term(sequence: u64) -> Term {
    raw::term(7, MARK, sequence)
}

fn fence(sequence: u64, holder: &[u8]) -> Fence {
    Fence {
        term: term(sequence),
        holder: Holder::new(holder).unwrap(),
    }
}

fn entry(number: u64, mark: u64, at: u64) -> EpochEntry {
    EpochEntry {
        epoch: raw::epoch(number, mark),
        installed_at: raw::revision(at),
    }
}

fn jobs() -> Domain {
    let by_job = GuardRule::Prefix {
        delimiter: b'/',
        depth: 1,
    };
    let retired = vec![entry(1, 0x11, R + 2), entry(5, 0x22, R + 9)];
    Domain {
        id: DomainId::new(3).unwrap(),
        name: DomainName::new("jobs").unwrap(),
        policy: Policy::default()
            .with_guard(by_job)
            .unwrap()
            .with_holder_binding(HolderBinding::Prefix)
            .with_max_sequence_step(NonZeroU64::new(1_000)),
        epochs: EpochTable::with_retired(retired, entry(7, MARK, R + 12)),
        state: DomainState::Frozen,
        created_at: raw::revision(R + 2),
    }
}
