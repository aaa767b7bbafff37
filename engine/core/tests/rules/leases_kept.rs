//! The invariants of leases: what a decision records passes, and one step beside it is named by
//! what it breaks.

use std::sync::Arc;

use highwater_core::codec::{decode_effect, encode_fence, encode_lease};
use highwater_core::{
    Authority, Effect, EndCause, Fence, Grant, Holder, Lease, LeaseEnd, LeaseId, LeaseRecord,
    Mutation, Policy, Sequence, State, Value, View, Violation, check_effect, check_lease,
};

use crate::leases::{acquire, grant, state};
use crate::raw;
use crate::twin::{START, name};

/// The revision of the effects that are checked.
const NEXT: u64 = START + 5;
/// The mark of the domain's epoch.
const MARK: u64 = 9;

/// "k" has been leased twice and is leased, "j" is leased and was written under 7.
fn world() -> State {
    let mut state = state(Policy::default());
    state.set_lease_clock(5);
    grant(&mut state, "k", "a");
    let replacing = Mutation::Acquire {
        guard: raw::guard(b"k"),
        holder: Holder::new("a").unwrap(),
        ttl: crate::leases::ttl(1_000),
        seal: false,
        supersede: true,
    };
    let _ = state.commit(&highwater_core::Commit::new(name()).with(replacing));
    let put = highwater_core::Commit::new(name()).put(raw::key(b"j"), Value::new("").unwrap());
    let _ = state.commit(&put.under(Authority::parse("1.0000000000000009/7@w").unwrap()));
    state.set_lease_clock(10);
    state
}

fn view(state: &State) -> View {
    let both = [acquire("j", "a", true), acquire("k", "a", true)];
    let commit = highwater_core::Commit::new(name());
    state.view(&both.into_iter().fold(commit, highwater_core::Commit::with))
}

fn stored(state: &State) -> LeaseRecord {
    let domain = state.domain(&name()).unwrap().id;
    LeaseRecord::clone(state.lease(domain, &raw::guard(b"k")).unwrap())
}

/// An effect that leaves these leases and raises this fence, judged by nobody: read from bytes.
fn effect(leases: &[(&str, LeaseRecord)], raised: Option<(&str, u64, &str)>) -> Effect {
    let mut out = vec![1];
    out.extend(NEXT.to_be_bytes());
    out.extend([4, 0, 0, 0, 1, 0, 0, 0, 0]);
    out.extend(u32::from(raised.is_some()).to_be_bytes());
    let named = |name: &str, out: &mut Vec<u8>| {
        out.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        out.extend(name.as_bytes());
    };
    if let Some((guard, sequence, holder)) = raised {
        named(guard, &mut out);
        let holder = Holder::new(holder).unwrap();
        let term = raw::term(1, MARK, sequence);
        encode_fence(&Fence { term, holder }, &mut out);
    }
    out.extend([0; 4]);
    out.extend(u32::try_from(leases.len()).unwrap().to_be_bytes());
    for (guard, record) in leases {
        named(guard, &mut out);
        encode_lease(record, &mut out);
    }
    decode_effect(&out).unwrap()
}

fn sequence(number: u64) -> Sequence {
    Sequence::new(number).unwrap()
}

/// A lease of this effect.
fn lease(number: u64, holder: &str) -> Lease {
    Lease {
        id: LeaseId::of(raw::revision(NEXT)),
        term: raw::term(1, MARK, number),
        holder: Holder::new(holder).unwrap(),
        ttl: crate::leases::ttl(100),
        renewed_at: raw::revision(NEXT),
        renewed_clock_ms: 10,
    }
}

fn edit(record: &mut LeaseRecord, change: impl FnOnce(&mut Lease)) {
    let mut lease = Lease::clone(record.current.as_ref().unwrap());
    change(&mut lease);
    record.current = Some(Arc::new(lease));
}

/// The record after a renewal.
fn renewed(mut record: LeaseRecord) -> LeaseRecord {
    record.changed_at = raw::revision(NEXT);
    edit(&mut record, |lease| {
        lease.renewed_at = raw::revision(NEXT);
        lease.renewed_clock_ms = 10;
    });
    record
}

/// The record after a release.
fn released(mut record: LeaseRecord) -> LeaseRecord {
    record.changed_at = raw::revision(NEXT);
    record.last_end = record.current.take().map(|lease| LeaseEnd {
        lease,
        cause: EndCause::Released,
        at: raw::revision(NEXT),
        clock_ms: 10,
    });
    record
}

