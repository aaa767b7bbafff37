//! Intents on the wire: what is stored survives, and what is missing or wrong is refused by name.

use std::sync::Arc;

use highwater_core::{
    Binding, Commit, Ending, Input, IntentId, IntentRecord, IntentStep, Malformed, Mutation,
    NameError, Step, StepRecord, Work, limits,
};
use highwater_proto::convert::{FromWire, ToWire};
use highwater_proto::v1;
use highwater_proto::v1::mutation::Kind;

use crate::malformed::{missing, number};
use crate::round_trip::{assert_survives, receipt};
use crate::samples::{
    ENDINGS, extreme_authority, intent_id, intent_states, observed_intent, revision, summary, work,
};

fn step(number: u32) -> Step {
    Step::new(number).unwrap()
}

#[test]
fn what_is_stored_survives_whole_and_in_brief() {
    let record = |number| {
        let step = step(number);
        let mut receipt = receipt();
        receipt.intent = Some(IntentStep {
            id: intent_id(),
            step,
        });
        Arc::new(StepRecord {
            step,
            digest: highwater_core::Digest::new([7; 32]),
            receipt,
        })
    };
    let binding = Binding {
        work: work(),
        authority: extreme_authority(),
    };
    for state in intent_states() {
        for binding in [None, Some(Arc::new(binding.clone()))] {
            for steps in [0, 1, 64] {
                let stored = IntentRecord {
                    state: state.clone(),
                    binding: binding.clone(),
                    steps: (1..=steps).map(record).collect(),
                    changed_at: revision(u64::MAX),
                };
                assert_survives(&stored);
                let summary = stored.summary();
                assert_eq!(summary.steps.len(), stored.steps.len());
                assert_survives(&summary);
                assert_survives(&(intent_id(), summary));
            }
        }
    }
    assert_survives(&observed_intent(None));
    assert_survives(&observed_intent(Some(summary())));
}

fn commit(change: impl FnOnce(&mut v1::IntentUse)) -> Result<Commit, Malformed> {
    let domain = highwater_core::DomainName::new("d").unwrap();
    let mut wire = Commit::new(domain).for_intent(intent_id(), step(1));
    wire.mutations.push(Mutation::Delete {
        key: highwater_core::Key::new("k").unwrap(),
    });
    let mut wire = wire.to_wire();
    change(wire.intent.as_mut().unwrap());
    Commit::from_wire(wire)
}

#[test]
fn a_step_names_its_intent_and_its_number() {
    assert!(commit(|_| {}).is_ok_and(|commit| commit.intent.is_some()));
    assert_eq!(commit(|used| used.step = 0), number("step"));
    assert_eq!(commit(|used| used.step = 65), number("step"));
    assert_eq!(commit(|used| used.step = u32::MAX), number("step"));
    assert!(commit(|used| used.step = 64).is_ok());
    let id = |length: usize| commit(move |used| used.id = vec![0; length].into());
    let what = "intent";
    let empty = Malformed::Name(NameError::Empty { what });
    assert_eq!(id(0), Err(empty));
    assert!(id(256).is_ok());
    let (bytes, max) = (257, 256);
    let long = Malformed::Name(NameError::TooLong { what, bytes, max });
    assert_eq!(id(257), Err(long));
}

fn read(kind: Kind) -> Result<Mutation, Malformed> {
    Mutation::from_wire(v1::Mutation { kind: Some(kind) })
}

#[test]
fn an_end_is_stated_and_known() {
    let close = |ending| {
        read(Kind::CloseIntent(v1::CloseIntent {
            intent: "i".into(),
            guard: None,
            ending,
        }))
    };
    assert_eq!(close(0), missing("ending"));
    for (number, ending) in (1..).zip(ENDINGS) {
        let intent = IntentId::new("i").unwrap();
        let guard = None;
        let expected = Mutation::CloseIntent {
            intent,
            guard,
            ending,
        };
        assert_eq!(close(number), Ok(expected));
    }
    assert_eq!(close(5), number("ending"));
    assert_eq!(close(-1), number("ending"));
    assert_eq!(Ending::from_wire(i32::MAX), number("ending"));
}

