//! The clock that leases lapse by: spans, openings and what is noted.

use highwater_core::{LeaseClock, Policy, Reason, Revision, Unavailable, advance_clock};

use crate::leases::state;

/// A span begins anew at the first opening in it, once; what is over stays over.
#[test]
fn an_opening_gives_the_whole_span_again_once() {
    let clock = |openings: &[u64]| LeaseClock {
        now_ms: 0,
        openings: openings.into(),
    };
    for (openings, end) in [
        (vec![], 150),
        (vec![50], 150),
        (vec![51], 151),
        (vec![10, 60, 140], 160),
        (vec![150], 250),
        (vec![151], 150),
        (vec![151, 152], 150),
    ] {
        assert_eq!(clock(&openings).end_ms(50, 100), end, "{openings:?}");
    }
    assert_eq!(clock(&[]).end_ms(u64::MAX - 1, 100), u64::MAX);
    assert_eq!(clock(&[u64::MAX]).end_ms(u64::MAX - 1, 100), u64::MAX);
}

/// Openings are bounded, and forgetting one never brings back what has lapsed.
#[test]
fn openings_are_bounded_and_forgotten_when_they_decide_nothing() {
    let week = 7 * 24 * 3_600_000;
    let mut clock = LeaseClock::default();
    for opening in 1..=4_100_u64 {
        clock.open(opening * 10);
    }
    assert_eq!(clock.openings.len(), 4_096);
    assert_eq!(
        (clock.openings.last(), clock.now_ms),
        (Some(&40_960), 41_000)
    );
    let spans: Vec<(u64, u64)> = [0, 5, 10, 11, 40_955, 40_970]
        .into_iter()
        .flat_map(|began| [(began, 100), (began, week)])
        .collect();
    let lapsed = |clock: &LeaseClock| -> Vec<bool> {
        let over = |(began, span): &(u64, u64)| clock.end_ms(*began, *span) <= clock.now_ms;
        spans.iter().map(over).collect()
    };
    clock.advance(4 * week + 10_005);
    let before = lapsed(&clock);
    let now = clock.now_ms;
    clock.open(now);
    assert_eq!(clock.openings.first(), Some(&10_010));
    assert_eq!(clock.openings.last(), Some(&now));
    assert_eq!(lapsed(&clock), before);
    assert!(before.iter().all(|over| *over));
    clock.advance(3);
    assert_eq!(clock.now_ms, now, "it never falls");
}

/// The clock's own effect takes a revision, and says what it shows.
#[test]
fn noting_the_clock_is_judged_too() {
    let mut state = state(Policy::default());
    let last = state.destination().revision;
    state.set_lease_clock(70);
    state.note_clock().unwrap();
    state.set_lease_clock(90);
    state.reopen().unwrap();
    let clock = state.lease_clock();
    assert_eq!((clock.now_ms, &*clock.openings), (71, &[71][..]));
    assert_eq!(state.destination().revision.get(), last.get() + 2);
    let mut view = highwater_core::View::new(*state.destination(), None);
    let reason = |view: &highwater_core::View| advance_clock(view, true).unwrap_err().reason;
    let incomplete = Reason::Unavailable(Unavailable::Incomplete);
    assert_eq!(reason(&view), incomplete, "nobody read the clock");
    let mut end = clock.clone();
    end.now_ms = u64::MAX;
    view.lease_clock = Some(end);
    assert_eq!(reason(&view), incomplete, "the clock is at its end");
    view.lease_clock = Some(clock);
    view.destination.revision = Revision::new((3 << 48) - 1).unwrap();
    assert_eq!(reason(&view), Reason::RevisionExhausted);
}