/// The record after another grant, of this sequence.
fn granted(record: LeaseRecord, number: u64) -> LeaseRecord {
    let mut record = released(record);
    record.grants.push(Grant {
        sequence: sequence(number),
        holder: Holder::new("b").unwrap(),
    });
    record.current = Some(Arc::new(lease(number, "b")));
    record
}

/// The record after the first grant of a guard.
fn first(number: u64) -> LeaseRecord {
    LeaseRecord {
        epoch: raw::epoch(1, MARK),
        grants: vec![Grant {
            sequence: sequence(number),
            holder: Holder::new("b").unwrap(),
        }],
        current: Some(Arc::new(lease(number, "b"))),
        last_end: None,
        changed_at: raw::revision(NEXT),
    }
}

#[test]
fn what_follows_breaks_nothing() {
    let state = world();
    let (k, view) = (stored(&state), view(&state));
    let mut kept = granted(k.clone(), 3);
    kept.grants.remove(0);
    for (leases, raised) in [
        (vec![("k", renewed(k.clone()))], None),
        (vec![("k", released(k.clone()))], None),
        (vec![("k", granted(k.clone(), 3))], None),
        (vec![("k", granted(k, 9))], Some(("k", 9, "b"))),
        (vec![("k", kept)], None),
        (vec![("j", first(8))], Some(("j", 8, "b"))),
    ] {
        let effect = effect(&leases, raised);
        assert_eq!(check_effect(&view, &effect), Ok(()), "{effect:?}");
    }
}

/// Effects beside the sound ones, with the invariant that each breaks.
#[expect(
    clippy::too_many_lines,
    reason = "a table: one entry for each way to be unsound"
)]
pub(crate) fn unsound() -> Vec<(Effect, Violation)> {
    use Violation::{
        BadName, GrantsOutOfOrder, LeaseClockBehind, LeaseOutOfStep, LeaseReturned, TermNotAbove,
        UnknownRow,
    };
    let k = stored(&world());
    let with = |mut record: LeaseRecord, change: &dyn Fn(&mut LeaseRecord)| {
        change(&mut record);
        vec![("k", record)]
    };
    let (renewal, release) = (renewed(k.clone()), released(k.clone()));
    let grant = granted(k.clone(), 3);
    let last = |r: &mut LeaseRecord, change: &dyn Fn(&mut LeaseEnd)| {
        change(r.last_end.as_mut().unwrap());
    };
    let at = |number| raw::revision(START + number);
    let plain = vec![
        (
            with(renewal.clone(), &|r| r.epoch = raw::epoch(1, 8)),
            GrantsOutOfOrder,
        ),
        (
            with(renewal.clone(), &|r| r.epoch = raw::epoch(2, MARK)),
            GrantsOutOfOrder,
        ),
        (
            with(renewal.clone(), &|r| r.changed_at = at(6)),
            LeaseOutOfStep,
        ),
        (
            with(release.clone(), &|r| r.changed_at = at(4)),
            LeaseOutOfStep,
        ),
        (
            with(renewal.clone(), &|r| r.changed_at = at(4)),
            LeaseOutOfStep,
        ),
        (
            with(renewal.clone(), &|r| edit(r, |l| l.renewed_at = at(4))),
            LeaseOutOfStep,
        ),
        (
            with(renewal.clone(), &|r| edit(r, |l| l.renewed_clock_ms = 4)),
            LeaseOutOfStep,
        ),
        (
            with(renewal.clone(), &|r| edit(r, |l| l.renewed_clock_ms = 11)),
            LeaseClockBehind,
        ),
        (
            with(renewal.clone(), &|r| edit(r, |l| l.id = LeaseId::of(at(5)))),
            LeaseReturned,
        ),
        (
            with(renewal.clone(), &|r| edit(r, |l| l.id = LeaseId::of(at(2)))),
            LeaseReturned,
        ),
        (with(renewal.clone(), &|r| r.current = None), LeaseReturned),
        (
            with(renewal.clone(), &|r| {
                r.grants.remove(0);
            }),
            TermNotAbove,
        ),
        (
            with(release.clone(), &|r| last(r, &|e| e.at = at(4))),
            LeaseReturned,
        ),
        (
            with(release.clone(), &|r| last(r, &|e| e.clock_ms = 11)),
            LeaseClockBehind,
        ),
        (
            with(release.clone(), &|r| last(r, &|e| e.clock_ms = 4)),
            LeaseClockBehind,
        ),
        (
            with(release.clone(), &|r| {
                last(r, &|e| e.lease = Arc::new(lease(2, "a")))
            }),
            LeaseOutOfStep,
        ),
        (
            with(release, &|r| {
                r.grants.pop();
            }),
            TermNotAbove,
        ),
        (with(grant.clone(), &|r| r.last_end = None), LeaseReturned),
        (
            with(grant.clone(), &|r| edit(r, |l| l.renewed_clock_ms = 9)),
            LeaseOutOfStep,
        ),
        (
            with(grant.clone(), &|r| {
                r.grants.remove(1);
            }),
            TermNotAbove,
        ),
        (vec![("j", first(7))], TermNotAbove),
        (vec![("q", first(8))], UnknownRow),
        (vec![("", first(8))], BadName),
        (vec![("k", grant.clone()), ("j", first(8))], BadName),
        (vec![("k", grant.clone()), ("k", grant.clone())], BadName),
    ];
    let mut all: Vec<_> = plain
        .into_iter()
        .map(|(leases, violation)| (effect(&leases, None), violation))
        .collect();
    for raised in [("k", 4, "b"), ("k", 3, "a")] {
        all.push((effect(&[("k", grant.clone())], Some(raised)), TermNotAbove));
    }
    let renews = effect(&[("k", renewal)], Some(("k", 2, "a")));
    all.push((renews, TermNotAbove));
    all
}

