//! The order of the nine steps: a request that breaks two rules is refused by the first.

use highwater_core::{
    Admission, Availability, DomainState, GuardRule, HolderBinding, Reason, Verdict,
};

use crate::counters::{END, age, wear_out};
use crate::oracle::Rules;
use crate::raw::{Auth, Auths, Change, Cond, Request, advance, auth, label, put, request, task};
use crate::twin::{MARK, START, Twin, malformed};

/// The mark of the second, current epoch.
const CURRENT: u64 = 0x22;

/// A way to break one rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Breach {
    DuplicateKey,
    WrongDestination,
    UnknownDomain,
    NoSuchGuard,
    Poisoned,
    RecoveryOfDestination,
    RecoveryOfDomain,
    Frozen,
    Overloaded,
    DiskFull,
    AuthorityRequired,
    PreconditionRequired,
    StaleEpoch,
    UnknownEpoch,
    StaleTerm,
    HolderConflict,
    SequenceJump,
    WrongHolder,
    ConditionFailed,
    TooOld,
    RevisionExhausted,
    MetagenerationExhausted,
    StepOutOfOrder,
    StepOfEnded,
    UnknownIntent,
    BoundOtherwise,
    EndedTwice,
    IntentExhausted,
}

/// What a breach occupies that another can't use at the same time.
#[derive(Clone, Copy, PartialEq)]
enum Slot {
    Own,
    Availability,
    State,
    Intent,
}

use Breach as B;

/// Every breach with the step that finds it, in the order in which the rules are to be judged.
pub(crate) const BREACHES: [(Breach, u8, &str); 28] = [
    (B::DuplicateKey, 10, "Malformed"),
    (B::WrongDestination, 20, "WrongDestination"),
    (B::UnknownDomain, 20, "UnknownDomain"),
    (B::NoSuchGuard, 25, "Malformed"),
    (B::StepOutOfOrder, 30, "IntentConflict"),
    (B::StepOfEnded, 30, "IntentClosed"),
    (B::Poisoned, 40, "Poisoned"),
    (B::RecoveryOfDestination, 40, "RecoveryRequired"),
    (B::RecoveryOfDomain, 40, "RecoveryRequired"),
    (B::Frozen, 40, "Frozen"),
    (B::Overloaded, 40, "Overloaded"),
    (B::DiskFull, 40, "DiskFull"),
    (B::AuthorityRequired, 50, "AuthorityRequired"),
    (B::PreconditionRequired, 50, "PreconditionRequired"),
    (B::StaleEpoch, 60, "StaleEpoch"),
    (B::UnknownEpoch, 60, "UnknownEpoch"),
    (B::StaleTerm, 70, "StaleTerm"),
    (B::HolderConflict, 70, "HolderConflict"),
    (B::SequenceJump, 70, "SequenceJump"),
    (B::WrongHolder, 70, "WrongHolder"),
    (B::ConditionFailed, 80, "ConditionFailed"),
    (B::TooOld, 80, "TooOld"),
    (B::UnknownIntent, 85, "UnknownIntent"),
    (B::BoundOtherwise, 85, "IntentConflict"),
    (B::EndedTwice, 85, "IntentClosed"),
    (B::RevisionExhausted, 90, "RevisionExhausted"),
    (B::MetagenerationExhausted, 90, "MetagenerationExhausted"),
    (B::IntentExhausted, 95, "IntentExhausted"),
];

impl Breach {
    fn slot(self) -> Slot {
        match self {
            B::Poisoned | B::RecoveryOfDestination | B::Overloaded | B::DiskFull => {
                Slot::Availability
            }
            B::RecoveryOfDomain | B::Frozen => Slot::State,
            B::StepOutOfOrder | B::StepOfEnded | B::IntentExhausted => Slot::Intent,
            _ => Slot::Own,
        }
    }
}

/// A twin and a request on it, good until it is broken.
pub(crate) struct Case {
    pub(crate) twin: Twin,
    pub(crate) request: Request,
}

fn current(sequence: u64, holder: &str) -> Auth {
    auth(2, CURRENT, sequence, holder)
}

fn holders_put(name: &str, sequence: u64, holder: &str) -> Request {
    let key = name.as_bytes().to_vec();
    request(vec![put(name, "0")])
        .under(current(sequence, holder))
        .when(Cond::GenerationIs(key, 0))
        .called_by(holder)
}

