//! What is missing or wrong is refused by name, and nothing is filled in.

use highwater_core::{
    Authority, Commit, Condition, ExpectedDestination, KeyRange, Malformed, Mutation, NameError,
    Policy, Rejection, limits,
};
use highwater_proto::convert::{FromWire, ToWire};
use highwater_proto::v1;

use crate::samples::{authority, rejections};

pub(crate) fn missing<T>(what: &'static str) -> Result<T, Malformed> {
    Err(Malformed::Missing { what })
}

pub(crate) fn number<T>(what: &'static str) -> Result<T, Malformed> {
    Err(Malformed::Number { what })
}

fn wire() -> v1::Authority {
    authority("1.0000000000000000/1@a").to_wire()
}

#[test]
fn an_authority_is_complete_or_refused() {
    let change = |change: &dyn Fn(&mut v1::Term, &mut v1::Epoch)| {
        let mut wire = wire();
        let mut term = wire.term.take().unwrap();
        let mut epoch = term.epoch.take().unwrap();
        change(&mut term, &mut epoch);
        term.epoch = Some(epoch);
        Authority::from_wire(v1::Authority {
            term: Some(term),
            ..wire
        })
    };
    assert!(change(&|_, _| {}).is_ok());
    assert_eq!(change(&|_, epoch| epoch.mark = None), missing("epoch mark"));
    assert_eq!(change(&|_, epoch| epoch.number = 0), number("epoch number"));
    assert_eq!(change(&|term, _| term.sequence = 0), number("sequence"));
    assert_eq!(
        change(&|term, _| term.sequence = u64::MAX),
        number("sequence")
    );
    assert!(change(&|term, _| term.sequence = u64::MAX - 1).is_ok());

    let mut half = wire();
    half.term.as_mut().unwrap().epoch = None;
    assert_eq!(Authority::from_wire(half), missing("epoch"));
    let (term, holder) = (None, wire().holder);
    assert_eq!(
        Authority::from_wire(v1::Authority { term, holder }),
        missing("term")
    );
    let empty = Malformed::Name(NameError::Empty { what: "holder" });
    let nobody = v1::Authority {
        holder: Vec::new().into(),
        ..wire()
    };
    assert_eq!(Authority::from_wire(nobody), Err(empty));
}

#[test]
fn a_destination_is_complete_or_refused() {
    let incarnation = |number, mark| Some(v1::Incarnation { number, mark });
    let read = |length, incarnation| {
        ExpectedDestination::from_wire(v1::Destination {
            id: vec![1; length].into(),
            incarnation,
        })
    };
    assert!(read(16, incarnation(1, Some(0))).is_ok());
    assert!(read(16, incarnation(65_535, Some(0))).is_ok());
    assert_eq!(read(0, incarnation(1, Some(0))), missing("destination id"));
    assert_eq!(read(15, incarnation(1, Some(0))), number("destination id"));
    assert_eq!(read(16, None), missing("incarnation"));
    assert_eq!(read(16, incarnation(1, None)), missing("incarnation mark"));
    assert_eq!(
        read(16, incarnation(0, Some(0))),
        number("incarnation number")
    );
    assert_eq!(
        read(16, incarnation(65_536, Some(0))),
        number("incarnation number")
    );
}

#[test]
fn an_absent_generation_is_not_zero() {
    let read = |generation| {
        let key = b"k".as_slice().into();
        let wire = v1::GenerationCondition { key, generation };
        Condition::from_wire(v1::Condition {
            kind: Some(v1::condition::Kind::GenerationIs(wire)),
        })
    };
    assert_eq!(read(None), missing("generation"));
    let absent = matches!(
        read(Some(0)),
        Ok(Condition::GenerationIs {
            generation: None,
            ..
        })
    );
    assert!(absent);
    // A number that no commit can have isn't read as "does not exist".
    assert_eq!(read(Some(1)), number("generation"));
}

#[test]
fn a_condition_or_mutation_of_no_known_kind_is_refused() {
    let none = v1::Condition { kind: None };
    assert_eq!(Condition::from_wire(none), missing("condition"));
    let none = v1::Mutation { kind: None };
    assert_eq!(Mutation::from_wire(none), missing("mutation"));
}

#[test]
fn a_digest_has_exactly_its_length() {
    let read = |length| {
        Condition::from_wire(v1::Condition {
            kind: Some(v1::condition::Kind::ValueDigestIs(v1::DigestCondition {
                key: b"k".as_slice().into(),
                digest: vec![0; length].into(),
            })),
        })
    };
    assert!(read(32).is_ok());
    assert_eq!(read(0), missing("digest"));
    assert_eq!(read(31), number("digest"));
    assert_eq!(read(33), number("digest"));
}

