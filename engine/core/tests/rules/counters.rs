//! Counters at their ends: they refuse, they never wrap.

use highwater_core::codec::decode_effect;
use highwater_core::{
    Admission, CreateDomain, DestinationId, DomainId, DomainName, EpochMark, EpochNumber,
    Generation, GuardRule, HolderBinding, IncarnationNumber, Limits, Metageneration, Policy,
    Reason, Revision, Sequence, State,
};

use crate::oracle::{Row, Rules};
use crate::raw::{auth, delete, incarnation, label, put, request};
use crate::twin::{MARK, Twin};

/// The last revision of incarnation 2.
pub(crate) const END: u64 = (3 << 48) - 1;

fn open() -> Twin {
    Twin::new(Rules {
        guard: GuardRule::Key,
        admission: Admission::Open,
        binding: HolderBinding::None,
        step: Some(u64::MAX - 3),
    })
}

/// An effect of domain 1 at this revision on one key: its deletion, or a record whose
/// metageneration is given. Written byte by byte, for states that take too long to reach.
fn effect_at(revision: u64, key: u8, metageneration: Option<u64>) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend(revision.to_be_bytes());
    bytes.extend([3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, key]);
    if let Some(metageneration) = metageneration {
        bytes.push(1);
        bytes.extend((revision - 1).to_be_bytes());
        bytes.extend(metageneration.to_be_bytes());
        bytes.extend(revision.to_be_bytes());
        // No term, no content type, no labels, an empty value.
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0]);
    } else {
        bytes.push(0);
    }
    bytes.extend([0, 0, 0, 0]);
    bytes
}

/// Moves a twin to a late revision, by the deletion of a key.
pub(crate) fn age(twin: &mut Twin, revision: u64, key: u8) {
    let bytes = effect_at(revision, key, None);
    twin.state.apply(&decode_effect(&bytes).unwrap());
    twin.model.revision = revision;
}

/// Puts a key whose metadata changed as often as this into a twin.
pub(crate) fn wear_out(twin: &mut Twin, key: u8, metageneration: u64) {
    let revision = twin.model.revision + 2;
    let bytes = effect_at(revision, key, Some(metageneration));
    twin.state.apply(&decode_effect(&bytes).unwrap());
    twin.model.revision = revision;
    let row = Row {
        generation: revision - 1,
        metageneration,
        changed: revision,
        under: None,
        value: Vec::new(),
        text: String::new(),
    };
    twin.model.rows.insert(vec![key], row);
    twin.model.history.push((revision, vec![key]));
    twin.compare();
}

#[test]
fn zero_and_what_is_never_valid_make_no_counter() {
    assert!(EpochNumber::new(0).is_none() && Metageneration::new(0).is_none());
    assert!(IncarnationNumber::new(0).is_none() && DomainId::new(0).is_none());
    assert!(Sequence::new(0).is_none() && Sequence::new(u64::MAX).is_none());
    assert_eq!(Sequence::new(u64::MAX - 1).unwrap().get(), u64::MAX - 1);
    assert_eq!(Sequence::new(1).unwrap().get(), 1);
    for raw in [0, 1, (1 << 48) - 1] {
        assert!(Revision::new(raw).is_none() && Generation::new(raw).is_none());
    }
    for raw in [1 << 48, u64::MAX] {
        assert_eq!(Revision::new(raw).unwrap().get(), raw);
        assert_eq!(Generation::new(raw).unwrap().revision().get(), raw);
    }
}

#[test]
fn the_next_one_is_one_more_or_nothing() {
    assert_eq!(EpochNumber::FIRST.next().map(EpochNumber::get), Some(2));
    assert!(EpochNumber::new(u64::MAX).unwrap().next().is_none());
    assert_eq!(Metageneration::FIRST.get(), 1);
    assert!(Metageneration::new(u64::MAX).unwrap().next().is_none());
    let last = Metageneration::new(u64::MAX - 1).unwrap();
    assert_eq!(last.next().map(Metageneration::get), Some(u64::MAX));
    assert!(IncarnationNumber::new(u16::MAX).unwrap().next().is_none());
    assert!(DomainId::new(u32::MAX).unwrap().next().is_none());
}

