//! Leases on the wire: what is said of them survives, and what is missing or wrong is refused by
//! name.

use std::sync::Arc;

use highwater_core::{
    EndCause, Grant, Guard, Holder, Lease, LeaseEnd, LeaseId, LeaseReceipt, LeaseRecord,
    LeaseStanding, Malformed, Mutation, NameError, Observed, ObservedLease, Owner, Reason,
    Rejection, Sequence, Ttl, limits,
};
use highwater_proto::convert::{FromWire, ToWire};
use highwater_proto::status;
use highwater_proto::v1;
use highwater_proto::v1::mutation::Kind;
use prost::Message;

use crate::malformed::{missing, number};
use crate::round_trip::assert_survives;
use crate::samples::{extreme_authority, guard, long, observed_much, revision};

fn causes() -> [EndCause; 6] {
    let by = Owner::new(long(256)).unwrap();
    [
        EndCause::Expired,
        EndCause::Released,
        EndCause::Revoked { by },
        EndCause::Superseded,
        EndCause::EpochTransition,
        EndCause::Restore,
    ]
}

fn ttl(milliseconds: u64) -> Ttl {
    Ttl::new(milliseconds).unwrap()
}

fn lease_id(raw: u64) -> LeaseId {
    LeaseId::new(raw).unwrap()
}

fn holder() -> Holder {
    Holder::new(long(256)).unwrap()
}

fn lease() -> Arc<Lease> {
    Arc::new(Lease {
        id: lease_id(u64::MAX),
        term: extreme_authority().term(),
        holder: holder(),
        ttl: ttl(limits::TTL_MS_MAX),
        renewed_at: revision(1 << 48),
        renewed_clock_ms: u64::MAX,
    })
}

/// As much as can be stored of a guard, with so many grants.
pub(crate) fn record(grants: u64) -> LeaseRecord {
    let grant = |back| Grant {
        sequence: Sequence::new(u64::MAX - 1 - back).unwrap(),
        holder: holder(),
    };
    let [_, _, cause, ..] = causes();
    LeaseRecord {
        epoch: extreme_authority().term().epoch,
        grants: (0..grants).rev().map(grant).collect(),
        current: Some(lease()),
        last_end: Some(LeaseEnd {
            lease: lease(),
            cause,
            at: revision(u64::MAX),
            clock_ms: u64::MAX,
        }),
        changed_at: revision(u64::MAX),
    }
}

pub(crate) fn lease_receipts() -> Vec<LeaseReceipt> {
    let receipt = |ended: Option<EndCause>, replaced: Option<EndCause>| LeaseReceipt {
        guard: guard(b""),
        lease: lease(),
        ended,
        replaced,
    };
    let mut receipts = vec![receipt(None, None)];
    receipts.extend(causes().map(|cause| receipt(Some(cause.clone()), None)));
    receipts.extend(causes().map(|cause| receipt(None, Some(cause))));
    receipts
}

/// A change of a lease in each of its forms.
pub(crate) fn lease_mutations() -> Vec<Mutation> {
    let mut mutations = Vec::new();
    for (seal, supersede) in [(false, true), (true, false)] {
        mutations.push(Mutation::Acquire {
            guard: guard(b""),
            holder: holder(),
            ttl: ttl(limits::TTL_MS_MIN),
            seal,
            supersede,
        });
    }
    for ttl in [None, Ttl::new(limits::TTL_MS_MAX)] {
        let (guard, lease) = (guard(b"r"), lease_id(u64::MAX));
        mutations.push(Mutation::Renew { guard, lease, ttl });
    }
    for lease in [None, LeaseId::new(1 << 48)] {
        let (guard, by) = (guard(b"v"), Owner::new(long(256)).unwrap());
        mutations.push(Mutation::Revoke { guard, lease, by });
    }
    let lease = lease_id(1 << 48);
    let guard = || guard(b"e");
    mutations.push(Mutation::Release {
        guard: guard(),
        lease,
    });
    mutations.push(Mutation::Expire {
        guard: guard(),
        lease,
    });
    mutations
}

