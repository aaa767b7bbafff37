//! Leases, rule by rule: what the oracle's worlds don't reach.

use highwater_core::{
    Admission, Authorities, Authority, Availability, Commit, Condition, CreateDomain,
    DestinationId, EndCause, EpochMark, Fence, Footprint, Holder, HolderBinding, Identity,
    IntentId, LeaseId, Limits, Malformed, Mutation, Owner, Policy, Reason, Receipt, Rejection,
    State, Step, Terms, Ttl, Unavailable, Value, Verdict, Work, check_effect, decide,
};

use crate::raw;
use crate::twin::name;

pub(crate) fn ttl(milliseconds: u64) -> Ttl {
    Ttl::new(milliseconds).unwrap()
}

pub(crate) fn acquire(guard: &str, holder: &str, seal: bool) -> Mutation {
    Mutation::Acquire {
        guard: raw::guard(guard.as_bytes()),
        holder: Holder::new(holder).unwrap(),
        ttl: ttl(1_000),
        seal,
        supersede: false,
    }
}

pub(crate) fn renew(guard: &str, lease: LeaseId) -> Mutation {
    let guard = raw::guard(guard.as_bytes());
    let ttl = None;
    Mutation::Renew { guard, lease, ttl }
}

pub(crate) fn release(guard: &str, lease: LeaseId) -> Mutation {
    let guard = raw::guard(guard.as_bytes());
    Mutation::Release { guard, lease }
}

pub(crate) fn revoke(guard: &str) -> Mutation {
    Mutation::Revoke {
        guard: raw::guard(guard.as_bytes()),
        lease: None,
        by: Owner::new("ops").unwrap(),
    }
}

pub(crate) fn expire(guard: &str, lease: LeaseId) -> Mutation {
    let guard = raw::guard(guard.as_bytes());
    Mutation::Expire { guard, lease }
}

pub(crate) fn commit(mutations: impl IntoIterator<Item = Mutation>) -> Commit {
    mutations
        .into_iter()
        .fold(Commit::new(name()), Commit::with)
}

fn put(key: &str) -> Commit {
    Commit::new(name()).put(raw::key(key.as_bytes()), Value::new("v").unwrap())
}

pub(crate) fn state(policy: Policy) -> State {
    let incarnation = raw::incarnation(2, 7);
    let state = State::new(DestinationId::new([1; 16]), incarnation, Limits::default());
    let mut state = state.with_digest(raw::digest);
    let create = CreateDomain::new(name(), policy, EpochMark::new(9));
    state.create_domain(&create).unwrap();
    state
}

fn accept(state: &mut State, commit: &Commit) -> Receipt {
    let view = state.view(commit);
    match state.commit(commit) {
        Verdict::Accepted(accepted) => {
            assert_eq!(check_effect(&view, &accepted.effect), Ok(()));
            state.check().unwrap();
            accepted.receipt
        }
        other => panic!("{commit:?}: {other:?}"),
    }
}

fn refuse(state: &State, commit: &Commit) -> Box<Rejection> {
    match state.judge(commit) {
        Verdict::Rejected(rejection) => rejection,
        other => panic!("{commit:?}: {other:?}"),
    }
}

/// Grants a lease: its id and authority.
pub(crate) fn grant(state: &mut State, guard: &str, holder: &str) -> (LeaseId, Authority) {
    let receipt = accept(state, &commit([acquire(guard, holder, false)]));
    let leased = &receipt.leases[0];
    assert_eq!(leased.lease.id.revision(), receipt.revision);
    (leased.lease.id, leased.lease.authority())
}

#[test]
fn a_time_to_live_is_within_its_bounds_and_never_rounded() {
    for (milliseconds, fits) in [(0, false), (99, false), (100, true), (604_800_000, true)] {
        let made = Ttl::new(milliseconds).map(Ttl::get);
        assert_eq!(made, fits.then_some(milliseconds));
    }
    for wide in [604_800_001, u64::MAX] {
        assert_eq!(Ttl::new(wide), None);
        assert!(Policy::default().with_grace_ms(wide).is_err());
    }
    assert!(Policy::default().with_grace_ms(604_800_000).is_ok());
}

