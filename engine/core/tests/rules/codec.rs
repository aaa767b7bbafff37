//! Bytes: frozen forms, identity of writing and reading, and one form for each value, whatever is
//! damaged.

use std::fmt::Debug;

use highwater_core::codec::{
    DecodeError, decode_domain, decode_effect, decode_fence, decode_intent, decode_lease,
    decode_record, encode_domain, encode_effect, encode_fence, encode_intent, encode_lease,
    encode_record,
};
use highwater_core::limits::{
    COMMIT_BYTES_MAX, EFFECT_BYTES_MAX, HOLDER_BYTES_MAX, INTENT_BYTES_MAX, INTENT_ID_BYTES_MAX,
    INTENT_MUTATIONS_MAX, KEY_BYTES_MAX, LEASE_CHANGE_BYTES_MAX, LEASE_MUTATIONS_MAX,
    MUTATIONS_MAX, OWNER_BYTES_MAX,
};
use highwater_core::{Effect, FenceChange, Holder, IntentRecord, RecordChange};

use crate::generate::{self, Chance};
use crate::golden;
use crate::raw;

/// A kind of bytes, as writing what was read from them.
type Again = fn(&[u8]) -> Result<Vec<u8>, DecodeError>;

fn again<T>(
    decode: fn(&[u8]) -> Result<T, DecodeError>,
    encode: fn(&T, &mut Vec<u8>),
) -> impl Fn(&[u8]) -> Result<Vec<u8>, DecodeError> {
    move |bytes| {
        decode(bytes).map(|value| {
            let mut out = Vec::new();
            encode(&value, &mut out);
            out
        })
    }
}

/// All frozen bytes with their kind.
fn frozen() -> Vec<(Vec<u8>, Again)> {
    let mut all: Vec<(Vec<u8>, Again)> = Vec::new();
    let record: Again = |bytes| again(decode_record, encode_record)(bytes);
    let fence: Again = |bytes| again(decode_fence, encode_fence)(bytes);
    let domain: Again = |bytes| again(decode_domain, encode_domain)(bytes);
    let effect: Again = |bytes| again(decode_effect, encode_effect)(bytes);
    all.extend(golden::records().into_iter().map(|(b, _)| (b, record)));
    all.extend(golden::fences().into_iter().map(|(b, _)| (b, fence)));
    let intent: Again = |bytes| {
        let decode = |bytes: &[u8]| decode_intent(&raw::intent(golden::INTENT), bytes);
        let record = decode(bytes)?;
        let mut out = Vec::new();
        encode_intent(&record, &mut out);
        Ok(out)
    };
    all.extend(golden::intents().into_iter().map(|(b, _)| (b, intent)));
    let lease: Again = |bytes| again(decode_lease, encode_lease)(bytes);
    all.extend(golden::leases().into_iter().map(|(b, _)| (b, lease)));
    all.extend(golden::domains().into_iter().map(|(b, _)| (b, domain)));
    all.extend(golden::effects().into_iter().map(|(b, ..)| (b, effect)));
    all
}

fn both_ways<T: PartialEq + Debug>(
    golden: Vec<(Vec<u8>, T)>,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
    encode: fn(&T, &mut Vec<u8>),
) {
    for (bytes, value) in golden {
        let mut out = b"before".to_vec();
        encode(&value, &mut out);
        assert_eq!(out.strip_prefix(b"before"), Some(bytes.as_slice()));
        assert_eq!(decode(&bytes), Ok(value));
    }
}

#[test]
fn frozen_rows_are_read_and_written_to_the_byte() {
    both_ways(golden::records(), decode_record, encode_record);
    both_ways(golden::fences(), decode_fence, encode_fence);
    both_ways(golden::domains(), decode_domain, encode_domain);
    both_ways(golden::leases(), decode_lease, encode_lease);
    let decode = |bytes: &[u8]| decode_intent(&raw::intent(golden::INTENT), bytes);
    both_ways(golden::intents(), decode, encode_intent);
}

#[test]
fn frozen_effects_are_read_and_written_to_the_byte() {
    for (bytes, revision, change) in golden::effects() {
        let effect = decode_effect(&bytes).unwrap();
        assert_eq!(effect.revision().get(), revision);
        assert_eq!(effect.change(), &change);
        let mut out = Vec::new();
        encode_effect(&effect, &mut out);
        assert_eq!(out, bytes);
    }
    let id: Vec<u8> = (0xA0..0xB0).collect();
    let id = highwater_core::DestinationId::new(id.try_into().unwrap());
    let genesis = Effect::genesis(id, raw::incarnation(2, 0x77));
    assert_eq!(decode_effect(&golden::effects()[1].0), Ok(genesis));
}

