//! What goes through the wire comes out the same, byte for byte through the encoding.

use std::fmt::Debug;
use std::num::NonZeroU64;

use highwater_core::{
    Admission, Authorities, Commit, Domain, DomainId, DomainName, DomainState, Epoch, EpochEntry,
    EpochMark, EpochNumber, EpochTable, ExpectedDestination, GuardReceipt, GuardRule,
    HolderBinding, InputReceipt, IntentStep, Key, KeyRange, Malformed, Metageneration, Policy,
    Receipt, Record, Rejection, Terms, Value, WriteReceipt, limits,
};
use highwater_proto::convert::{FromWire, ToWire, record_to_wire};
use prost::Message;

use crate::leases::lease_receipts;
use crate::samples::{
    authority, conditions, extreme_authority, generation, guard, intent_id, key, malformed,
    metadata, mutations, observed_little, rejections, revision,
};

pub(crate) fn through_bytes<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

#[track_caller]
pub(crate) fn assert_survives<T, W>(value: &T)
where
    T: ToWire<Wire = W> + FromWire<W> + PartialEq + Debug,
    W: Message + Default,
{
    let read = T::from_wire(through_bytes(&value.to_wire()));
    assert_eq!(read.as_ref(), Ok(value));
}

fn destination() -> ExpectedDestination {
    let observed = observed_little();
    ExpectedDestination {
        id: observed.destination,
        incarnation: observed.incarnation,
    }
}

#[test]
fn authorities_destinations_and_fences_survive() {
    assert_survives(&extreme_authority());
    assert_survives(&extreme_authority().to_fence());
    assert_survives(&extreme_authority().term());
    assert_survives(&destination());
}

#[test]
fn every_condition_and_mutation_survives() {
    conditions().iter().for_each(assert_survives);
    mutations().iter().for_each(assert_survives);
}

#[test]
fn commits_survive_under_every_kind_of_authority() {
    let one = authority("1.0000000000000000/1@a");
    let kinds = [
        Authorities::None,
        Authorities::One(one.clone()),
        Authorities::PerGuard(vec![(guard(b""), one), (guard(b"g"), extreme_authority())]),
    ];
    for authority in kinds {
        let mut commit = Commit::new(DomainName::new("jobs.1_x-Y").unwrap());
        commit.authority = authority;
        commit.conditions = conditions();
        commit.mutations = mutations();
        assert_survives(&commit);
        let step = highwater_core::Step::new(64).unwrap();
        let commit = commit.for_intent(intent_id(), step);
        assert_survives(&commit);
        assert_survives(&commit.completing().for_destination(destination()));
    }
}

#[test]
fn a_caller_is_never_taken_from_the_wire() {
    let mut commit = Commit::new(DomainName::new("jobs").unwrap());
    commit.caller = highwater_core::Identity::new("somebody").ok();
    let read = Commit::from_wire(through_bytes(&commit.to_wire())).unwrap();
    assert_eq!(read.caller, None);
}

pub(crate) fn receipt() -> Receipt {
    let fence = extreme_authority().to_fence();
    Receipt {
        destination: destination().id,
        incarnation: destination().incarnation,
        domain: DomainName::new("jobs").unwrap(),
        revision: revision(u64::MAX),
        intent: None,
        guards: vec![
            GuardReceipt {
                guard: guard(b""),
                fence: fence.clone(),
                previous: None,
            },
            GuardReceipt {
                guard: guard(b"g"),
                fence: fence.clone(),
                previous: Some(fence),
            },
        ],
        inputs: vec![
            InputReceipt {
                key: key(b"i"),
                generation: None,
            },
            InputReceipt {
                key: key(b"j"),
                generation: Some(generation(1 << 48)),
            },
        ],
        writes: vec![
            WriteReceipt {
                key: key(b"w"),
                generation: None,
                metageneration: None,
                previous: Some(generation(1 << 48)),
            },
            WriteReceipt {
                key: key(b"x"),
                generation: Some(generation(u64::MAX)),
                metageneration: Metageneration::new(2),
                previous: None,
            },
        ],
        leases: lease_receipts(),
        replayed: true,
        advisory_time_ms: Some(0),
    }
}