/// What reasons say of leases, in each of its forms.
pub(crate) fn lease_reasons() -> Vec<Reason> {
    let lease = LeaseId::new(u64::MAX);
    let presented = extreme_authority;
    let mut reasons = vec![
        Reason::LeaseHeld { remaining_ms: 0 },
        Reason::LeaseDelayed {
            remaining_ms: u64::MAX,
        },
        Reason::LeaseGone {
            lease: None,
            ended: None,
        },
        Reason::UnknownTerm {
            presented: presented(),
        },
    ];
    for cause in causes() {
        let ended = Some(cause);
        reasons.push(Reason::LeaseGone {
            lease,
            ended: ended.clone(),
        });
        reasons.push(Reason::NotLeased {
            presented: presented(),
            ended,
        });
    }
    reasons
}

/// What is observed where the reason concerns a lease.
pub(crate) fn observed_leases(record: Option<LeaseRecord>) -> Observed {
    let much = observed_much();
    let remaining_ms = record.as_ref().map(|_| u64::MAX);
    Observed {
        key: None,
        generation: None,
        metageneration: None,
        changed_at: None,
        digest: None,
        lease: Some(ObservedLease {
            record: record.map(Arc::new),
            remaining_ms,
        }),
        ..much
    }
}

#[test]
fn what_is_stored_survives() {
    for grants in 1..=8 {
        assert_survives(&record(grants));
    }
    assert_survives(&LeaseRecord {
        current: None,
        last_end: None,
        ..record(1)
    });
    for standing in [
        LeaseStanding::Live { remaining_ms: 0 },
        LeaseStanding::Lapsed { since_ms: u64::MAX },
        LeaseStanding::Retired,
    ] {
        assert_survives(&standing);
    }
}

/// Clients read statuses from headers of at most 8 KiB.
#[test]
fn an_observation_has_the_last_grant_alone_and_fits_into_headers() {
    let observed = observed_leases(Some(record(8)));
    let brief = observed_leases(Some(record(1)));
    assert_eq!(Observed::from_wire(observed.to_wire()), Ok(brief));
    for reason in lease_reasons() {
        let rejection = Rejection {
            reason,
            observed: observed.clone(),
        };
        let told = status::from_rejection(&rejection);
        let escaped = told.message().len() * 3;
        let encoded = told.details().len().div_ceil(3) * 4;
        assert!(escaped + encoded < 8_000, "{}", escaped + encoded);
    }
}

fn read(kind: Kind) -> Result<Mutation, Malformed> {
    Mutation::from_wire(v1::Mutation { kind: Some(kind) })
}

#[test]
fn an_acquisition_states_whether_it_seals_and_its_time() {
    let acquire = |change: &dyn Fn(&mut v1::AcquireLease)| {
        let mut wire = v1::AcquireLease {
            guard: "g".into(),
            holder: "h".into(),
            ttl_ms: limits::TTL_MS_MIN,
            seal: Some(false),
            supersede: false,
        };
        change(&mut wire);
        read(Kind::AcquireLease(wire))
    };
    assert!(acquire(&|_| {}).is_ok());
    assert_eq!(acquire(&|wire| wire.seal = None), missing("seal"));
    for wrong in [0, limits::TTL_MS_MIN - 1, limits::TTL_MS_MAX + 1, u64::MAX] {
        let refused = acquire(&|wire| wire.ttl_ms = wrong);
        assert_eq!(refused, number("time to live"), "{wrong}");
    }
    assert!(acquire(&|wire| wire.ttl_ms = limits::TTL_MS_MAX).is_ok());
    let empty = Malformed::Name(NameError::Empty { what: "holder" });
    assert_eq!(acquire(&|wire| wire.holder = "".into()), Err(empty));
    let long = acquire(&|wire| wire.holder = vec![0; 257].into());
    assert!(matches!(
        long,
        Err(Malformed::Name(NameError::TooLong { .. }))
    ));
    let long = acquire(&|wire| wire.guard = vec![0; 1_025].into());
    assert!(matches!(
        long,
        Err(Malformed::Name(NameError::TooLong { .. }))
    ));
}

