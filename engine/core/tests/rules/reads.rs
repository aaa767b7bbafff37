//! Guarded reads fail exactly as a take-over under the same authority would, and the creation of
//! domains is judged in order.

use highwater_core::{
    Admission, Availability, CreateDomain, DomainName, DomainState, EpochMark, GuardRule,
    GuardedRead, HolderBinding, Identity,
};

use crate::counters::{END, age};
use crate::oracle::Rules;
use crate::raw::{self, Auth, Change, advance, auth, delete, put, request};
use crate::twin::{HERE, MARK, Twin, name, policy};

pub(crate) fn read(guards: &[&str], auth: Auth) -> GuardedRead {
    GuardedRead {
        domain: name(),
        destination: None,
        authority: raw::authority(&auth),
        caller: Some(Identity::new("w").unwrap()),
        guards: guards.iter().map(|g| raw::guard(g.as_bytes())).collect(),
    }
}

fn world(admission: Admission) -> Twin {
    let mut twin = Twin::new(Rules {
        guard: GuardRule::Prefix {
            delimiter: b'/',
            depth: 1,
        },
        admission,
        binding: HolderBinding::Prefix,
        step: Some(2),
    });
    twin.new_epoch(0x22);
    for (guard, sequence, holder) in [("j", 2, "w/a"), ("k", 3, "w/b")] {
        let take = request(vec![advance(guard)]).under(auth(2, 0x22, sequence, holder));
        assert!(twin.step(&take.called_by("w")));
    }
    twin
}

/// What a read gets: the code of what the oracle says to an advance of the same guards, in a
/// destination that is open, since nothing is written.
fn expected(twin: &Twin, guards: &[&str], auth: &Auth) -> Option<&'static str> {
    let mut model = twin.model.clone();
    let recovering = model.availability == Availability::RecoveryRequired
        || model.state == DomainState::RecoveryRequired;
    if recovering {
        model.state = DomainState::RecoveryRequired;
    } else {
        model.state = DomainState::Active;
    }
    model.availability = Availability::Ready;
    let changes: Vec<Change> = guards.iter().map(|guard| advance(guard)).collect();
    let request = request(changes).under(auth.clone()).called_by("w");
    model.answer(&request).err().map(|refusal| refusal.code)
}

#[test]
fn a_read_fails_as_an_advance_would() {
    let states = [
        DomainState::Active,
        DomainState::Frozen,
        DomainState::RecoveryRequired,
    ];
    let mut seen = std::collections::BTreeSet::new();
    for admission in [Admission::Fenced, Admission::Versioned, Admission::Open] {
        let mut twin = world(admission);
        for availability in [
            Availability::Ready,
            Availability::Poisoned,
            Availability::Overloaded,
            Availability::DiskFull,
            Availability::RecoveryRequired,
        ] {
            twin.set_availability(availability);
            for state in states {
                twin.set_state(state);
                for guards in [vec!["j"], vec!["k"], vec!["j", "k"], vec!["n"], vec!["j/x"]] {
                    for (epoch, mark) in [(1, MARK), (2, 0x22), (2, MARK), (3, 0x22)] {
                        for sequence in 1..7 {
                            for holder in ["w/a", "w/b", "wa"] {
                                let auth = auth(epoch, mark, sequence, holder);
                                let wanted = expected(&twin, &guards, &auth);
                                let got = twin.state.admit_read(&read(&guards, auth));
                                let got = got.err().map(|r| r.reason.code());
                                assert_eq!(got, wanted, "{guards:?}");
                                seen.insert(got);
                            }
                        }
                    }
                }
            }
        }
    }
    assert_eq!(seen.len(), 9, "{seen:?}");
}

#[test]
fn a_read_names_destination_domain_and_guards() {
    let twin = world(Admission::Open);
    let good = read(&["j"], auth(2, 0x22, 2, "w/a"));
    assert_eq!(twin.state.admit_read(&good), Ok(()));
    let refused = |read: &GuardedRead| twin.state.admit_read(read).unwrap_err().reason;
    let mut elsewhere = good.clone();
    elsewhere.destination = Some(raw::expected((HERE.0, HERE.1, HERE.2 + 1)));
    assert_eq!(refused(&elsewhere).code(), "WrongDestination");
    let mut stranger = good.clone();
    stranger.domain = DomainName::new("e").unwrap();
    assert_eq!(refused(&stranger).code(), "UnknownDomain");
    let mut unbound = good.clone();
    unbound.caller = None;
    assert_eq!(refused(&unbound).code(), "WrongHolder");
    let mut twice = good;
    twice.guards.push(twice.guards[0].clone());
    assert_eq!(twin.state.admit_read(&twice), Ok(()));
}

/// An old holder reads until a newer one has fenced, and not a moment longer.
#[test]
fn a_take_over_ends_the_reads_of_the_one_before() {
    let mut twin = world(Admission::Fenced);
    let old = read(&["j"], auth(2, 0x22, 2, "w/a"));
    let take = request(vec![advance("j")]).under(auth(2, 0x22, 3, "w/b"));
    assert_eq!(twin.state.admit_read(&old), Ok(()));
    assert!(twin.step(&take.called_by("w")));
    let refused = twin.state.admit_read(&old).unwrap_err();
    assert_eq!(refused.reason.code(), "StaleTerm");
}

#[test]
fn a_fence_outlives_its_keys() {
    let mut twin = world(Admission::Fenced);
    let by = |changes, sequence, holder: &str| {
        request(changes)
            .under(auth(2, 0x22, sequence, holder))
            .called_by("w")
    };
    assert!(twin.step(&by(vec![put("j", "1"), put("j/x", "2")], 4, "w/b")));
    let gone = vec![delete("j"), delete("j/x")];
    assert!(twin.step(&by(gone, 4, "w/b")));
    assert!(twin.model.rows.is_empty());
    assert!(!twin.step(&by(vec![put("j", "1")], 3, "w/a")));
    assert!(twin.step(&by(vec![put("j", "1")], 4, "w/b")));
}

#[test]
fn the_creation_of_a_domain_is_judged_in_order() {
    let mut twin = world(Admission::Fenced);
    let mut create = CreateDomain::new(name(), policy(twin.model.rules), EpochMark::new(1));
    create.destination = Some(raw::expected(([HERE.0[0] + 1; 16], HERE.1, HERE.2)));
    age(&mut twin, END, b'z');
    let code = |twin: &mut Twin, create: &CreateDomain| {
        let refused = twin.state.create_domain(create).unwrap_err();
        refused.reason.code()
    };
    for (availability, wanted) in [
        (Availability::Poisoned, "Poisoned"),
        (Availability::RecoveryRequired, "RecoveryRequired"),
        (Availability::Overloaded, "Overloaded"),
        (Availability::DiskFull, "DiskFull"),
        (Availability::Ready, "RevisionExhausted"),
    ] {
        twin.set_availability(availability);
        let mut wrong = create.clone();
        assert_eq!(code(&mut twin, &wrong), "WrongDestination");
        wrong.destination = Some(raw::expected(HERE));
        assert_eq!(code(&mut twin, &wrong), "DomainExists");
        wrong.name = DomainName::new("other").unwrap();
        assert_eq!(code(&mut twin, &wrong), wanted);
        let view = highwater_core::View::new(*twin.state.destination(), None);
        let refused = highwater_core::create_domain(&view, 1_024, &wrong).unwrap_err();
        assert_eq!(refused.reason.code(), "TooManyDomains");
    }
}
