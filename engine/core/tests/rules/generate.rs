//! Chance that can be repeated: a seeded generator, and values made from it.

use std::sync::Arc;

use highwater_core::{
    Admission, Domain, DomainId, DomainName, DomainState, EndCause, EpochEntry, EpochTable, Fence,
    Generation, Grant, GuardRule, Holder, HolderBinding, Lease, LeaseEnd, LeaseId, LeaseRecord,
    Metadata, Metageneration, Owner, Policy, Record, Sequence, Term, Terms, Ttl, Value,
};

use crate::raw;

/// Splitmix64: a counter whose steps are scattered over all 64 bits.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below the bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Up to this many bytes of any kind.
    pub(crate) fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.next().to_be_bytes()[0]).collect()
    }

    /// A number with a random number of bits, so that small ones and the ends occur; never zero.
    pub(crate) fn number(&mut self) -> u64 {
        let any = self.next();
        (any >> self.below(64)).max(1)
    }

    fn revision(&mut self) -> u64 {
        self.number() | (1 << 48)
    }
}

pub(crate) fn metadata(chance: &mut Chance) -> Metadata {
    let mut metadata = Metadata::default();
    if chance.one_in(2) {
        metadata = metadata.with_content_type("text/plain; \u{e4}").unwrap();
    }
    for number in 0..chance.below(4) {
        let value = "v".repeat(chance.below(5));
        metadata = metadata.with_label(&format!("n{number}"), &value).unwrap();
    }
    metadata
}

pub(crate) fn fence(chance: &mut Chance) -> Fence {
    let sequence = chance.number().min(u64::MAX - 1);
    let mut holder = chance.bytes(8);
    holder.push(b'h');
    Fence {
        term: raw::term(chance.number(), chance.next(), sequence),
        holder: Holder::new(holder).unwrap(),
    }
}

pub(crate) fn record(chance: &mut Chance) -> Record {
    let term = fence(chance).term;
    Record {
        generation: Generation::new(chance.revision()).unwrap(),
        metageneration: Metageneration::new(chance.number()).unwrap(),
        changed_at: raw::revision(chance.revision()),
        written_under: chance.one_in(2).then_some(term),
        value: Value::new(chance.bytes(40)).unwrap(),
        metadata: metadata(chance),
    }
}

pub(crate) fn policy(chance: &mut Chance) -> Policy {
    let prefix = GuardRule::Prefix {
        delimiter: chance.next().to_be_bytes()[0],
        depth: u8::try_from(1 + chance.below(32)).unwrap(),
    };
    let guard = chance.pick(&[GuardRule::Key, prefix, GuardRule::Domain]);
    let admissions = [Admission::Fenced, Admission::Versioned, Admission::Open];
    let bindings = [
        HolderBinding::None,
        HolderBinding::Prefix,
        HolderBinding::Exact,
    ];
    let step = chance.one_in(2).then(|| chance.number());
    Policy::default()
        .with_guard(guard)
        .unwrap()
        .with_admission(chance.pick(&admissions))
        .with_holder_binding(chance.pick(&bindings))
        .with_max_sequence_step(step.and_then(std::num::NonZeroU64::new))
        .with_terms(chance.pick(&[Terms::External, Terms::Issued]))
        .with_strict(chance.one_in(2))
        .with_grace_ms(chance.pick(&[0, 1, 604_800_000]))
        .unwrap()
}

fn a_lease(chance: &mut Chance, term: Term) -> Lease {
    let milliseconds = 100 + chance.next() % 1_000_000;
    Lease {
        id: LeaseId::new(chance.revision()).unwrap(),
        term,
        holder: fence(chance).holder,
        ttl: Ttl::new(milliseconds).unwrap(),
        renewed_at: raw::revision(chance.revision()),
        renewed_clock_ms: chance.next(),
    }
}

/// A row of leases; its numbers needn't fit each other.
pub(crate) fn lease(chance: &mut Chance) -> LeaseRecord {
    let by = Owner::new("ops").unwrap();
    let causes = [
        EndCause::Expired,
        EndCause::Released,
        EndCause::Revoked { by },
        EndCause::Superseded,
        EndCause::EpochTransition,
        EndCause::Restore,
    ];
    let epoch = raw::epoch(chance.number(), chance.next());
    let count = 1 + u64::try_from(chance.below(8)).unwrap();
    let grants: Vec<Grant> = (1..=count)
        .map(|number| Grant {
            sequence: Sequence::new(number * 3).unwrap(),
            holder: fence(chance).holder,
        })
        .collect();
    let last = grants.last().unwrap().clone();
    let sequence = last.sequence;
    let held = Lease {
        holder: last.holder,
        ..a_lease(chance, Term { epoch, sequence })
    };
    let term = fence(chance).term;
    let end = LeaseEnd {
        lease: Arc::new(a_lease(chance, term)),
        cause: chance.pick(&causes),
        at: raw::revision(chance.revision()),
        clock_ms: chance.next(),
    };
    LeaseRecord {
        epoch,
        grants,
        current: chance.one_in(2).then(|| Arc::new(held)),
        last_end: chance.one_in(2).then_some(end),
        changed_at: raw::revision(chance.revision()),
    }
}

pub(crate) fn domain(chance: &mut Chance) -> Domain {
    let mut entry = || EpochEntry {
        epoch: raw::epoch(chance.number(), chance.next()),
        installed_at: raw::revision(chance.revision()),
    };
    let (retired, current) = (vec![entry(), entry()], entry());
    let retired = retired[..chance.below(3)].to_vec();
    let states = [
        DomainState::Active,
        DomainState::Frozen,
        DomainState::RecoveryRequired,
    ];
    let id = u32::try_from(chance.number() >> 32).unwrap();
    Domain {
        id: DomainId::new(id.max(1)).unwrap(),
        name: DomainName::new(&"name-1.x_"[..1 + chance.below(9)]).unwrap(),
        policy: policy(chance),
        epochs: EpochTable::with_retired(retired, current),
        state: chance.pick(&states),
        created_at: raw::revision(chance.revision()),
    }
}