#[test]
fn lists_are_bounded_before_they_are_read() {
    let commit = |conditions, mutations| v1::Commit {
        domain: "d".into(),
        conditions: vec![v1::Condition { kind: None }; conditions],
        mutations: vec![v1::Mutation { kind: None }; mutations],
        ..v1::Commit::default()
    };
    let too_many = |what, max| {
        let count = max + 1;
        Err(Malformed::TooMany { what, count, max })
    };
    assert_eq!(
        Commit::from_wire(commit(limits::CONDITIONS_MAX + 1, 0)),
        too_many("conditions", limits::CONDITIONS_MAX)
    );
    assert_eq!(
        Commit::from_wire(commit(0, limits::MUTATIONS_MAX + 1)),
        too_many("mutations", limits::MUTATIONS_MAX)
    );
    // At the bound they are read, and then the empty item is what's wrong.
    let at_bound = Commit::from_wire(commit(0, limits::MUTATIONS_MAX));
    assert_eq!(at_bound, missing("mutation"));
}

#[test]
fn authorities_by_guard_that_name_none_are_refused() {
    let per_guard = v1::commit::Authority::PerGuard(v1::GuardAuthorities::default());
    let commit = v1::Commit {
        domain: "d".into(),
        authority: Some(per_guard),
        ..v1::Commit::default()
    };
    assert_eq!(Commit::from_wire(commit), missing("authority"));
}

#[test]
fn a_policy_states_every_setting() {
    let whole = v1::Policy {
        guard: Some(v1::policy::Guard::Key(v1::KeyGuard {})),
        admission: 1,
        holder_binding: 1,
        max_sequence_step: 0,
        terms: 1,
        strict: Some(false),
        grace_ms: 0,
    };
    assert_eq!(Policy::from_wire(whole), Ok(Policy::default()));
    let read = |change: &dyn Fn(&mut v1::Policy)| {
        let mut policy = whole;
        change(&mut policy);
        Policy::from_wire(policy)
    };
    assert_eq!(read(&|policy| policy.guard = None), missing("guard rule"));
    assert_eq!(read(&|policy| policy.admission = 0), missing("admission"));
    assert_eq!(read(&|policy| policy.admission = 4), number("admission"));
    assert_eq!(
        read(&|policy| policy.holder_binding = 0),
        missing("holder binding")
    );
    assert_eq!(
        read(&|policy| policy.holder_binding = -1),
        number("holder binding")
    );
    assert_eq!(read(&|policy| policy.terms = 0), missing("terms"));
    assert_eq!(read(&|policy| policy.terms = 3), number("terms"));
    assert_eq!(read(&|policy| policy.strict = None), missing("strict"));
    let grace = |grace_ms| read(&move |policy: &mut v1::Policy| policy.grace_ms = grace_ms);
    assert_eq!(
        grace(limits::GRACE_MS_MAX).unwrap().grace_ms(),
        limits::GRACE_MS_MAX
    );
    assert!(matches!(
        grace(limits::GRACE_MS_MAX + 1),
        Err(Malformed::Policy(_))
    ));
    let prefix = |delimiter, depth| {
        let guard = v1::policy::Guard::Prefix(v1::PrefixGuard { delimiter, depth });
        read(&move |policy: &mut v1::Policy| policy.guard = Some(guard))
    };
    assert!(prefix(Some(0), 1).is_ok());
    assert_eq!(prefix(None, 1), missing("delimiter"));
    assert_eq!(prefix(Some(256), 1), number("delimiter"));
    assert_eq!(prefix(Some(0), 256), number("guard depth"));
    assert!(matches!(prefix(Some(0), 0), Err(Malformed::Policy(_))));
    assert!(matches!(prefix(Some(0), 33), Err(Malformed::Policy(_))));
}

#[test]
fn ends_of_ranges_are_bounded() {
    let read = |start: usize, end: usize| {
        KeyRange::from_wire(v1::KeyRange {
            start: vec![1; start].into(),
            end: Some(vec![1; end].into()),
        })
    };
    assert!(read(1_024, 1_024).is_ok());
    assert!(matches!(
        read(1_025, 0),
        Err(Malformed::Name(NameError::TooLong { .. }))
    ));
    assert!(matches!(
        read(0, 1_025),
        Err(Malformed::Name(NameError::TooLong { .. }))
    ));
}

#[test]
fn a_reason_of_a_newer_destination_is_never_read_as_another() {
    for rejection in rejections() {
        let mut wire = rejection.to_wire();
        wire.code = 1_000;
        assert_eq!(Rejection::from_wire(wire.clone()), number("code"));
        wire.code = 0;
        assert_eq!(Rejection::from_wire(wire), missing("code"));
    }
}
