//! The status of each reason, stated apart from the code that makes it.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{Reason, Rejection, Rule};
use highwater_proto::{convert, status, v1};
use tonic::Code;
use tonic_types::StatusExt;

use crate::samples::rejections;

/// The codes as the contract's page on rejections lists them.
const CODES: [(&str, Code); 33] = [
    ("Malformed", Code::InvalidArgument),
    ("WrongDestination", Code::FailedPrecondition),
    ("UnknownDomain", Code::NotFound),
    ("DomainExists", Code::AlreadyExists),
    ("TooManyDomains", Code::ResourceExhausted),
    ("Frozen", Code::Unavailable),
    ("RecoveryRequired", Code::Unavailable),
    ("Poisoned", Code::Unavailable),
    ("Overloaded", Code::ResourceExhausted),
    ("DiskFull", Code::ResourceExhausted),
    ("Incomplete", Code::Unavailable),
    ("AuthorityRequired", Code::InvalidArgument),
    ("PreconditionRequired", Code::InvalidArgument),
    ("StaleEpoch", Code::FailedPrecondition),
    ("UnknownEpoch", Code::FailedPrecondition),
    ("StaleTerm", Code::FailedPrecondition),
    ("HolderConflict", Code::FailedPrecondition),
    ("SequenceJump", Code::FailedPrecondition),
    ("WrongHolder", Code::PermissionDenied),
    ("ConditionFailed", Code::Aborted),
    ("TooOld", Code::Aborted),
    ("RevisionExhausted", Code::ResourceExhausted),
    ("MetagenerationExhausted", Code::ResourceExhausted),
    ("IntentConflict", Code::AlreadyExists),
    ("IntentClosed", Code::AlreadyExists),
    ("UnknownIntent", Code::NotFound),
    ("IntentExhausted", Code::ResourceExhausted),
    ("LeaseHeld", Code::Aborted),
    ("LeaseDelayed", Code::Aborted),
    ("LeaseGone", Code::FailedPrecondition),
    ("UnknownTerm", Code::FailedPrecondition),
    ("NotLeased", Code::FailedPrecondition),
    ("SequenceExhausted", Code::ResourceExhausted),
];

fn code_of(rejection: &Rejection) -> Code {
    let name = rejection.reason.code();
    let listed = CODES.iter().find(|(listed, _)| *listed == name);
    listed.unwrap_or_else(|| panic!("{name} isn't listed")).1
}

#[test]
fn every_reason_has_its_code_and_comes_back_whole() {
    let mut seen = BTreeSet::new();
    for rejection in rejections() {
        let answer = status::from_rejection(&rejection);
        assert_eq!(answer.code(), code_of(&rejection), "{rejection}");
        seen.insert(rejection.reason.code());
        assert_eq!(status::rejection(&answer), Some(Ok(rejection)));
    }
    let listed: BTreeSet<&str> = CODES.iter().map(|(name, _)| *name).collect();
    assert_eq!(seen, listed);
}

#[test]
fn lost_authority_and_failed_conditions_never_share_a_code() {
    for rejection in rejections() {
        let code = status::from_rejection(&rejection).code();
        let lost = rejection.reason.is_lost_authority();
        assert_eq!(code == Code::FailedPrecondition, lost, "{rejection}");
        let condition = matches!(
            rejection.reason,
            Reason::ConditionFailed { .. }
                | Reason::TooOld { .. }
                | Reason::LeaseHeld { .. }
                | Reason::LeaseDelayed { .. }
        );
        assert_eq!(code == Code::Aborted, condition, "{rejection}");
        assert!(!matches!(code, Code::Ok | Code::Unknown), "{rejection}");
    }
}

#[test]
fn standard_details_name_the_reason_and_what_was_observed() {
    for rejection in rejections() {
        let answer = status::from_rejection(&rejection);
        let info = answer.get_details_error_info().unwrap();
        assert_eq!(info.reason, rejection.reason.code());
        assert_eq!(info.domain, "highwater.v1");
        let fact = |name: &str| info.metadata.get(name).map(String::as_str);
        let observed = &rejection.observed;
        assert_eq!(
            fact("revision"),
            Some(observed.revision.to_string().as_str())
        );
        let sequence = observed.fence.as_ref().map(|_| "18446744073709551614");
        assert_eq!(fact("sequence"), sequence);
        let retry = answer.get_details_retry_info().is_some();
        let unavailable = rejection.reason.rule() == Rule::R4;
        assert_eq!(retry, unavailable, "{rejection}");
    }
}

#[test]
fn wire_names_are_the_names_of_the_reasons() {
    let mut names = BTreeMap::new();
    for rejection in rejections() {
        let code: v1::Code = convert::code_of(&rejection.reason);
        let name = code.as_str_name().strip_prefix("CODE_").unwrap();
        let camel: String = name
            .split('_')
            .flat_map(|word| {
                let lower = word
                    .chars()
                    .skip(1)
                    .map(|letter| letter.to_ascii_lowercase());
                word.chars().take(1).chain(lower)
            })
            .collect();
        assert_eq!(camel, rejection.reason.code());
        names.insert(camel, i32::from(code));
    }
    let numbers: BTreeSet<i32> = names.values().copied().collect();
    assert_eq!(numbers.len(), CODES.len());
}

/// Statuses travel in headers, which common clients bound at 8 KiB.
#[test]
fn the_largest_status_fits_in_headers() {
    for rejection in rejections() {
        let answer = status::from_rejection(&rejection);
        let escaped = answer.message().len() * 3;
        let encoded = answer.details().len().div_ceil(3) * 4;
        assert!(escaped + encoded < 8_000, "{}", escaped + encoded);
    }
}

#[test]
fn a_status_of_somebody_else_holds_no_rejection() {
    for code in [Code::FailedPrecondition, Code::Aborted, Code::Unavailable] {
        assert_eq!(
            status::rejection(&tonic::Status::new(code, "a proxy's word")),
            None
        );
    }
}

#[test]
fn a_watch_that_is_too_old_says_from_where_it_could_begin() {
    let detail = v1::WatchTooOld {
        requested: 1 << 48,
        oldest: u64::MAX,
    };
    let answer = status::watch_too_old(&detail);
    assert_eq!(answer.code(), Code::OutOfRange);
    assert_eq!(status::too_old(&answer), Some(detail));
    assert_eq!(status::rejection(&answer), None);
}

#[test]
fn only_a_refusal_before_execution_says_so() {
    let refused = status::not_executed(Code::ResourceExhausted, "too many scans");
    assert!(status::is_not_executed(&refused));
    assert_eq!(status::rejection(&refused), None);
    for rejection in rejections() {
        assert!(!status::is_not_executed(&status::from_rejection(
            &rejection
        )));
    }
    assert!(!status::is_not_executed(&tonic::Status::unavailable(
        "a proxy's word"
    )));
}
