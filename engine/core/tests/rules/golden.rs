//! The frozen bytes of each kind of row and effect, written down by hand from the format, and the
//! values that they are.

use std::num::NonZeroU64;
use std::sync::Arc;

use highwater_core::{
    Admission, Authority, Binding, Change, Configuration, DestinationId, Digest, Domain, DomainId,
    DomainName, DomainState, EndCause, Ending, EpochEntry, EpochTable, Fence, FenceChange,
    Generation, Grant, GuardReceipt, GuardRule, Holder, HolderBinding, Input, InputName,
    InputReceipt, IntentChange, IntentRecord, IntentState, IntentStep, Lease, LeaseChange,
    LeaseEnd, LeaseId, LeaseReceipt, LeaseRecord, Metadata, Metageneration, Owner, Policy, Receipt,
    Record, RecordChange, Sequence, Step, StepRecord, Term, Terms, Ttl, Value, Work, WriteReceipt,
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
    let issued = Domain {
        policy: plain
            .policy
            .with_holder_binding(HolderBinding::Exact)
            .with_terms(Terms::Issued)
            .with_strict(true)
            .with_grace_ms(10_000)
            .unwrap(),
        ..plain.clone()
    };
    vec![
        (frozen!("domain-issued"), issued),
        (frozen!("domain"), jobs()),
        (frozen!("domain-plain"), plain),
        (frozen!("domain-single"), single),
    ]
}

/// The id of the frozen intents.
pub(crate) const INTENT: &[u8] = b"close/job-7";

pub(crate) fn intents() -> Vec<(Vec<u8>, IntentRecord)> {
    let input = |key: &[u8], generation| Input::Key {
        key: raw::key(key),
        generation: Generation::new(generation),
    };
    let holder = fence(42, b"worker-a");
    let binding = Binding {
        work: Work::under(raw::guard(b"job-7"))
            .configured(Configuration::new("v1").unwrap())
            .from_input(input(b"job-7/in", R + 5))
            .from_input(input(b"job-7/new", 0))
            .from_input(Input::Named {
                name: InputName::new("image").unwrap(),
                digest: Digest::new([0xD1; 32]),
            }),
        authority: Authority::new(holder.term, holder.holder),
    };
    let steps = [step(1, first_receipt()), step(2, receipt(2, R + 8))];
    let full = IntentRecord {
        state: IntentState::Indeterminate {
            owner: Owner::new("ops").unwrap(),
            review_at_ms: 0x0102_0304_0506_0708,
        },
        binding: Some(Arc::new(binding)),
        steps: steps.map(Arc::new).into(),
        changed_at: raw::revision(R + 9),
    };
    let plain = IntentRecord {
        state: IntentState::Ended(Ending::Completed),
        binding: None,
        steps: Vec::new(),
        changed_at: raw::revision(R + 9),
    };
    let mut leasing = receipt(1, R + 10);
    leasing.leases = lease_receipts();
    let leased = IntentRecord {
        state: IntentState::Open,
        binding: None,
        steps: vec![Arc::new(step(1, leasing))],
        changed_at: raw::revision(R + 10),
    };
    vec![
        (frozen!("intent"), full),
        (frozen!("intent-plain"), plain),
        (frozen!("intent-leases"), leased),
    ]
}

/// The two leases of the frozen rows.
fn two_leases() -> [Arc<Lease>; 2] {
    let current = Lease {
        id: LeaseId::new(R + 7).unwrap(),
        term: term(42),
        holder: Holder::new("worker-a").unwrap(),
        ttl: Ttl::new(30_000).unwrap(),
        renewed_at: raw::revision(R + 8),
        renewed_clock_ms: 0x0102_0304_0506_0708,
    };
    let ended = Lease {
        id: LeaseId::new(R + 5).unwrap(),
        term: term(41),
        holder: Holder::new([0x00, 0xFF]).unwrap(),
        ttl: Ttl::new(100).unwrap(),
        renewed_at: raw::revision(R + 6),
        renewed_clock_ms: 9,
    };
    [Arc::new(current), Arc::new(ended)]
}

fn revoked() -> EndCause {
    let by = Owner::new("ops").unwrap();
    EndCause::Revoked { by }
}

fn lease_receipts() -> Vec<LeaseReceipt> {
    let [current, ended] = two_leases();
    vec![
        LeaseReceipt {
            guard: raw::guard(b"job-7"),
            lease: current,
            ended: None,
            replaced: Some(EndCause::Expired),
        },
        LeaseReceipt {
            guard: raw::guard(b"job-8"),
            lease: ended,
            ended: Some(revoked()),
            replaced: None,
        },
    ]
}

