//! The core's state and the lease oracle's, side by side.

use std::num::NonZeroU64;

use highwater_core::{
    Admission, Authority, Commit, CreateDomain, DestinationId, Domain, EpochEntry, EpochMark,
    EpochTable, GuardedRead, Holder, LeaseId, LeaseRecord, Limits, Mutation, Owner, Policy, Reason,
    Rejection, Sequence, State, Term, Terms as CoreTerms, Ttl, Verdict,
};

use crate::lease_oracle::{Answer, Ask, Claim, Court, Side, Terms};
use crate::raw;
use crate::twin::{START, name};

pub(crate) const GUARDS: [&str; 2] = ["g", "h"];

#[derive(Clone)]
pub(crate) struct Leased {
    pub(crate) state: State,
    pub(crate) court: Court,
}

pub(crate) fn policy(terms: Terms) -> Policy {
    let issued = if terms.issued {
        CoreTerms::Issued
    } else {
        CoreTerms::External
    };
    Policy::default()
        .with_admission(Admission::Fenced)
        .with_max_sequence_step(terms.step.and_then(NonZeroU64::new))
        .with_terms(issued)
        .with_strict(terms.strict)
        .with_grace_ms(terms.grace)
        .unwrap()
}

/// The mark of the epoch of this number, counted from 0.
fn mark(epoch: usize) -> u64 {
    0x100 + u64::try_from(epoch).unwrap()
}

impl Leased {
    pub(crate) fn new(terms: Terms) -> Self {
        let incarnation = raw::incarnation(2, 7);
        let state = State::new(DestinationId::new([1; 16]), incarnation, Limits::default());
        let mut state = state.with_digest(raw::digest);
        let create = CreateDomain::new(name(), policy(terms), EpochMark::new(mark(0)));
        state.create_domain(&create).unwrap();
        let court = Court {
            terms,
            revision: START + 1,
            epoch: 0,
            now: 0,
            noted: 0,
            sides: Default::default(),
        };
        Self { state, court }
    }

    pub(crate) fn domain(&self) -> Domain {
        (**self.state.domain(&name()).unwrap()).clone()
    }

    pub(crate) fn authority(&self, (sequence, holder): Claim) -> Authority {
        let term = Term {
            epoch: self.domain().epochs.current().epoch,
            sequence: Sequence::new(sequence).unwrap(),
        };
        Authority::new(term, Holder::new(holder).unwrap())
    }

    pub(crate) fn commit(&self, ask: &Ask) -> Commit {
        let commit = Commit::new(name());
        let id = |raw: u64| LeaseId::new(raw).unwrap();
        let guard = |name: &str| raw::guard(name.as_bytes());
        match ask {
            Ask::Acquire(on, holder, ttl, seal, supersede) => commit.with(Mutation::Acquire {
                guard: guard(on),
                holder: Holder::new(holder).unwrap(),
                ttl: Ttl::new(*ttl).unwrap(),
                seal: *seal,
                supersede: *supersede,
            }),
            Ask::Renew(on, lease, claim, ttl) => {
                commit.under(self.authority(*claim)).with(Mutation::Renew {
                    guard: guard(on),
                    lease: id(*lease),
                    ttl: ttl.map(|ttl| Ttl::new(ttl).unwrap()),
                })
            }
            Ask::Release(on, lease, claim) => {
                let (guard, lease) = (guard(on), id(*lease));
                let release = Mutation::Release { guard, lease };
                commit.under(self.authority(*claim)).with(release)
            }
            Ask::Revoke(on, lease, by) => commit.with(Mutation::Revoke {
                guard: guard(on),
                lease: lease.map(id),
                by: Owner::new(by).unwrap(),
            }),
            Ask::Expire(on, lease) => {
                let (guard, lease) = (guard(on), id(*lease));
                commit.with(Mutation::Expire { guard, lease })
            }
            Ask::Write(on, claim) => {
                let key = raw::key(on.as_bytes());
                let value = highwater_core::Value::new("v").unwrap();
                commit.under(self.authority(*claim)).put(key, value)
            }
        }
    }