impl Case {
    pub(crate) fn new() -> Self {
        let mut twin = Twin::new(Rules {
            guard: GuardRule::Key,
            admission: Admission::Versioned,
            binding: HolderBinding::Exact,
            step: Some(10),
        });
        twin.new_epoch(CURRENT);
        let mut request = request(Vec::new()).called_by("w");
        request.auth = Auths::PerGuard(Vec::new());
        let mut case = Self { twin, request };
        case.change("m", put("m", "0"), current(1, "w"));
        case
    }

    /// Adds a change on its own key and guard, as the domain demands it.
    fn change(&mut self, name: &str, change: Change, auth: Auth) {
        let key = name.as_bytes().to_vec();
        let generation = self.twin.model.rows.get(&key).map_or(0, |r| r.generation);
        self.request
            .conds
            .push(Cond::GenerationIs(key.clone(), generation));
        self.change_without_condition(name, change, auth);
    }

    fn change_without_condition(&mut self, name: &str, change: Change, auth: Auth) {
        self.request.changes.push(change);
        if let Auths::PerGuard(list) = &mut self.request.auth {
            list.push((name.into(), auth));
        }
    }

    /// What must have happened before, so that the breach can be one.
    pub(crate) fn prepare(&mut self, breach: Breach, name: &str) {
        let (done, twin) = (true, &mut self.twin);
        let done = match breach {
            B::StaleTerm | B::SequenceJump => twin.step(&holders_put(name, 5, "w")),
            B::HolderConflict => twin.step(&holders_put(name, 5, "o")),
            B::TooOld => {
                twin.forget();
                done
            }
            B::MetagenerationExhausted => {
                wear_out(twin, name.as_bytes()[0], u64::MAX);
                done
            }
            B::StepOfEnded | B::BoundOtherwise | B::EndedTwice => {
                let step = holders_put("s", 1, "w").step(name, 1);
                let ends = breach != B::BoundOtherwise;
                let mut step = if ends { step.completing() } else { step };
                if !ends {
                    let bind = Change::Bind(name.into(), task("s"));
                    step.changes.push(bind);
                }
                let row = twin.model.rows.get(b"s".as_slice());
                let generation = row.map_or(0, |row| row.generation);
                step.conds = vec![Cond::GenerationIs(b"s".to_vec(), generation)];
                twin.step(&step)
            }
            _ => done,
        };
        assert!(done, "{breach:?}");
    }

    pub(crate) fn commit(&mut self, breach: Breach, name: &str) {
        let old_moment = Cond::PrefixSince("old".into(), START);
        match breach {
            B::DuplicateKey => {
                self.change(name, put(name, "1"), current(1, "w"));
                self.request.changes.push(put(name, "2"));
            }
            B::WrongDestination => self.request.destination = Some(([0xD5; 16], 1, 0x77)),
            B::UnknownDomain => self.request.domain = "e".into(),
            B::NoSuchGuard => self.request.changes.push(advance("")),
            B::Poisoned => self.twin.set_availability(Availability::Poisoned),
            B::RecoveryOfDestination => {
                self.twin.set_availability(Availability::RecoveryRequired);
            }
            B::RecoveryOfDomain => self.twin.set_state(DomainState::RecoveryRequired),
            B::Frozen => self.twin.set_state(DomainState::Frozen),
            B::Overloaded => self.twin.set_availability(Availability::Overloaded),
            B::DiskFull => self.twin.set_availability(Availability::DiskFull),
            B::AuthorityRequired => self.request.changes.push(advance(name)),
            B::PreconditionRequired => {
                self.change_without_condition(name, put(name, "1"), current(1, "w"));
            }
            B::StaleEpoch => self.change(name, put(name, "1"), auth(1, MARK, 9, "w")),
            B::UnknownEpoch => self.change(name, put(name, "1"), auth(2, MARK, 9, "w")),
            B::StaleTerm => self.change(name, put(name, "1"), current(4, "w")),
            B::HolderConflict => self.change(name, put(name, "1"), current(5, "w")),
            B::SequenceJump => self.change(name, put(name, "1"), current(16, "w")),
            B::WrongHolder => self.change(name, put(name, "1"), current(5, "v")),
            B::ConditionFailed => {
                let exists = Cond::GenerationIsNot(name.into(), 0);
                self.request.conds.push(exists);
            }
            B::TooOld => self.request.conds.push(old_moment),
            B::RevisionExhausted => age(&mut self.twin, END, b'z'),
            B::MetagenerationExhausted => self.change(name, label(name, "t"), current(1, "w")),
            B::StepOutOfOrder => self.request.intent = Some((name.into(), 2, false)),
            B::StepOfEnded => self.request.intent = Some((name.into(), 2, true)),
            B::UnknownIntent | B::EndedTwice => {
                let close = Change::Close(name.into(), None, "cancelled");
                self.request.changes.push(close);
            }
            B::BoundOtherwise => {
                let bind = Change::Bind(name.into(), task(name));
                self.change_without_condition(name, bind, current(1, "w"));
            }
            B::IntentExhausted => {
                self.request.intent = Some((name.into(), 1, false));
                for number in 0..130 {
                    let key = format!("{name}{number:01023}").into_bytes();
                    self.request.conds.push(Cond::GenerationIs(key.clone(), 0));
                    self.request.changes.push(Change::Delete(key));
                }
            }
        }
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        match self.twin.judge(&self.request) {
            Verdict::Accepted(_) | Verdict::Replayed(_) => None,
            Verdict::Rejected(rejection) => Some(rejection.reason),
        }
    }
}