pub(crate) fn leases() -> Vec<(Vec<u8>, LeaseRecord)> {
    let [current, ended] = two_leases();
    let grant = |lease: &Lease| Grant {
        sequence: lease.term.sequence,
        holder: lease.holder.clone(),
    };
    let full = LeaseRecord {
        epoch: current.term.epoch,
        grants: vec![grant(&ended), grant(&current)],
        current: Some(current),
        last_end: Some(LeaseEnd {
            lease: ended,
            cause: revoked(),
            at: raw::revision(R + 7),
            clock_ms: 10,
        }),
        changed_at: raw::revision(R + 8),
    };
    let plain = LeaseRecord {
        epoch: raw::epoch(1, 0x11),
        grants: vec![Grant {
            sequence: Sequence::new(1).unwrap(),
            holder: Holder::new("a").unwrap(),
        }],
        current: None,
        last_end: None,
        changed_at: raw::revision(R + 5),
    };
    vec![(frozen!("lease"), full), (frozen!("lease-plain"), plain)]
}

fn step(number: u32, receipt: Receipt) -> StepRecord {
    StepRecord {
        step: Step::new(number).unwrap(),
        digest: Digest::new([0xC0 | u8::try_from(number).unwrap(); 32]),
        receipt,
    }
}

fn receipt(number: u32, revision: u64) -> Receipt {
    let id: Vec<u8> = (0xA0..0xB0).collect();
    Receipt {
        destination: DestinationId::new(id.try_into().unwrap()),
        incarnation: raw::incarnation(2, 0x77),
        domain: DomainName::new("jobs").unwrap(),
        revision: raw::revision(revision),
        intent: Some(IntentStep {
            id: raw::intent(INTENT),
            step: Step::new(number).unwrap(),
        }),
        guards: Vec::new(),
        inputs: Vec::new(),
        writes: Vec::new(),
        leases: Vec::new(),
        replayed: false,
        advisory_time_ms: None,
    }
}

fn first_receipt() -> Receipt {
    let guard = |name: &[u8], previous| GuardReceipt {
        guard: raw::guard(name),
        fence: fence(42, b"worker-a"),
        previous,
    };
    let input = |key: &[u8], generation| InputReceipt {
        key: raw::key(key),
        generation: Generation::new(generation),
    };
    let write = |key: &[u8], generation, metageneration, previous| WriteReceipt {
        key: raw::key(key),
        generation: Generation::new(generation),
        metageneration: Metageneration::new(metageneration),
        previous: Generation::new(previous),
    };
    Receipt {
        guards: vec![
            guard(b"job-7", None),
            guard(b"job-8", Some(fence(41, &[0x00, 0xFF]))),
        ],
        inputs: vec![input(b"job-7/in", R + 5), input(b"job-7/new", 0)],
        writes: vec![
            write(b"job-7/out", R + 7, 1, 0),
            write(b"job-8", 0, 0, R + 6),
        ],
        advisory_time_ms: Some(1_700_000_000_000),
        ..receipt(1, R + 7)
    }
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
        intents: Vec::new(),
        leases: Vec::new(),
    };
    let nothing = Change::Commit {
        domain: DomainId::new(1).unwrap(),
        records: Vec::new(),
        fences: Vec::new(),
        intents: Vec::new(),
        leases: Vec::new(),
    };
    let change = |id: &[u8], record| IntentChange {
        id: raw::intent(id),
        record: Arc::new(record),
    };
    let [(_, full), (_, plain), _] = intents().try_into().unwrap();
    let noted = Change::Commit {
        domain: DomainId::new(3).unwrap(),
        records: Vec::new(),
        fences: Vec::new(),
        intents: vec![change(b"a", plain), change(INTENT, full)],
        leases: Vec::new(),
    };
    let mut all = vec![
        (frozen!("effect-intents"), R + 9, noted),
        (frozen!("effect-genesis"), 2 * R, genesis),
        (
            frozen!("effect-domain"),
            R + 2,
            Change::DomainCreated(Arc::new(jobs())),
        ),
        (frozen!("effect-commit"), R + 7, commit),
        (frozen!("effect-nothing"), R + 8, nothing),
    ];
    all.extend(effects_on_leases());
    all
}

fn effects_on_leases() -> [(Vec<u8>, u64, Change); 3] {
    let leased = |guard: &[u8], record| LeaseChange {
        guard: raw::guard(guard),
        record: Arc::new(record),
    };
    let [(_, held), (_, free)] = leases().try_into().unwrap();
    let leasing = Change::Commit {
        domain: DomainId::new(3).unwrap(),
        records: Vec::new(),
        fences: Vec::new(),
        intents: Vec::new(),
        leases: vec![leased(b"job-7", held), leased(b"job-8", free)],
    };
    let clock = |now_ms, opened| Change::LeaseClock { now_ms, opened };
    [
        (frozen!("effect-leases"), R + 10, leasing),
        (frozen!("effect-clock"), R + 11, clock(5_000, false)),
        (frozen!("effect-opening"), R + 12, clock(5_001, true)),
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
