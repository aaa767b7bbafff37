//! Every bound at one below, at, and one above.

use highwater_core::limits::{
    CONDITIONS_MAX, CONTENT_TYPE_BYTES_MAX, DOMAIN_NAME_BYTES_MAX, HOLDER_BYTES_MAX,
    IDENTITY_BYTES_MAX, INTENT_BYTES_MAX, INTENT_ID_BYTES_MAX, KEY_BYTES_MAX, LABEL_NAME_BYTES_MAX,
    LABEL_VALUE_BYTES_MAX, LABELS_MAX, MUTATIONS_MAX, VALUE_BYTES_DEFAULT, VALUE_BYTES_MAX,
};
use highwater_core::{
    Admission, Configuration, DomainName, Guard, GuardRule, Holder, HolderBinding, Identity,
    InputName, IntentId, Key, Limits, Metadata, MetadataError, NameError, Owner, Prefix, Step,
    Value,
};

use crate::oracle::Rules;
use crate::raw::{Change, Cond, advance, auth, put, request};
use crate::twin::{MARK, Twin, VALUE_MAX};

/// The numbers of the contract, written down a second time.
#[test]
fn the_bounds_are_those_of_the_contract() {
    assert_eq!((KEY_BYTES_MAX, HOLDER_BYTES_MAX), (1_024, 256));
    assert_eq!((MUTATIONS_MAX, CONDITIONS_MAX), (1_024, 1_024));
    assert_eq!(VALUE_BYTES_DEFAULT, 1_048_576);
    assert_eq!(VALUE_BYTES_MAX, 16 * 1_048_576);
    assert_eq!(Limits::default().value_bytes, 1_048_576);
    assert_eq!((INTENT_ID_BYTES_MAX, INTENT_BYTES_MAX), (256, 262_144));
    for (number, there_is) in [(0, false), (1, true), (64, true), (65, false)] {
        assert_eq!(Step::new(number).map(Step::get), there_is.then_some(number));
    }
    assert_eq!(Step::FIRST.next(), Step::new(2));
    assert_eq!(Step::new(64).and_then(Step::next), None);
}

type Make = fn(&[u8]) -> Result<usize, NameError>;

fn length<T: AsRef<[u8]>>(made: Result<T, NameError>) -> Result<usize, NameError> {
    made.map(|name| name.as_ref().len())
}

#[test]
fn names_are_as_long_as_their_kind_allows() {
    let domain = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).unwrap();
        DomainName::new(text).map(|name| name.as_str().len())
    };
    let kinds: [(&str, usize, usize, Make); 11] = [
        ("key", 1, KEY_BYTES_MAX, |b| length(Key::new(b))),
        ("guard", 0, KEY_BYTES_MAX, |b| length(Guard::new(b))),
        ("prefix", 0, KEY_BYTES_MAX, |b| length(Prefix::new(b))),
        ("holder", 1, HOLDER_BYTES_MAX, |b| length(Holder::new(b))),
        ("identity", 1, IDENTITY_BYTES_MAX, |b| {
            length(Identity::new(b))
        }),
        ("intent", 1, 256, |b| length(IntentId::new(b))),
        ("owner", 1, 256, |b| length(Owner::new(b))),
        ("name of an input", 1, 256, |b| length(InputName::new(b))),
        ("configuration", 1, 256, |b| length(Configuration::new(b))),
        ("value", 0, VALUE_BYTES_MAX, |b| length(Value::new(b))),
        ("domain name", 1, DOMAIN_NAME_BYTES_MAX, domain),
    ];
    for (what, min, max, make) in kinds {
        for bytes in [0, 1, max - 1, max, max + 1] {
            let wanted = match bytes {
                _ if bytes < min => Err(NameError::Empty { what }),
                _ if bytes > max => Err(NameError::TooLong { what, bytes, max }),
                _ => Ok(bytes),
            };
            assert_eq!(make(&vec![b'a'; bytes]), wanted, "{what}");
        }
    }
}

#[test]
fn a_domain_name_has_letters_digits_and_three_marks() {
    for byte in 0..=0x7F_u8 {
        let allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
        let name = format!("ab{}", char::from(byte));
        let wanted = if allowed.contains(char::from(byte)) {
            Ok(name.clone())
        } else {
            Err(NameError::Character { at: 2 })
        };
        let made = DomainName::new(&name).map(|made| made.as_str().to_owned());
        assert_eq!(made, wanted);
    }
}