/// Reading fails, or writing gives back the very bytes: no two byte strings are one value.
fn canonical(again: Again, bytes: &[u8]) -> bool {
    match again(bytes) {
        Ok(out) => {
            assert_eq!(out, bytes, "a second form of one value");
            true
        }
        Err(error) => {
            assert!(error.at <= bytes.len(), "{error}");
            assert!(error.to_string().contains(error.expected));
            false
        }
    }
}

#[test]
fn every_truncation_and_every_tail_is_refused() {
    for (bytes, again) in frozen() {
        assert!(canonical(again, &bytes));
        for length in 0..bytes.len() {
            assert!(again(&bytes[..length]).is_err(), "{length} bytes");
        }
        for tail in [0, 1, 0xFF] {
            let longer = [bytes.as_slice(), &[tail]].concat();
            let error = again(&longer).unwrap_err();
            assert_eq!((error.at, error.expected), (bytes.len(), "the end"));
        }
    }
}

#[test]
fn every_flipped_bit_is_refused_or_another_value() {
    let (mut refused, mut read) = (0, 0);
    for (bytes, again) in frozen() {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if canonical(again, &flipped) {
                read += 1;
            } else {
                refused += 1;
            }
        }
    }
    assert!(refused > 500 && read > 500, "{refused} and {read}");
}

/// Every byte set to every value: also what a flip of one bit doesn't reach.
#[test]
fn every_changed_byte_is_refused_or_another_value() {
    for (bytes, again) in frozen() {
        for at in 0..bytes.len() {
            for value in 0..=u8::MAX {
                let mut changed = bytes.clone();
                changed[at] = value;
                canonical(again, &changed);
            }
        }
    }
}

/// Lengths and counts that promise more than there is are refused where they stand; nothing is
/// set aside for them.
#[test]
fn a_hostile_length_is_refused() {
    for (bytes, again) in frozen() {
        for at in 0..bytes.len() {
            for width in [2, 4] {
                let mut hostile = bytes.clone();
                if let Some(length) = hostile.get_mut(at..at + width) {
                    length.fill(0xFF);
                    canonical(again, &hostile);
                    // The same with nothing behind the length.
                    canonical(again, &hostile[..at + width]);
                }
            }
        }
    }
}

#[test]
fn damage_of_many_bytes_is_refused_or_another_value() {
    let mut chance = Chance::new(11);
    for (bytes, again) in frozen() {
        for _ in 0..2_000 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + chance.below(4) {
                let at = chance.below(damaged.len());
                damaged[at] = chance.next().to_be_bytes()[0];
            }
            let cut = chance.below(damaged.len());
            if chance.one_in(3) {
                damaged.rotate_left(cut);
            }
            canonical(again, &damaged);
        }
    }
}

#[test]
fn generated_rows_are_read_as_they_were_written() {
    let mut chance = Chance::new(5);
    for _ in 0..2_000 {
        let (record, fence) = (generate::record(&mut chance), generate::fence(&mut chance));
        let domain = generate::domain(&mut chance);
        let mut out = Vec::new();
        encode_record(&record, &mut out);
        assert_eq!(decode_record(&out), Ok(record));
        out.clear();
        encode_fence(&fence, &mut out);
        assert_eq!(decode_fence(&out), Ok(fence));
        out.clear();
        encode_domain(&domain, &mut out);
        assert_eq!(decode_domain(&out), Ok(domain));
        let lease = generate::lease(&mut chance);
        out.clear();
        encode_lease(&lease, &mut out);
        assert_eq!(decode_lease(&out), Ok(lease));
    }
}

/// An effect without intents has the kind that has no place for them; 65 steps are one too many.
#[test]
fn what_has_no_intents_has_no_list_of_them() {
    let (mut bytes, ..) = golden::effects().remove(0);
    let list = bytes.windows(2).position(|two| two == [0, 2]).unwrap() - 2;
    bytes.truncate(list);
    bytes.extend([0; 8]);
    assert_eq!(
        decode_effect(&bytes).unwrap_err().expected,
        "an intent or a lease"
    );
    let id = raw::intent(golden::INTENT);
    let (_, mut record) = golden::intents().remove(0);
    let last = record.steps[1].clone();
    record.steps.resize(64, last.clone());
    let encoded = |record: &IntentRecord| {
        let mut out = Vec::new();
        encode_intent(record, &mut out);
        out
    };
    assert_eq!(
        decode_intent(&id, &encoded(&record)).unwrap().steps.len(),
        64
    );
    record.steps.push(last);
    assert_eq!(
        decode_intent(&id, &encoded(&record)).unwrap_err().expected,
        "at most 64 steps"
    );
}

