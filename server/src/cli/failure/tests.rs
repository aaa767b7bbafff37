//! What each answer means for a script.

use highwater::{
    Authority, Condition, IntentConflict, IntentState, Key, Malformed, NameError, Observed, Reason,
    Rejection, Unavailable,
};
use highwater_proto::status::{from_rejection, not_executed, watch_too_old};
use highwater_proto::v1;
use std::num::NonZeroU64;
use tonic::Code;

use super::*;
use crate::cli::input;

fn rejection(reason: Reason) -> Rejection {
    Rejection {
        reason,
        observed: Observed {
            destination: input::destination_id(&"01".repeat(16)).unwrap(),
            incarnation: input::incarnation("1.0000000000000007").unwrap(),
            revision: input::revision("281474976710657").unwrap(),
            epoch: None,
            guard: None,
            fence: None,
            key: None,
            generation: None,
            metageneration: None,
            changed_at: None,
            digest: None,
            intent: None,
            lease: None,
        },
    }
}

/// Every reason with its code, written down from the interface's description.
#[expect(clippy::too_many_lines, reason = "a table: one entry for each reason")]
fn table() -> Vec<(Reason, u8)> {
    let presented: Authority = input::authority("1.0000000000000009/41@a").unwrap();
    let one = NonZeroU64::MIN;
    let condition = Condition::GenerationIs {
        key: Key::new("k").unwrap(),
        generation: None,
    };
    let lost = |presented: Authority| {
        [
            Reason::StaleEpoch {
                presented: presented.clone(),
            },
            Reason::UnknownEpoch {
                presented: presented.clone(),
            },
            Reason::StaleTerm {
                presented: presented.clone(),
            },
            Reason::HolderConflict {
                presented: presented.clone(),
            },
            Reason::SequenceJump {
                presented: presented.clone(),
                step: one,
                max: one,
            },
            Reason::LeaseGone {
                lease: None,
                ended: None,
            },
            Reason::UnknownTerm {
                presented: presented.clone(),
            },
            Reason::NotLeased {
                presented,
                ended: None,
            },
            Reason::WrongDestination,
        ]
    };
    let unavailable = [
        Unavailable::Frozen,
        Unavailable::RecoveryRequired,
        Unavailable::Poisoned,
        Unavailable::Overloaded,
        Unavailable::DiskFull,
        Unavailable::Incomplete,
    ];
    let mut table = vec![
        (Reason::Malformed(Malformed::Empty), 2),
        (
            Reason::Malformed(Malformed::Name(NameError::Empty { what: "key" })),
            2,
        ),
        (Reason::AuthorityRequired, 2),
        (Reason::PreconditionRequired, 2),
        (
            Reason::ConditionFailed {
                index: Some(0),
                condition,
            },
            4,
        ),
        (
            Reason::TooOld {
                index: 0,
                remembers_since: input::revision("281474976710657").unwrap(),
            },
            4,
        ),
        (Reason::UnknownDomain, 1),
        (Reason::DomainExists, 1),
        (Reason::TooManyDomains, 1),
        (
            Reason::WrongHolder {
                presented: presented.clone(),
            },
            1,
        ),
        (Reason::RevisionExhausted, 1),
        (Reason::MetagenerationExhausted, 1),
        (Reason::IntentConflict(IntentConflict::Digest), 4),
        (
            Reason::IntentClosed {
                state: IntentState::Open,
                mutation: None,
            },
            4,
        ),
        (Reason::UnknownIntent, 4),
        (Reason::IntentExhausted { bytes: 9, max: 8 }, 1),
        (Reason::LeaseHeld { remaining_ms: 9 }, 4),
        (Reason::LeaseDelayed { remaining_ms: 9 }, 4),
        (Reason::SequenceExhausted, 1),
    ];
    table.extend(lost(presented).map(|reason| (reason, 3)));
    table.extend(unavailable.map(|reason| (Reason::Unavailable(reason), 5)));
    table
}

#[test]
fn every_reason_has_its_code_whatever_was_called() {
    for (reason, code) in table() {
        for effect in [Effect::Reads, Effect::Writes] {
            let status = from_rejection(&rejection(reason.clone()));
            let failure = Failure::of_status(status, effect);
            assert!(failure.rejection().is_some(), "{reason:?}");
            assert_eq!(failure.exit() as u8, code, "{reason:?}");
        }
    }
}

#[test]
fn a_bare_code_after_a_write_proves_nothing() {
    for code in 1..=16 {
        let code = Code::from(code);
        let exit = Failure::of_status(Status::new(code, "from a proxy"), Effect::Writes).exit();
        assert_eq!(exit, Exit::OutcomeUnknown, "{code:?}");
        let exit = Failure::of_status(Status::new(code, "from a proxy"), Effect::Reads).exit();
        assert_ne!(exit, Exit::OutcomeUnknown, "{code:?}");
        assert_ne!(exit, Exit::Accepted, "{code:?}");
    }
}

#[test]
fn a_write_that_the_server_did_not_look_at_can_be_repeated() {
    for (code, exit) in [
        (Code::ResourceExhausted, Exit::Unavailable),
        (Code::Unavailable, Exit::Unavailable),
        (Code::InvalidArgument, Exit::Usage),
    ] {
        let failure = Failure::of_status(not_executed(code, "not now"), Effect::Writes);
        assert_eq!(failure.exit(), exit);
    }
}

#[test]
fn silence_is_unknown_after_a_write_and_unavailable_after_a_read() {
    let unknown = Failure::of_timeout(Effect::Writes);
    assert_eq!(unknown.exit(), Exit::OutcomeUnknown);
    assert_eq!(unknown.kind(), "outcome_unknown");
    assert_eq!(Failure::of_timeout(Effect::Reads).exit(), Exit::Unavailable);
    let odd = Failure::of_answer(Malformed::Empty, Effect::Writes);
    assert_eq!(odd.exit(), Exit::OutcomeUnknown);
    assert_eq!(
        Failure::of_answer(Malformed::Empty, Effect::Reads).exit(),
        Exit::Other
    );
}

#[test]
fn a_watch_that_begins_too_early_says_where_it_can() {
    let detail = v1::WatchTooOld {
        requested: u64::MAX - 1,
        oldest: u64::MAX,
    };
    let after_write = Failure::of_status(watch_too_old(&detail), Effect::Writes);
    assert_eq!(
        after_write.exit(),
        Exit::OutcomeUnknown,
        "it says nothing of a write"
    );
    let failure = Failure::of_status(watch_too_old(&detail), Effect::Reads);
    assert_eq!(failure.kind(), "watch_too_old");
    assert!(failure.to_string().contains("18446744073709551615"));
}

#[test]
fn nobody_reading_is_no_error() {
    let closed = io::Error::from(io::ErrorKind::BrokenPipe);
    assert_eq!(Failure::from(closed).exit(), Exit::Accepted);
    let full = io::Error::from(io::ErrorKind::StorageFull);
    assert_eq!(Failure::from(full).exit(), Exit::Other);
}

#[test]
fn what_fails_behind_an_acceptance_does_not_take_it_back() {
    let revision = input::revision("281474976710657").unwrap();
    let full = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
    for after in [full, Failure::of_timeout(Effect::Reads)] {
        let failure = after.after_acceptance(revision);
        assert_eq!(failure.exit(), Exit::OutcomeUnknown);
        assert_eq!(failure.kind(), "untold");
        let said = failure.to_string();
        assert!(
            said.contains("accepted at revision 281474976710657"),
            "{said}"
        );
    }
    let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
    assert_eq!(closed.after_acceptance(revision).exit(), Exit::Accepted);
}