#[test]
fn a_revision_never_leaves_its_incarnation() {
    for number in [1, 2, 0x7FFF, u16::MAX] {
        let incarnation = IncarnationNumber::new(number).unwrap();
        let start = Revision::start(incarnation);
        assert_eq!(start.get(), u64::from(number) << 48);
        assert_eq!(
            (start.counter(), start.incarnation()),
            (0, Some(incarnation))
        );
        let end = Revision::new(start.get() + ((1 << 48) - 1)).unwrap();
        assert_eq!(end.counter(), (1 << 48) - 1);
        assert_eq!(end.incarnation(), Some(incarnation));
        assert!(end.next().is_none());
        let before = Revision::new(end.get() - 1).unwrap();
        assert_eq!(before.next(), Some(end));
    }
}

#[test]
fn at_its_last_revision_a_destination_refuses_every_effect() {
    let mut twin = open();
    age(&mut twin, END - 1, b'z');
    assert!(
        twin.step(&request(vec![put("k", "1")])),
        "the last revision is used"
    );
    for changes in [
        vec![put("k", "2")],
        vec![delete("k")],
        vec![label("k", "t")],
    ] {
        assert!(!twin.step(&request(changes)));
    }
    let other = DomainName::new("other").unwrap();
    let create = CreateDomain::new(other, Policy::default(), EpochMark::new(1));
    let refused = twin.state.create_domain(&create).unwrap_err();
    assert_eq!(refused.reason, Reason::RevisionExhausted);
}

#[test]
fn at_its_last_metageneration_a_key_refuses_metadata_and_takes_a_value() {
    let mut twin = open();
    wear_out(&mut twin, b'k', u64::MAX - 1);
    assert!(twin.step(&request(vec![label("k", "last")])));
    assert!(!twin.step(&request(vec![label("k", "more")])));
    assert!(!twin.step(&request(vec![put("j", "1"), label("k", "more")])));
    assert!(twin.step(&request(vec![put("k", "1")])));
    assert!(twin.step(&request(vec![label("k", "first")])));
}

/// The highest sequence is a fence like any other: its holder goes on, nobody else comes by.
#[test]
fn the_highest_sequence_is_final() {
    let mut twin = open();
    let by = |sequence, holder: &str| {
        request(vec![put("k", "1")]).under(auth(1, MARK, sequence, holder))
    };
    assert!(twin.step(&by(1, "a")));
    assert!(!twin.step(&by(u64::MAX - 1, "b")), "one step too far");
    assert!(twin.step(&by(2, "b")));
    assert!(twin.step(&by(u64::MAX - 1, "b")));
    assert!(twin.step(&by(u64::MAX - 1, "b")));
    assert!(!twin.step(&by(u64::MAX - 1, "c")));
    assert!(!twin.step(&by(u64::MAX - 2, "b")));
    twin.new_epoch(0x22);
    let fresh = request(vec![put("k", "1")]).under(auth(2, 0x22, 1, "c"));
    assert!(twin.step(&fresh), "only a new epoch starts again");
}

/// Domains are numbered from 1 to the limit; the next one is refused.
#[test]
fn a_destination_has_at_most_its_limit_of_domains() {
    let here = incarnation(1, 1);
    let mut state = State::new(DestinationId::new([1; 16]), here, Limits::default());
    let create = |number: u32| {
        let name = DomainName::new(&format!("domain-{number}")).unwrap();
        CreateDomain::new(name, Policy::default(), EpochMark::new(u64::from(number)))
    };
    for number in 1..=1_024 {
        let domain = state.create_domain(&create(number)).unwrap();
        assert_eq!(domain.id.get(), number);
    }
    let refused = state.create_domain(&create(1_025)).unwrap_err();
    assert_eq!(refused.reason, Reason::TooManyDomains);
    let refused = state.create_domain(&create(1_024)).unwrap_err();
    assert_eq!(refused.reason, Reason::DomainExists);
}