#[test]
fn a_lease_is_named_by_a_revision_that_can_be() {
    let guard = || b"g".as_slice().into();
    let renew = |lease, ttl_ms| {
        let guard = guard();
        read(Kind::RenewLease(v1::RenewLease {
            guard,
            lease,
            ttl_ms,
        }))
    };
    let release = |lease| {
        let guard = guard();
        read(Kind::ReleaseLease(v1::ReleaseLease { guard, lease }))
    };
    let expire = |lease| {
        let guard = guard();
        read(Kind::ExpireLease(v1::ExpireLease { guard, lease }))
    };
    let revoke = |lease, by: &'static str| {
        let (guard, by) = (guard(), by.into());
        read(Kind::RevokeLease(v1::RevokeLease { guard, lease, by }))
    };
    for wrong in [0, 1, (1 << 48) - 1] {
        assert_eq!(renew(wrong, None), number("lease"), "{wrong}");
        assert_eq!(release(wrong), number("lease"), "{wrong}");
        assert_eq!(expire(wrong), number("lease"), "{wrong}");
        assert_eq!(revoke(Some(wrong), "o"), number("lease"), "{wrong}");
    }
    assert!(renew(u64::MAX, None).is_ok());
    assert_eq!(renew(u64::MAX, Some(0)), number("time to live"));
    let empty = Malformed::Name(NameError::Empty { what: "owner" });
    assert_eq!(revoke(None, ""), Err(empty));
}

#[test]
fn a_cause_is_stated_and_known() {
    let ending = |cause, by: &'static str| {
        let by = by.into();
        EndCause::from_wire(v1::LeaseEnding { cause, by })
    };
    let what = "cause of an end";
    assert_eq!(ending(0, ""), missing(what));
    assert_eq!(ending(7, ""), number(what));
    assert_eq!(ending(-1, ""), number(what));
    let empty = Malformed::Name(NameError::Empty { what: "owner" });
    assert_eq!(ending(3, ""), Err(empty), "who revoked it is part of it");
    assert_eq!(ending(1, ""), Ok(EndCause::Expired));
}

#[test]
fn grants_are_some_and_few_and_rise() {
    let change = |change: &dyn Fn(&mut v1::LeaseRecord)| {
        let mut wire = record(8).to_wire();
        change(&mut wire);
        LeaseRecord::from_wire(wire)
    };
    assert!(change(&|_| {}).is_ok());
    assert_eq!(change(&|wire| wire.grants.clear()), missing("grants"));
    assert_eq!(change(&|wire| wire.grants.reverse()), number("grants"));
    let doubled = change(&|wire| wire.grants[1] = wire.grants[0].clone());
    assert_eq!(doubled, number("grants"));
    let more = change(&|wire| wire.grants.insert(0, v1::LeaseGrant::default()));
    let (what, count, max) = ("grants", 9, 8);
    assert_eq!(more, Err(Malformed::TooMany { what, count, max }));
    let without = change(&|wire| wire.current.as_mut().unwrap().term = None);
    assert_eq!(without, missing("term"));
    let zero = change(&|wire| wire.last_end.as_mut().unwrap().at = 0);
    assert_eq!(zero, number("revision"));
    let standing = LeaseStanding::from_wire(v1::LeaseStanding { kind: None });
    assert_eq!(standing, missing("standing of a lease"));
}

/// An earlier form of the message, without the field, isn't read as one that doesn't seal.
#[test]
fn what_an_old_client_leaves_out_is_not_filled_in() {
    let whole = lease_mutations().remove(0).to_wire().encode_to_vec();
    let mut read = v1::Mutation::decode(whole.as_slice()).unwrap();
    if let Some(Kind::AcquireLease(acquire)) = &mut read.kind {
        acquire.seal = None;
    }
    assert_eq!(Mutation::from_wire(read), missing("seal"));
    assert_eq!(Guard::from_wire(Vec::new().into()), Ok(guard(b"")));
}