/// R1: one mutation for a guard whose lease changes, of whatever kind the other is.
#[test]
fn a_leased_guard_is_changed_by_nothing_else_in_its_commit() {
    let mut state = state(Policy::default());
    let (lease, authority) = grant(&mut state, "k", "a");
    let twice = |reason: &Reason| {
        let guard = raw::guard(b"k");
        assert_eq!(*reason, Reason::Malformed(Malformed::DuplicateGuard(guard)));
    };
    let pairs = [
        commit([renew("k", lease), release("k", lease)]),
        commit([revoke("k"), acquire("k", "b", true)]),
        put("k").with(renew("k", lease)),
        commit([
            Mutation::Advance {
                guard: raw::guard(b"k"),
            },
            expire("k", lease),
        ]),
        commit([acquire("k", "b", false)]).with(Mutation::CloseIntent {
            intent: IntentId::new("i").unwrap(),
            guard: Some(raw::guard(b"k")),
            ending: highwater_core::Ending::Cancelled,
        }),
    ];
    for commit in pairs {
        twice(&refuse(&state, &commit.under(authority.clone())).reason);
    }
    let other = put("j").under(authority).with(acquire("n", "b", false));
    accept(&mut state, &other);
    let many = |count: u32| commit((0..count).map(|n| acquire(&format!("m{n}"), "a", true)));
    let max = 64;
    let (what, count) = ("mutations of leases", 65);
    let too_many = Malformed::TooMany { what, count, max };
    assert_eq!(
        refuse(&state, &many(65)).reason,
        Reason::Malformed(too_many)
    );
    let receipt = accept(&mut state, &many(64));
    assert_eq!((receipt.leases.len(), receipt.guards.len()), (64, 64));
}

#[test]
fn a_guard_of_a_lease_is_a_guard_of_the_policy() {
    let state = state(Policy::default());
    let lease = LeaseId::new(u64::MAX).unwrap();
    let strange = raw::guard(b"");
    for mutation in [acquire("", "a", true), revoke(""), expire("", lease)] {
        let reason = refuse(&state, &commit([mutation])).reason;
        let expected = Malformed::NoSuchGuard(strange.clone());
        assert_eq!(reason, Reason::Malformed(expected));
    }
}

/// An authority is for what is written: an acquisition presents none, not even one for all guards.
#[test]
fn an_acquisition_presents_no_authority() {
    let mut state = state(Policy::default());
    let stale = Authority::parse("1.0000000000000009/7@w").unwrap();
    accept(&mut state, &put("k").under(stale.clone()));
    let newer = Authority::parse("1.0000000000000009/8@w").unwrap();
    accept(&mut state, &put("k").under(newer));
    let mixed = put("j").under(stale.clone()).with(acquire("k", "a", true));
    let receipt = accept(&mut state, &mixed);
    assert_eq!(receipt.leases[0].lease.term.sequence.get(), 9);
    let mut named = commit([acquire("n", "a", true)]);
    named.authority = Authorities::PerGuard(vec![(raw::guard(b"n"), stale)]);
    let stray = Malformed::UntouchedGuard(raw::guard(b"n"));
    assert_eq!(refuse(&state, &named).reason, Reason::Malformed(stray));
}

/// R5, R6, R7: letting go and renewing are for the holder, in every domain.
#[test]
fn renewal_and_release_need_the_authority_of_the_lease() {
    let open = Policy::default().with_admission(Admission::Open);
    let mut state = state(open);
    let (lease, authority) = grant(&mut state, "k", "a");
    for mutation in [renew("k", lease), release("k", lease)] {
        let bare = commit([mutation.clone()]);
        assert_eq!(refuse(&state, &bare).reason, Reason::AuthorityRequired);
        let strange = Authority::parse("2.0000000000000009/1@a").unwrap();
        let reason = refuse(&state, &bare.clone().under(strange)).reason;
        assert!(matches!(reason, Reason::UnknownEpoch { .. }), "{reason:?}");
        let other = Authority::parse("1.0000000000000009/1@b").unwrap();
        let reason = refuse(&state, &bare.under(other)).reason;
        let (lease, ended) = (Some(lease), None);
        assert_eq!(reason, Reason::LeaseGone { lease, ended });
    }
    let newer = Authority::parse("1.0000000000000009/5@w").unwrap();
    accept(&mut state, &put("k").under(newer));
    let renewal = commit([renew("k", lease)]).under(authority.clone());
    let reason = refuse(&state, &renewal).reason;
    assert!(matches!(reason, Reason::StaleTerm { .. }), "{reason:?}");
    let receipt = accept(&mut state, &commit([release("k", lease)]).under(authority));
    assert_eq!(receipt.leases[0].ended, Some(EndCause::Released));
    assert!(receipt.guards.is_empty(), "the fence stays");
}