/// A row of leases has 1 to 8 terms, in rising order.
#[test]
fn terms_of_grants_are_few_and_in_order() {
    let with = |sequences: &[u64]| {
        let (mut bytes, _) = golden::leases().remove(1);
        let behind = bytes.split_off(17 + 11);
        bytes.truncate(16);
        bytes.push(u8::try_from(sequences.len()).unwrap());
        for sequence in sequences {
            bytes.extend(sequence.to_be_bytes());
            bytes.extend([0, 1, b'a']);
        }
        bytes.extend(behind);
        decode_lease(&bytes).map(|record| record.grants.len())
    };
    assert_eq!(with(&[1, 2, 3, 4, 5, 6, 7, 8]), Ok(8));
    for wrong in [&[][..], &[2, 1], &[2, 2], &[1, 2, 3, 4, 5, 6, 7, 8, 9]] {
        assert!(with(wrong).is_err(), "{wrong:?}");
    }
}

/// A policy that says nothing of leases has the form that it had before there were any.
#[test]
fn a_say_of_leases_that_says_nothing_is_refused() {
    let (bytes, _) = golden::domains().remove(0);
    let binding = bytes.iter().position(|byte| *byte == 0x82).unwrap();
    let with = |say: [u8; 10]| {
        let mut bytes = bytes.clone();
        bytes[binding + 9..binding + 19].copy_from_slice(&say);
        decode_domain(&bytes).map(|_| ())
    };
    assert!(with([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).is_ok());
    assert!(with([0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_ok());
    assert!(with([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_ok());
    assert!(with([0; 10]).is_err());
    assert!(with([2, 0, 0, 0, 0, 0, 0, 0, 0, 1]).is_err());
    assert!(with([0, 2, 0, 0, 0, 0, 0, 0, 0, 1]).is_err());
    assert!(with([0, 0, 0xFF, 0, 0, 0, 0, 0, 0, 1]).is_err());
}

/// Sets of labels have one order, and a label stands once.
#[test]
fn labels_out_of_order_are_refused() {
    let with = |names: [&[u8; 1]; 2]| {
        let (mut bytes, _) = golden::records().remove(1);
        let value = bytes.split_off(bytes.len() - 4);
        bytes.truncate(bytes.len() - 2);
        bytes.extend([0, 2]);
        for name in names {
            bytes.extend([0, 1, name[0], 0, 0]);
        }
        bytes.extend(value);
        decode_record(&bytes).map(|record| record.metadata.labels().len())
    };
    assert_eq!(with([b"a", b"b"]), Ok(2));
    assert!(with([b"b", b"a"]).is_err());
    assert!(with([b"a", b"a"]).is_err());
}

/// The bound on the bytes of an effect holds for the largest that a commit can make.
#[test]
fn the_largest_effect_is_within_its_bound() {
    let key = raw::key(&[b'k'; KEY_BYTES_MAX]);
    let mut chance = Chance::new(3);
    let mut fence = generate::fence(&mut chance);
    fence.holder = Holder::new([b'h'; HOLDER_BYTES_MAX]).unwrap();
    let mut record = generate::record(&mut chance);
    record.written_under = Some(fence.term);
    record.value = highwater_core::Value::new(b"").unwrap();
    record.metadata = highwater_core::Metadata::default();
    let raise = FenceChange {
        guard: raw::guard(key.as_bytes()),
        fence,
    };
    let write = RecordChange {
        key,
        record: Some(std::sync::Arc::new(record)),
    };
    let mut one = Vec::new();
    encode_record(write.record.as_deref().unwrap(), &mut one);
    encode_fence(&raise.fence, &mut one);
    // Two counted names of a key's length and the byte that says that there is a record.
    let fixed = one.len() + 2 * (2 + KEY_BYTES_MAX) + 1;
    // Labels add at most four bytes of lengths to at least one byte that counts, 64 to a key.
    let per_mutation = fixed + 64 * 4 + 2;
    let header = 1 + 8 + 1 + 4 + 4 + 4 + 4;
    // Each intent: its id, its record, and the name of an owner.
    let intent = 2 + INTENT_ID_BYTES_MAX + INTENT_BYTES_MAX + 2 + OWNER_BYTES_MAX + 8;
    let header = header + (INTENT_MUTATIONS_MAX + 1) * intent;
    // Each lease: its guard, its record at its longest, and the fence that it may raise.
    let (guard, holder) = (2 + KEY_BYTES_MAX, 2 + HOLDER_BYTES_MAX);
    let times = 4 * 8;
    let end = 1 + 2 + OWNER_BYTES_MAX + 24 + holder + times + 16;
    let record = 16 + 1 + 8 * (8 + holder) + 1 + times + end + 8;
    assert!(guard + record + guard + 24 + holder <= LEASE_CHANGE_BYTES_MAX);
    let header = header + 4 + LEASE_MUTATIONS_MAX * LEASE_CHANGE_BYTES_MAX;
    assert!(header + MUTATIONS_MAX * per_mutation + COMMIT_BYTES_MAX <= EFFECT_BYTES_MAX);
}
