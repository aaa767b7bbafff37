//! Every reason there is can be had, has its step, its code, its class and a sentence.

use std::collections::BTreeSet;

use highwater_core::{
    CreateDomain, EpochMark, IntentConflict, Malformed, NameError, Observed, PolicyError, Reason,
    Rejection, Rule, Unavailable, Verdict, decide,
};

use crate::order::{BREACHES, Case};
use crate::raw::{Change, auth, authority, guard, put, request};
use crate::reads::read;
use crate::twin::{malformed, name, policy};

/// What is written down about a reason: step, code, whether it ends the holder's work. A new reason
/// doesn't compile until it stands here.
fn entry(reason: &Reason) -> (Rule, &'static str, bool) {
    use Rule::{R1, R2, R3, R4, R5, R6, R7, R8, R9};
    match reason {
        Reason::Malformed(_) => (R1, "Malformed", false),
        Reason::WrongDestination => (R2, "WrongDestination", true),
        Reason::UnknownDomain => (R2, "UnknownDomain", false),
        Reason::DomainExists => (R2, "DomainExists", false),
        Reason::TooManyDomains => (R2, "TooManyDomains", false),
        Reason::Unavailable(why) => match why {
            Unavailable::Frozen => (R4, "Frozen", false),
            Unavailable::RecoveryRequired => (R4, "RecoveryRequired", false),
            Unavailable::Poisoned => (R4, "Poisoned", false),
            Unavailable::Overloaded => (R4, "Overloaded", false),
            Unavailable::DiskFull => (R4, "DiskFull", false),
            Unavailable::Incomplete => (R4, "Incomplete", false),
        },
        Reason::AuthorityRequired => (R5, "AuthorityRequired", false),
        Reason::PreconditionRequired => (R5, "PreconditionRequired", false),
        Reason::StaleEpoch { .. } => (R6, "StaleEpoch", true),
        Reason::UnknownEpoch { .. } => (R6, "UnknownEpoch", true),
        Reason::StaleTerm { .. } => (R7, "StaleTerm", true),
        Reason::HolderConflict { .. } => (R7, "HolderConflict", true),
        Reason::SequenceJump { .. } => (R7, "SequenceJump", true),
        Reason::WrongHolder { .. } => (R7, "WrongHolder", false),
        Reason::ConditionFailed { .. } => (R8, "ConditionFailed", false),
        Reason::TooOld { .. } => (R8, "TooOld", false),
        Reason::RevisionExhausted => (R9, "RevisionExhausted", false),
        Reason::MetagenerationExhausted => (R9, "MetagenerationExhausted", false),
        Reason::IntentConflict(IntentConflict::Digest | IntentConflict::Step { .. }) => {
            (R3, "IntentConflict", false)
        }
        Reason::IntentConflict(_) => (R8, "IntentConflict", false),
        Reason::IntentClosed { mutation: None, .. } => (R3, "IntentClosed", false),
        Reason::IntentClosed { .. } => (R8, "IntentClosed", false),
        Reason::UnknownIntent => (R8, "UnknownIntent", false),
        Reason::IntentExhausted { .. } => (R9, "IntentExhausted", false),
        Reason::UnknownTerm { .. } => (R7, "UnknownTerm", true),
        Reason::NotLeased { .. } => (R7, "NotLeased", true),
        Reason::LeaseHeld { .. } => (R8, "LeaseHeld", false),
        Reason::LeaseDelayed { .. } => (R8, "LeaseDelayed", false),
        Reason::LeaseGone { .. } => (R8, "LeaseGone", true),
        Reason::SequenceExhausted => (R9, "SequenceExhausted", false),
    }
}

/// How many codes [`entry`] knows.
const CODES: usize = 33;

/// One rejection of each reason, each from the core itself.
fn every_rejection() -> Vec<Rejection> {
    let mut all = Vec::new();
    for (breach, _, _) in BREACHES {
        let mut case = Case::new();
        case.prepare(breach, "a");
        case.commit(breach, "a");
        if let Verdict::Rejected(rejection) = case.twin.judge(&case.request) {
            all.push(*rejection);
        }
    }
    let mut case = Case::new();
    let commit = case.request.commit();
    let mut view = case.twin.state.view(&commit);
    view.keys.clear();
    match decide(&view, &commit) {
        Verdict::Rejected(rejection) => all.push(*rejection),
        Verdict::Accepted(_) | Verdict::Replayed(_) => {
            panic!("a decision on rows that nobody fetched")
        }
    }
    let rules = case.twin.model.rules;
    let create = CreateDomain::new(name(), policy(rules), EpochMark::new(1));
    all.push(*case.twin.state.create_domain(&create).unwrap_err());
    let mut other = create.clone();
    other.name = highwater_core::DomainName::new("other").unwrap();
    let view = highwater_core::View::new(*case.twin.state.destination(), None);
    all.push(*highwater_core::create_domain(&view, 1_024, &other).unwrap_err());
    all.extend(crate::leases::rejections());
    all
}