fn refused_as(case: &Case, breach: Breach, code: &str) {
    let reason = case.reason().expect("a breach is refused");
    assert_eq!(reason.code(), code, "{breach:?}");
    let kind = match breach {
        B::DuplicateKey => Some("DuplicateKey"),
        B::NoSuchGuard => Some("NoSuchGuard"),
        _ => None,
    };
    assert_eq!(malformed(&reason), kind);
}

#[test]
fn each_breach_alone_is_refused_and_nothing_else_is() {
    for (breach, _, code) in BREACHES {
        let mut case = Case::new();
        case.prepare(breach, "a");
        assert_eq!(case.reason(), None, "{breach:?} is prepared only");
        case.commit(breach, "a");
        refused_as(&case, breach, code);
    }
}

#[test]
fn of_two_breaches_the_earlier_step_is_the_reason() {
    let mut pairs = 0;
    for (at, (first, step, code)) in BREACHES.into_iter().enumerate() {
        for (second, other_step, _) in BREACHES.into_iter().skip(at + 1) {
            if first.slot() == second.slot() && first.slot() != Slot::Own {
                continue;
            }
            let mut case = Case::new();
            // Inside one step the earlier guard, change or condition decides; across steps it must
            // not help to stand first.
            let order = if step == other_step {
                [(first, "a"), (second, "b")]
            } else {
                [(second, "a"), (first, "b")]
            };
            for (breach, name) in order {
                case.prepare(breach, name);
            }
            for (breach, name) in order {
                case.commit(breach, name);
            }
            refused_as(&case, first, code);
            pairs += 1;
        }
    }
    assert_eq!(pairs, 28 * 27 / 2 - 6 - 1 - 3);
}

/// On one guard, the fence speaks before the caller's identity does.
#[test]
fn on_one_guard_the_fence_comes_before_the_holder() {
    for (sequence, holder, code) in [
        (4, "v", "StaleTerm"),
        (5, "v", "HolderConflict"),
        (16, "v", "SequenceJump"),
        (15, "v", "WrongHolder"),
    ] {
        let mut case = Case::new();
        case.prepare(B::StaleTerm, "a");
        case.change("a", put("a", "1"), current(sequence, holder));
        assert_eq!(case.reason().unwrap().code(), code);
    }
    let mut case = Case::new();
    case.prepare(B::StaleTerm, "a");
    case.change("a", put("a", "1"), current(15, "w"));
    assert_eq!(case.reason(), None);
}

/// What a metadata update implies is judged after the conditions that were named.
#[test]
fn a_named_condition_comes_before_an_implied_one() {
    let mut case = Case::new();
    case.change("a", label("a", "t"), current(1, "w"));
    let failed = |case: &Case| match case.reason() {
        Some(Reason::ConditionFailed { index, .. }) => index,
        other => panic!("{other:?}"),
    };
    assert_eq!(failed(&case), None);
    case.commit(B::ConditionFailed, "n");
    assert_eq!(failed(&case), Some(2));
}

/// The kinds of malformed, two at a time.
#[test]
fn sizes_are_judged_before_doubles() {
    let large = "v".repeat(65);
    let twice = [put("a", &large), put("a", "1")];
    for (changes, kind) in [
        (Vec::new(), Some("Empty")),
        (twice.to_vec(), Some("ValueTooLarge")),
        (
            vec![put("a", "1"), put("a", "1"), advance("b"), advance("b")],
            Some("DuplicateKey"),
        ),
        (
            vec![advance("b"), advance("b"), advance("")],
            Some("DuplicateGuard"),
        ),
        (vec![put("q", "1"), advance("")], Some("NoSuchGuard")),
        (vec![put("q", "1")], Some("UntouchedGuard")),
    ] {
        let mut case = Case::new();
        case.request.changes = changes;
        assert_eq!(malformed(&case.reason().unwrap()), kind);
    }
}