/// R8: a lease is changed by its own id alone; what became of another isn't told of it.
#[test]
fn a_lease_of_before_isnt_the_one_of_now() {
    let mut state = state(Policy::default());
    let (first, _) = grant(&mut state, "k", "a");
    accept(&mut state, &commit([revoke("k")]));
    let (second, authority) = grant(&mut state, "k", "a");
    let revoking = |id: LeaseId| Mutation::Revoke {
        guard: raw::guard(b"k"),
        lease: Some(id),
        by: Owner::new("ops").unwrap(),
    };
    let of = |id: LeaseId| {
        [
            commit([renew("k", id)]).under(authority.clone()),
            commit([release("k", id)]).under(authority.clone()),
            commit([revoking(id)]),
            commit([expire("k", id)]),
        ]
    };
    let gone = |state: &State, id: LeaseId, cause: Option<EndCause>| {
        for commit in of(id) {
            let (lease, ended) = (Some(id), cause.clone());
            let expected = Reason::LeaseGone { lease, ended };
            assert_eq!(refuse(state, &commit).reason, expected);
        }
    };
    let by = Owner::new("ops").unwrap();
    let revoked = Some(EndCause::Revoked { by });
    gone(&state, first, revoked.clone());
    let strange = LeaseId::new(u64::MAX).unwrap();
    gone(&state, strange, None);
    state.set_lease_clock(1_000);
    gone(&state, first, revoked);
    gone(&state, strange, None);
    accept(&mut state, &commit([expire("k", second)]));
    gone(&state, second, Some(EndCause::Expired));
    gone(&state, first, None);
}

#[test]
fn a_holder_is_the_callers_own() {
    let bound = Policy::default().with_holder_binding(HolderBinding::Exact);
    let mut state = state(bound);
    let called = |mutation, caller: &str| {
        let mut commit = commit([mutation]);
        commit.caller = Some(Identity::new(caller).unwrap());
        commit
    };
    let rejection = refuse(&state, &called(acquire("k", "a", true), "b"));
    let presented = Authority::parse("1.0000000000000009/1@a").unwrap();
    assert_eq!(rejection.reason, Reason::WrongHolder { presented });
    let receipt = accept(&mut state, &called(acquire("k", "a", true), "a"));
    let lease = &receipt.leases[0].lease;
    for mutation in [renew("k", lease.id), release("k", lease.id)] {
        let under = called(mutation.clone(), "b").under(lease.authority());
        let reason = refuse(&state, &under).reason;
        assert!(matches!(reason, Reason::WrongHolder { .. }), "{reason:?}");
        accept(&mut state, &called(mutation, "a").under(lease.authority()));
    }
}

/// R7: letting go does no harm, but a step is an effect, wherever it is taken.
#[test]
fn who_is_fenced_out_lets_go_but_takes_no_step_by_it() {
    let mut state = state(Policy::default());
    let (lease, old) = grant(&mut state, "k", "a");
    let new = old.to_string().replace("/1@a", "/9@b");
    let new = Authority::parse(&new).unwrap();
    let (id, work) = (IntentId::new("i").unwrap(), Work::under(raw::guard(b"k")));
    let bind = Mutation::BindIntent {
        intent: id.clone(),
        work,
    };
    accept(&mut state, &commit([bind]).under(new));
    let let_go = commit([release("k", lease)]).under(old);
    for beside in [
        let_go.clone(),
        let_go.clone().put(raw::key(b"j"), Value::new("v").unwrap()),
    ] {
        let reason = refuse(&state, &beside.for_intent(id.clone(), Step::FIRST)).reason;
        assert!(matches!(reason, Reason::StaleTerm { .. }), "{reason:?}");
    }
    accept(&mut state, &let_go);
}