#[test]
fn an_absent_guard_is_not_the_guard_without_a_name() {
    let close = |guard: Option<&'static [u8]>| {
        let ending = 1;
        let (intent, guard) = ("i".into(), guard.map(Into::into));
        read(Kind::CloseIntent(v1::CloseIntent {
            intent,
            guard,
            ending,
        }))
    };
    let (unbound, whole) = (close(None).unwrap(), close(Some(b"")).unwrap());
    assert_eq!(unbound.named_guard(), None);
    assert_eq!(
        whole.named_guard().map(|guard| guard.as_bytes()),
        Some(&b""[..])
    );
}

#[test]
fn a_suspension_states_owner_and_time() {
    let suspend = |owner: &'static str, review_at_ms| {
        read(Kind::SuspendIntent(v1::SuspendIntent {
            intent: "i".into(),
            guard: None,
            owner: owner.into(),
            review_at_ms,
        }))
    };
    assert!(suspend("o", Some(0)).is_ok());
    assert_eq!(suspend("o", None), missing("time of review"));
    let empty = Malformed::Name(NameError::Empty { what: "owner" });
    assert_eq!(suspend("", Some(0)), Err(empty));
}

#[test]
fn a_binding_states_its_work_and_every_input_of_it() {
    let intent = || bytes::Bytes::from_static(b"i");
    let bare = v1::BindIntent {
        intent: intent(),
        work: None,
    };
    assert_eq!(read(Kind::BindIntent(bare)), missing("work"));
    let with = |kind| {
        Work::from_wire(v1::Work {
            inputs: vec![v1::Input { kind }],
            ..v1::Work::default()
        })
    };
    assert_eq!(with(None), missing("input"));
    let key = |generation| {
        let key = intent();
        with(Some(v1::input::Kind::Key(v1::KeyInput { key, generation })))
    };
    assert_eq!(key(None), missing("generation"));
    assert_eq!(key(Some(1)), number("generation"));
    let absent = key(Some(0)).unwrap();
    let is_absent = |input: &Input| {
        matches!(
            input,
            Input::Key {
                generation: None,
                ..
            }
        )
    };
    assert!(absent.inputs.iter().all(is_absent));
    let named = |length: usize| {
        let (name, digest) = (intent(), vec![0; length].into());
        with(Some(v1::input::Kind::Named(v1::NamedInput {
            name,
            digest,
        })))
    };
    assert!(named(32).is_ok());
    assert_eq!(named(0), missing("digest"));
    assert_eq!(named(33), number("digest"));
}

#[test]
fn inputs_are_bounded_before_they_are_read() {
    let work = |inputs| {
        Work::from_wire(v1::Work {
            inputs: vec![v1::Input::default(); inputs],
            ..v1::Work::default()
        })
    };
    let (what, max) = ("inputs", limits::INPUTS_MAX);
    let count = max + 1;
    assert_eq!(work(count), Err(Malformed::TooMany { what, count, max }));
    // At the bound they are read, and then the empty one is what's wrong.
    assert_eq!(work(max), missing("input"));
}

#[test]
fn a_state_of_a_newer_destination_is_never_read_as_another() {
    let whole = observed_intent(Some(summary())).to_wire();
    let read = |state| {
        let mut wire = whole.clone();
        let found = wire.intent.as_mut().unwrap().found.as_mut().unwrap();
        found.state = state;
        highwater_core::Observed::from_wire(wire)
    };
    assert_eq!(read(None), missing("state of an intent"));
    let none = v1::IntentState { kind: None };
    assert_eq!(read(Some(none)), missing("state of an intent"));
    let kind = Some(v1::intent_state::Kind::Ended(5));
    assert_eq!(read(Some(v1::IntentState { kind })), number("ending"));
}