#[test]
fn metadata_is_as_large_as_allowed() {
    let text = |bytes: usize| "t".repeat(bytes);
    for bytes in [0, CONTENT_TYPE_BYTES_MAX, CONTENT_TYPE_BYTES_MAX + 1] {
        let made = Metadata::default().with_content_type(&text(bytes));
        let wanted = match bytes {
            0..=256 => Ok(bytes),
            _ => Err(MetadataError::ContentType { bytes }),
        };
        assert_eq!(made.map(|m| m.bytes()), wanted);
    }
    for bytes in [0, 1, LABEL_NAME_BYTES_MAX, LABEL_NAME_BYTES_MAX + 1] {
        let made = Metadata::default().with_label(&text(bytes), "v");
        let wanted = match bytes {
            1..=128 => Ok(bytes + 1),
            _ => Err(MetadataError::LabelName { bytes }),
        };
        assert_eq!(made.map(|m| m.bytes()), wanted);
    }
    for bytes in [0, LABEL_VALUE_BYTES_MAX, LABEL_VALUE_BYTES_MAX + 1] {
        let made = Metadata::default().with_label("n", &text(bytes));
        let wanted = match bytes {
            0..=1_024 => Ok(bytes + 1),
            _ => Err(MetadataError::LabelValue { bytes }),
        };
        assert_eq!(made.map(|m| m.bytes()), wanted);
    }
    let mut full = Metadata::default();
    for number in 0..LABELS_MAX {
        full = full.with_label(&format!("n{number}"), "").unwrap();
    }
    assert_eq!(full.labels().len(), 64);
    let twice = full.clone().with_label("n5", "x");
    assert_eq!(twice, Err(MetadataError::DuplicateLabel));
    let more = full.with_label("more", "");
    assert_eq!(more, Err(MetadataError::TooManyLabels));
}

fn open(value_bytes: usize) -> Twin {
    let rules = Rules {
        guard: GuardRule::Domain,
        admission: Admission::Open,
        binding: HolderBinding::None,
        step: Some(5),
    };
    Twin::with_values(rules, value_bytes)
}

fn named(count: usize) -> Vec<Change> {
    (0..count).map(|n| put(&format!("k{n:04}"), "")).collect()
}

#[test]
fn a_commit_has_at_most_its_number_of_parts() {
    let mut twin = open(VALUE_MAX);
    for count in [MUTATIONS_MAX - 1, MUTATIONS_MAX, MUTATIONS_MAX + 1] {
        assert_eq!(twin.step(&request(named(count))), count <= 1_024);
    }
    for count in [CONDITIONS_MAX - 1, CONDITIONS_MAX, CONDITIONS_MAX + 1] {
        let mut request = request(named(1));
        let absent = Cond::GenerationIs(b"absent".to_vec(), 0);
        request.conds = vec![absent; count];
        assert_eq!(twin.step(&request), count <= 1_024);
    }
}

#[test]
fn a_value_is_as_long_as_configured() {
    for max in [0, 1, VALUE_MAX] {
        let mut twin = open(max);
        for bytes in [max.saturating_sub(1), max, max + 1] {
            let value = "v".repeat(bytes);
            assert_eq!(twin.step(&request(vec![put("k", &value)])), bytes <= max);
        }
    }
}

/// Keys, values and metadata count, of every kind of mutation that has them.
#[test]
fn a_commit_is_at_most_as_large_as_allowed() {
    let twin = open(1 << 20);
    for (fixed, metadata) in [(16 + 1, 0), (16 + 1, 200)] {
        for (spare, accepted) in [(1, true), (0, true), (-1_i64, false)] {
            let mut left = (16 << 20) - fixed - i64::try_from(metadata).unwrap() - spare;
            let mut changes = vec![crate::raw::delete("z")];
            for name in "abcdefghijklmnop".chars() {
                let bytes = left.min(1 << 20);
                left -= bytes;
                let value = vec![b'v'; usize::try_from(bytes).unwrap()];
                let text = if name == 'a' {
                    "t".repeat(metadata)
                } else {
                    String::new()
                };
                changes.push(Change::Put(vec![name as u8], value, text));
            }
            assert_eq!(left, 0);
            let verdict = twin.judge(&request(changes));
            let got = matches!(verdict, highwater_core::Verdict::Accepted(_));
            assert_eq!(got, accepted, "{metadata} {spare}");
        }
    }
}

#[test]
fn a_step_is_as_wide_as_the_policy_allows() {
    for (sequence, accepted) in [(14, true), (15, true), (16, false)] {
        let mut twin = open(VALUE_MAX);
        let by = |sequence| request(vec![advance("")]).under(auth(1, MARK, sequence, "a"));
        assert!(twin.step(&by(10)), "the first term may be any");
        assert_eq!(twin.step(&by(sequence)), accepted);
    }
}