/// The term that is granted can be written under at once, or nothing is granted.
#[test]
fn a_term_out_of_reach_isnt_granted_without_sealing() {
    let step = std::num::NonZeroU64::new(1);
    let mut state = state(Policy::default().with_max_sequence_step(step));
    let (lease, authority) = grant(&mut state, "k", "a");
    accept(&mut state, &put("k").under(authority.clone()));
    accept(&mut state, &commit([release("k", lease)]).under(authority));
    let (lease, authority) = grant(&mut state, "k", "a");
    accept(&mut state, &commit([release("k", lease)]).under(authority));
    let reason = refuse(&state, &commit([acquire("k", "b", false)])).reason;
    let Reason::SequenceJump { presented, .. } = reason else {
        panic!("{reason:?}");
    };
    let receipt = accept(&mut state, &commit([acquire("k", "b", true)]));
    assert_eq!(receipt.leases[0].lease.authority(), presented);
    accept(&mut state, &put("k").under(presented));
}

/// R3: repeated with its intent, an acquisition is the same grant, and lasts no longer.
#[test]
fn a_repeated_acquisition_of_an_intent_is_the_same_grant() {
    let mut state = state(Policy::default());
    let id = IntentId::new("lead").unwrap();
    let asked = commit([acquire("k", "a", true)]).for_intent(id.clone(), Step::FIRST);
    let receipt = accept(&mut state, &asked);
    let before = format!("{state:?}");
    state.set_lease_clock(600);
    let again = state.commit(&asked);
    let Verdict::Replayed(told) = again else {
        panic!("{again:?}");
    };
    assert_eq!((&told.leases, told.replayed), (&receipt.leases, true));
    let plain = commit([acquire("k", "a", true)]);
    let reason = refuse(&state, &plain).reason;
    assert_eq!(reason, Reason::LeaseHeld { remaining_ms: 400 });
    let other = commit([acquire("k", "b", true)]).for_intent(id, Step::FIRST);
    let reason = refuse(&state, &other).reason;
    assert!(matches!(reason, Reason::IntentConflict(_)), "{reason:?}");
    let counted = state.destination().revision;
    assert_eq!(counted, receipt.revision, "{before}");
}

/// R4: nothing about leases needs room that it doesn't give back.
#[test]
fn a_full_disk_still_grants_renews_and_ends_leases() {
    let mut state = state(Policy::default());
    state.set_availability(Availability::DiskFull);
    let (lease, authority) = grant(&mut state, "k", "a");
    accept(&mut state, &commit([renew("k", lease)]).under(authority));
    accept(&mut state, &commit([revoke("k")]));
    grant(&mut state, "k", "a");
    state.set_availability(Availability::Poisoned);
    let reason = refuse(&state, &commit([acquire("j", "a", true)])).reason;
    assert_eq!(reason, Reason::Unavailable(Unavailable::Poisoned));
    assert!(state.note_clock().is_err() && state.reopen().is_err());
}

/// R9: the last sequence is granted, and then no other.
#[test]
fn the_sequences_of_a_guard_end() {
    let mut state = state(Policy::default());
    let last = u64::MAX - 1;
    let high = format!("1.0000000000000009/{}@w", last - 1);
    accept(
        &mut state,
        &put("k").under(Authority::parse(&high).unwrap()),
    );
    let (_, authority) = grant(&mut state, "k", "a");
    assert_eq!(authority.term().sequence.get(), last);
    accept(&mut state, &commit([revoke("k")]));
    let rejection = refuse(&state, &commit([acquire("k", "a", true)]));
    assert_eq!(rejection.reason, Reason::SequenceExhausted);
    assert!(rejection.to_string().contains("new epoch"), "{rejection}");
}