#[test]
fn every_reason_is_reachable_and_stands_in_the_table() {
    let mut codes = BTreeSet::new();
    for rejection in every_rejection() {
        let reason = &rejection.reason;
        let (rule, code, lost) = entry(reason);
        assert_eq!((reason.rule(), reason.code()), (rule, code));
        assert_eq!(reason.is_lost_authority(), lost, "{code}");
        let text = rejection.to_string();
        let sentence = text.strip_prefix(&format!("{code}: ")).unwrap();
        assert!(sentence.len() > 10, "{text}");
        codes.insert(code);
    }
    assert_eq!(codes.len(), CODES, "{codes:?}");
}

/// Kinds of malformed that a decision gives; the rest comes from the checked constructors and from
/// what reads requests off a wire.
fn judged(kind: &Malformed) -> bool {
    match kind {
        Malformed::Empty
        | Malformed::Missing { .. }
        | Malformed::TooMany { .. }
        | Malformed::ValueTooLarge { .. }
        | Malformed::CommitTooLarge { .. }
        | Malformed::DuplicateKey(_)
        | Malformed::DuplicateGuard(_)
        | Malformed::UntouchedGuard(_)
        | Malformed::NoSuchGuard(_)
        | Malformed::DuplicateIntent(_) => true,
        Malformed::Name(_)
        | Malformed::Metadata(_)
        | Malformed::Policy(_)
        | Malformed::Number { .. } => false,
    }
}

#[test]
fn every_kind_of_malformed_is_reachable() {
    let case = Case::new();
    let many = (0..1_025).map(|n| put(&format!("k{n}"), "")).collect();
    let value = |key: &str, length: usize| put(key, &"v".repeat(length));
    let full = (0..16).map(|n| value(&format!("k{n}"), 1 << 20)).collect();
    let mut stray = request(vec![put("k", "")]);
    stray.auth = crate::raw::Auths::PerGuard(vec![(b"q".to_vec(), auth(1, 1, 1, "a"))]);
    let requests = [
        request(Vec::new()),
        request(many),
        request(vec![value("k", 65)]),
        request(vec![put("k", ""), put("k", "")]),
        request(vec![crate::raw::advance("k"), crate::raw::advance("k")]),
        request(vec![crate::raw::advance("")]),
        request(vec![
            Change::Close(b"i".to_vec(), None, "rejected"),
            Change::Close(b"i".to_vec(), None, "rejected"),
        ]),
        stray,
    ];
    let rules = case.twin.model.rules;
    let roomy = crate::twin::Twin::with_values(rules, 1 << 20);
    let mut verdicts: Vec<_> = requests.iter().map(|r| case.twin.judge(r)).collect();
    verdicts.push(roomy.judge(&request(full)));
    let mut kinds = BTreeSet::new();
    for verdict in verdicts {
        let Verdict::Rejected(rejection) = verdict else {
            panic!("malformed and accepted");
        };
        let Reason::Malformed(kind) = &rejection.reason else {
            panic!("{rejection}");
        };
        assert!(judged(kind));
        assert!(rejection.to_string().starts_with("Malformed: "));
        kinds.insert(malformed(&rejection.reason).unwrap());
    }
    let nowhere = read(&[], auth(1, 1, 1, "a"));
    let refused = case.twin.state.admit_read(&nowhere).unwrap_err();
    kinds.insert(malformed(&refused.reason).unwrap());
    assert_eq!(kinds.len(), 10, "{kinds:?}");
}

/// What a checked constructor refuses becomes a malformed request, with the same sentence.
#[test]
fn what_a_constructor_refuses_is_malformed() {
    let name = NameError::Empty { what: "key" };
    let depth = PolicyError::Depth { depth: 0 };
    let label = highwater_core::MetadataError::DuplicateLabel;
    for (kind, sentence) in [
        (Malformed::from(name.clone()), name.to_string()),
        (Malformed::from(depth), depth.to_string()),
        (Malformed::from(label.clone()), label.to_string()),
    ] {
        assert!(!judged(&kind));
        assert_eq!(kind.to_string(), sentence);
    }
}

/// A rejection names what was presented and what stood against it.
#[test]
fn the_sentence_carries_the_evidence() {
    let mut case = Case::new();
    case.prepare(crate::order::Breach::StaleTerm, "a");
    case.commit(crate::order::Breach::StaleTerm, "a");
    let Verdict::Rejected(rejection) = case.twin.judge(&case.request) else {
        panic!("a stale term was accepted");
    };
    let text = rejection.to_string();
    for part in [
        "2.0000000000000022/4@w",
        "2.0000000000000022/5@w",
        "guard 'a'",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // Evidence is data, too: the observed fence is the one that the view shows.
    let view = case.twin.state.view(&case.request.commit());
    let observed = Observed::of(&view).guard(&guard(b"a"), &view);
    assert_eq!(rejection.observed, observed);
    let fence = observed.fence.unwrap();
    assert_eq!(fence, authority(&auth(2, 0x22, 5, "w")).to_fence());
}
