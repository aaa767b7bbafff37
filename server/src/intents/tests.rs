//! Filters and tokens of lists from both sides.

use highwater_core::{
    DestinationId, Ending, Incarnation, IncarnationMark, IncarnationNumber, Owner,
};

use super::*;

fn list(id: u8, mark: u64, domain: &str, filter: Filter) -> IntentList {
    let mark = IncarnationMark::new(mark);
    IntentList {
        destination: ExpectedDestination {
            id: DestinationId::new([id; 16]),
            incarnation: Incarnation::new(IncarnationNumber::FIRST, mark),
        },
        domain: DomainName::new(domain).unwrap(),
        filter,
        page_intents: 10,
        page_bytes: 1 << 20,
    }
}

fn due(before: u64) -> Filter {
    Filter::Indeterminate {
        due_before_ms: Some(before),
    }
}

const UNDUE: Filter = Filter::Indeterminate {
    due_before_ms: None,
};

#[test]
fn a_filter_holds_for_its_own_states_only() {
    let indeterminate = |review_at_ms| IntentState::Indeterminate {
        owner: Owner::new("o").unwrap(),
        review_at_ms,
    };
    let states = [
        IntentState::Open,
        indeterminate(6),
        indeterminate(7),
        IntentState::Ended(Ending::Completed),
        IntentState::Ended(Ending::Rejected),
    ];
    let held = |filter: Filter| states.each_ref().map(|state| filter.holds(state));
    assert_eq!(held(Filter::All), [true; 5]);
    assert_eq!(held(Filter::Open), [true, false, false, false, false]);
    assert_eq!(held(UNDUE), [false, true, true, false, false]);
    assert_eq!(held(due(7)), [false, true, false, false, false]);
    assert_eq!(held(due(0)), [false; 5]);
    assert_eq!(held(Filter::Ended), [false, false, false, true, true]);
}

#[test]
fn a_filter_is_stated_and_a_time_belongs_to_one_of_them() {
    let what = parts::FILTER;
    assert_eq!(Filter::read(0, None), Err(Malformed::Missing { what }));
    for (number, filter) in [(1, Filter::All), (2, Filter::Open), (4, Filter::Ended)] {
        assert_eq!(Filter::read(number, None), Ok(filter));
        let wrong = Filter::read(number, Some(0));
        assert_eq!(wrong, Err(Malformed::Number { what }));
    }
    assert_eq!(Filter::read(3, None), Ok(UNDUE));
    assert_eq!(Filter::read(3, Some(9)), Ok(due(9)));
    for unknown in [5, -1] {
        let wrong = Filter::read(unknown, None);
        assert_eq!(wrong, Err(Malformed::Number { what }));
    }
}

#[test]
fn a_token_holds_for_its_own_list_only() {
    let lists = [
        list(1, 1, "d", Filter::All),
        list(2, 1, "d", Filter::All),
        list(1, 2, "d", Filter::All),
        list(1, 1, "e", Filter::All),
        list(1, 1, "d", Filter::Open),
        list(1, 1, "d", UNDUE),
        list(1, 1, "d", due(0)),
        list(1, 1, "d", due(1)),
    ];
    let last = IntentId::new(b"i\xff").unwrap();
    for (at, of) in lists.iter().enumerate() {
        let token: Bytes = of.token(last.to_wire()).encode_to_vec().into();
        for (other, list) in lists.iter().enumerate() {
            let resumed = list.resume(token.clone());
            if at == other {
                assert_eq!(resumed, Ok(Some(last.clone())));
            } else if of.destination == list.destination {
                assert!(matches!(resumed, Err(Reason::Malformed(_))), "{at} {other}");
            } else {
                assert_eq!(resumed, Err(Reason::WrongDestination), "{at} {other}");
            }
        }
    }
}

#[test]
fn what_is_no_token_is_malformed() {
    let list = list(1, 1, "d", due(5));
    assert_eq!(list.resume(Bytes::new()), Ok(None));
    let last = IntentId::new("i").unwrap();
    let token: Bytes = list.token(last.to_wire()).encode_to_vec().into();
    for length in 1..token.len() {
        let cut = list.resume(token.slice(..length));
        assert!(matches!(cut, Err(Reason::Malformed(_))), "{length}");
    }
    let empty = list.token(Bytes::new()).encode_to_vec();
    let resumed = list.resume(empty.into());
    assert!(matches!(resumed, Err(Reason::Malformed(_))));
}