/// What isn't fetched isn't guessed, and the footprint names all of it.
#[test]
fn a_lease_that_wasnt_fetched_is_incomplete() {
    let issued = Policy::default().with_terms(Terms::Issued);
    let strict = Policy::default().with_strict(true);
    for policy in [issued, strict, Policy::default()] {
        let mut state = state(policy);
        let (lease, authority) = grant(&mut state, "k", "a");
        let leased = [
            commit([renew("k", lease)]).under(authority.clone()),
            commit([revoke("k")]),
            commit([acquire("j", "b", true)]),
        ];
        let written = put("k").under(authority.clone());
        let judged = policy.judges_by_leases().then_some(written.clone());
        for commit in leased.into_iter().chain(judged) {
            let needs = Footprint::of_commit(&commit, &policy);
            assert_eq!((needs.leases.len(), needs.guards.len()), (1, 1));
            let incomplete = |change: &dyn Fn(&mut highwater_core::View)| {
                let mut view = state.view(&commit);
                change(&mut view);
                let Verdict::Rejected(rejection) = decide(&view, &commit) else {
                    panic!("{commit:?}");
                };
                let expected = Reason::Unavailable(Unavailable::Incomplete);
                assert_eq!(rejection.reason, expected);
            };
            incomplete(&|view| view.leases.clear());
            incomplete(&|view| view.lease_clock = None);
            assert!(matches!(state.judge(&commit), Verdict::Accepted(_)));
        }
        let needs = Footprint::of_commit(&written, &policy).leases;
        assert_eq!(needs.is_empty(), !policy.judges_by_leases());
    }
    let state = state(Policy::default());
    let mut view = state.view(&commit([acquire("k", "a", true)]));
    view.fences.clear();
    let Verdict::Rejected(rejection) = decide(&view, &commit([acquire("k", "a", true)])) else {
        panic!("a term above an unknown fence");
    };
    let expected = Reason::Unavailable(Unavailable::Incomplete);
    assert_eq!(rejection.reason, expected);
}

/// Several guards in one commit share the revision, and each has its own lease; with a condition
/// that fails none is granted.
#[test]
fn leases_are_granted_all_or_none() {
    let mut state = state(Policy::default());
    let both = commit([acquire("j", "a", true), acquire("g", "b", false)]);
    let missing = Condition::GenerationIsNot {
        key: raw::key(b"x"),
        generation: None,
    };
    let refused = refuse(&state, &both.clone().when(missing));
    assert!(matches!(refused.reason, Reason::ConditionFailed { .. }));
    let receipt = accept(&mut state, &both);
    let names: Vec<_> = receipt.leases.iter().map(|l| l.guard.as_bytes()).collect();
    assert_eq!(names, [b"j", b"g"], "in the order of the mutations");
    let sealed: Vec<_> = receipt.guards.iter().map(|g| &g.fence).collect();
    let fence = |leased: &highwater_core::LeaseReceipt| Fence {
        term: leased.lease.term,
        holder: leased.lease.holder.clone(),
    };
    assert_eq!(sealed, [&fence(&receipt.leases[0])]);
    let third = commit([acquire("n", "a", true), acquire("j", "b", true)]);
    let rejection = refuse(&state, &third);
    assert!(matches!(rejection.reason, Reason::LeaseHeld { .. }));
    let seen = rejection.observed.lease.as_ref().unwrap();
    assert_eq!(seen.remaining_ms, Some(1_000));
    let current = seen.record.as_ref().and_then(|r| r.current.as_ref());
    assert_eq!(current, Some(&receipt.leases[0].lease));
    for part in ["guard 'j'", "1.0000000000000009/1@a", "1000 ms"] {
        assert!(rejection.to_string().contains(part), "{rejection}");
    }
}

/// One rejection of each reason about leases, each from the core itself.
pub(crate) fn rejections() -> Vec<Rejection> {
    let policy = Policy::default().with_grace_ms(500).unwrap();
    let mut graced = state(policy);
    let (lease, authority) = grant(&mut graced, "k", "a");
    let other = commit([acquire("k", "b", true)]);
    let mut all = vec![*refuse(&graced, &other)];
    graced.set_lease_clock(1_200);
    all.push(*refuse(&graced, &other));
    all.push(*refuse(
        &graced,
        &commit([renew("k", lease)]).under(authority.clone()),
    ));
    all.push(*refuse(&graced, &commit([revoke("j")])));
    let issued = state(Policy::default().with_terms(Terms::Issued));
    all.push(*refuse(&issued, &put("k").under(authority.clone())));
    let strict = state(Policy::default().with_strict(true));
    all.push(*refuse(&strict, &put("k").under(authority)));
    let mut full = state(Policy::default());
    let last = Authority::parse("1.0000000000000009/18446744073709551614@w").unwrap();
    accept(&mut full, &put("k").under(last));
    all.push(*refuse(&full, &commit([acquire("k", "a", true)])));
    all
}