#[test]
fn receipts_survive() {
    assert_survives(&receipt());
    assert_survives(&Receipt {
        intent: Some(IntentStep {
            id: intent_id(),
            step: highwater_core::Step::FIRST,
        }),
        guards: Vec::new(),
        inputs: Vec::new(),
        writes: Vec::new(),
        leases: Vec::new(),
        replayed: false,
        advisory_time_ms: None,
        ..receipt()
    });
}

#[test]
fn records_survive_with_small_and_shared_values() {
    for length in [0, 255, 256, 1 << 20] {
        for written_under in [None, Some(extreme_authority().term())] {
            let record = Record {
                generation: generation(u64::MAX),
                metageneration: Metageneration::new(3).unwrap(),
                changed_at: revision(u64::MAX),
                written_under,
                value: Value::new(vec![9; length]).unwrap(),
                metadata: metadata(),
            };
            let wire = through_bytes(&record_to_wire(&key(b"k"), &record));
            let read = <(Key, Record)>::from_wire(wire);
            assert_eq!(read, Ok((key(b"k"), record)));
        }
    }
}

#[test]
fn ranges_survive_and_an_open_end_is_not_an_empty_one() {
    for end in [None, Some(Vec::new()), Some(vec![0xff; 1_024])] {
        assert_survives(&KeyRange::between(b"a".to_vec(), end));
    }
}

#[test]
fn policies_survive_in_every_combination() {
    let prefix = GuardRule::Prefix {
        delimiter: 0,
        depth: 32,
    };
    for guard in [GuardRule::Key, GuardRule::Domain, prefix] {
        for admission in [Admission::Fenced, Admission::Versioned, Admission::Open] {
            let bindings = [
                HolderBinding::None,
                HolderBinding::Prefix,
                HolderBinding::Exact,
            ];
            for binding in bindings {
                for step in [None, Some(NonZeroU64::MAX)] {
                    let policy = Policy::default().with_guard(guard).unwrap();
                    let policy = policy
                        .with_admission(admission)
                        .with_holder_binding(binding)
                        .with_max_sequence_step(step);
                    assert_survives(&policy);
                    for (terms, strict) in [(Terms::Issued, false), (Terms::External, true)] {
                        let policy = policy.with_terms(terms).with_strict(strict);
                        assert_survives(&policy.with_grace_ms(limits::GRACE_MS_MAX).unwrap());
                    }
                }
            }
        }
    }
}

#[test]
fn domains_survive_in_every_state() {
    let entry = |number, mark| EpochEntry {
        epoch: Epoch::new(EpochNumber::new(number).unwrap(), EpochMark::new(mark)),
        installed_at: revision(1 << 48),
    };
    let states = [
        DomainState::Active,
        DomainState::Frozen,
        DomainState::RecoveryRequired,
    ];
    for state in states {
        assert_survives(&Domain {
            id: DomainId::new(u32::MAX).unwrap(),
            name: DomainName::new("jobs").unwrap(),
            policy: Policy::default(),
            epochs: EpochTable::with_retired(vec![entry(1, 0)], entry(2, u64::MAX)),
            state,
            created_at: revision(1 << 48),
        });
    }
}

#[test]
fn everything_that_can_be_malformed_survives() {
    for malformed in malformed() {
        assert_eq!(
            Malformed::from_wire(through_bytes(&malformed.to_wire())),
            Ok(malformed)
        );
    }
}

#[test]
fn every_rejection_survives() {
    for rejection in rejections() {
        assert_eq!(
            Rejection::from_wire(through_bytes(&rejection.to_wire())),
            Ok(rejection)
        );
    }
}