#[test]
fn what_does_not_follow_is_named_by_what_it_breaks() {
    let view = view(&world());
    for (effect, violation) in unsound() {
        assert_eq!(check_effect(&view, &effect), Err(violation), "{effect:?}");
    }
}

/// What the encoding can't even say is refused all the same.
#[test]
fn a_stored_row_is_in_order() {
    let state = world();
    let domain = state.domain(&name()).unwrap();
    let record = granted(stored(&state), 3);
    let checked = |change: &dyn Fn(&mut LeaseRecord)| {
        let mut record = record.clone();
        change(&mut record);
        check_lease(domain, &record, raw::revision(NEXT))
    };
    assert_eq!(checked(&|_| {}), Ok(()));
    let wrong = Err(Violation::GrantsOutOfOrder);
    let other = |change: &dyn Fn(&mut Lease)| checked(&|r| edit(r, |lease| change(lease)));
    assert_eq!(other(&|l| l.term = raw::term(1, MARK, 2)), wrong);
    assert_eq!(other(&|l| l.term = raw::term(1, 8, 3)), wrong);
    assert_eq!(other(&|l| l.term = raw::term(2, MARK, 3)), wrong);
    assert_eq!(other(&|l| l.holder = Holder::new("a").unwrap()), wrong);
    assert_eq!(checked(&|r| r.grants.clear()), wrong);
    assert_eq!(checked(&|r| r.grants.swap(0, 1)), wrong);
    let many = |count: u64| {
        checked(&|r| {
            let grant = |number| Grant {
                sequence: sequence(number),
                holder: Holder::new("b").unwrap(),
            };
            r.grants = (1..=count).map(grant).collect();
            edit(r, |lease| lease.term.sequence = sequence(count));
        })
    };
    assert_eq!((many(8), many(9)), (Ok(()), wrong));
    let ended = record.last_end.as_ref().unwrap().lease.id;
    let returned = Err(Violation::LeaseReturned);
    assert_eq!(other(&|l| l.id = ended), returned);
    assert_eq!(
        other(&|l| l.id = LeaseId::of(raw::revision(START + 1))),
        returned
    );
    let out = Err(Violation::LeaseOutOfStep);
    assert_eq!(other(&|l| l.renewed_at = raw::revision(NEXT - 1)), out);
    assert_eq!(other(&|l| l.renewed_at = raw::revision(NEXT + 1)), out);
    assert_eq!(
        checked(&|r| r.last_end.as_mut().unwrap().at = raw::revision(NEXT + 1)),
        out
    );
}

/// I19, for the clock's own effect.
#[test]
fn the_lease_clock_never_falls() {
    let state = world();
    let view = view(&state);
    let noted = |now_ms: u64, opened: u8| {
        let mut out = vec![1];
        out.extend(NEXT.to_be_bytes());
        out.push(5);
        out.extend(now_ms.to_be_bytes());
        out.push(opened);
        check_effect(&view, &decode_effect(&out).unwrap())
    };
    let behind = Err(Violation::LeaseClockBehind);
    assert_eq!((noted(9, 0), noted(10, 0)), (behind, Ok(())));
    assert_eq!((noted(10, 1), noted(11, 1)), (behind, Ok(())));
    let mut unread = view.clone();
    unread.lease_clock = None;
    let effect = effect(&[("k", renewed(stored(&state)))], None);
    assert_eq!(check_effect(&unread, &effect), Err(Violation::UnknownRow));
}