    /// Both are asked, and everything is compared. What the oracle said.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Answer {
        let commit = self.commit(ask);
        let judged = self.state.judge(&commit);
        let verdict = self.state.commit(&commit);
        assert_eq!(judged, verdict, "a dry run gets what the commit gets");
        let expected = self.court.ask(ask);
        let told: Answer = match &verdict {
            Verdict::Accepted(accepted) => Ok(accepted.receipt.leases.first().map(|leased| {
                let word = |cause: &Option<highwater_core::EndCause>| {
                    cause.as_ref().map_or_else(String::new, ToString::to_string)
                };
                let sequence = leased.lease.term.sequence.get();
                (sequence, word(&leased.ended), word(&leased.replaced))
            })),
            Verdict::Rejected(rejection) => Err(said(rejection)),
            Verdict::Replayed(_) => panic!("nothing is repeated here"),
        };
        assert_eq!(told, expected, "{ask:?}\n{:?}", self.court);
        self.compare();
        expected
    }

    pub(crate) fn wait(&mut self, milliseconds: u64) {
        self.court.now += milliseconds;
        self.state.set_lease_clock(self.court.now);
        self.compare();
    }

    pub(crate) fn note(&mut self) {
        self.court.note();
        self.state.note_clock().unwrap();
        self.compare();
    }

    pub(crate) fn reopen(&mut self) {
        self.court.reopen();
        self.state.reopen().unwrap();
        self.compare();
    }

    pub(crate) fn new_epoch(&mut self) {
        let mut domain = self.domain();
        let mut retired = domain.epochs.retired().to_vec();
        retired.push(domain.epochs.current());
        self.court.new_epoch();
        let number = u64::try_from(self.court.epoch).unwrap() + 1;
        let current = EpochEntry {
            epoch: raw::epoch(number, mark(self.court.epoch)),
            installed_at: retired.last().unwrap().installed_at.next().unwrap(),
        };
        domain.epochs = EpochTable::with_retired(retired, current);
        self.state.replace_domain(domain);
        self.compare();
    }

    /// The state is the oracle's, every invariant holds, and a guarded read gets what a write gets.
    pub(crate) fn compare(&self) {
        self.state.check().unwrap();
        assert_eq!(self.state.destination().revision.get(), self.court.revision);
        assert_eq!(self.state.lease_clock().now_ms, self.court.now);
        let domain = self.domain();
        for on in GUARDS {
            let side = self.court.side(on);
            let guard = raw::guard(on.as_bytes());
            let record = self.state.lease(domain.id, &guard);
            self.compare_side(&side, record.map(|record| &**record));
            let fence = self.state.fence(&domain, &guard).map(raw::raw_fence);
            let fence = fence.map(|f| (f.sequence, f.holder));
            let expected = side.fence.map(|(s, h)| (s, h.as_bytes().to_vec()));
            assert_eq!(fence, expected);
            let claims = side.issued.iter().rev().take(9).chain(&side.fence);
            for claim in claims {
                let read = GuardedRead {
                    domain: name(),
                    destination: None,
                    authority: self.authority(*claim),
                    caller: None,
                    guards: vec![guard.clone()],
                };
                let told = self.state.admit_read(&read).err();
                assert_eq!(told.map(|r| said(&r)), self.court.unfit(on, *claim));
            }
        }
    }

    fn compare_side(&self, side: &Side, record: Option<&LeaseRecord>) {
        let clock = self.state.lease_clock();
        let current = record.and_then(|record| record.current.as_ref());
        let told = current.map(|lease| {
            let at = (lease.renewed_at.get(), clock.remaining_ms(lease));
            let term = lease.term;
            let epoch = (term.epoch.mark().get(), term.sequence.get());
            let holder = lease.holder.as_bytes().to_vec();
            (lease.id.get(), epoch, holder, lease.ttl.get(), at)
        });
        let expected = side.held.as_ref().map(|held| {
            let at = (held.renewed_at, held.ends.saturating_sub(self.court.now));
            let epoch = (mark(held.epoch), held.claim.0);
            let holder = held.claim.1.as_bytes().to_vec();
            (held.id, epoch, holder, held.ttl, at)
        });
        assert_eq!(told, expected);
        let ended = record.and_then(|record| record.last_end.as_ref());
        let told = ended.map(|end| {
            let (cause, at) = (end.cause.to_string(), end.at.get());
            (end.lease.id.get(), cause, at, end.clock_ms)
        });
        let expected = side.ended.as_ref();
        let expected = expected.map(|end| (end.held.id, end.cause.clone(), end.at, end.clock));
        assert_eq!(told, expected);
        let grants = record.filter(|record| record.epoch.mark().get() == mark(self.court.epoch));
        let grants: Vec<_> = grants.map_or_else(Vec::new, |record| {
            let claim = |grant: &highwater_core::Grant| {
                (grant.sequence.get(), grant.holder.as_bytes().to_vec())
            };
            record.grants.iter().map(claim).collect()
        });
        let skipped = side.issued.len().saturating_sub(8);
        let expected = side.issued.iter().skip(skipped);
        let expected = expected.map(|(s, h)| (*s, h.as_bytes().to_vec()));
        assert!(grants.into_iter().eq(expected));
    }
}

/// A refusal in raw values.
fn said(rejection: &Rejection) -> (&'static str, u64, String) {
    let reason = &rejection.reason;
    let remaining = match reason {
        Reason::LeaseHeld { remaining_ms } | Reason::LeaseDelayed { remaining_ms } => *remaining_ms,
        _ => 0,
    };
    let cause = match reason {
        Reason::LeaseGone { ended, .. } | Reason::NotLeased { ended, .. } => ended.as_ref(),
        _ => None,
    };
    let cause = cause.map_or_else(String::new, ToString::to_string);
    (reason.code(), remaining, cause)
}
