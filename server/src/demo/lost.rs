//! The second story: an acknowledgement is lost, its holder too, and a replacement finds out.

use super::check::{ABSENT, ACCEPTED, Expected, PRESENT, REPLAYED};
use super::timeline::{Act, Step};

const A: &str = "A";
const B: &str = "B";
const FIRST: &str = "paid 17";
const BOTH: &str = "paid 17 and 18";

const fn said(
    verdict: &'static str,
    fence: Option<(u64, &'static str)>,
    result: Option<&'static str>,
    generation_kept: bool,
) -> Expected {
    Expected {
        verdict: Some(verdict),
        fence,
        result,
        generation_kept,
    }
}

const fn step(at: u64, says: &'static str, act: Act, expected: Expected) -> Step {
    Step {
        at,
        says,
        act,
        expected,
    }
}

const fn pay(holder: &'static str, intent: &'static str, ledger: &'static str) -> Act {
    Act::Pay {
        holder,
        intent,
        ledger,
    }
}

const fn asks(holder: &'static str, intent: &'static str) -> Act {
    Act::Reconcile { holder, intent }
}

/// The whole story.
pub(crate) const LOST: &[Step] = &[
    step(
        0,
        "A asks the store itself for a lease on account L, and is granted term 1.",
        Act::Acquire { holder: A },
        said(ACCEPTED, Some((1, A)), None, true),
    ),
    step(
        1,
        "A says that it is about to make payment 17.",
        Act::Bind {
            holder: A,
            intent: "pay/17",
        },
        said(ACCEPTED, Some((1, A)), None, true),
    ),
    step(
        2,
        "A makes payment 17. The answer is lost on its way; A knows nothing of it.",
        pay(A, "pay/17", FIRST),
        said(ACCEPTED, Some((1, A)), Some(FIRST), false),
    ),
    step(
        3,
        "A is gone. An operator revokes its lease.",
        Act::Revoke,
        Expected {
            verdict: None,
            fence: None,
            result: Some(FIRST),
            generation_kept: true,
        },
    ),
    step(
        4,
        "B gets the account: term 2, which fences A out in the same step.",
        Act::Acquire { holder: B },
        said(ACCEPTED, Some((2, B)), Some(FIRST), true),
    ),
    step(
        5,
        "B asks what became of payment 17.",
        asks(B, "pay/17"),
        said(PRESENT, Some((2, B)), Some(FIRST), true),
    ),
    step(
        6,
        "B asks what became of payment 18.",
        asks(B, "pay/18"),
        said(ABSENT, Some((2, B)), Some(FIRST), true),
    ),
    step(
        7,
        "A wakes up and sends payment 17 again: it gets the answer that was lost, and no more.",
        pay(A, "pay/17", FIRST),
        said(REPLAYED, Some((1, A)), Some(FIRST), true),
    ),
    step(
        8,
        "A goes on with payment 18, which B was told is absent.",
        pay(A, "pay/18", BOTH),
        said("StaleTerm", Some((2, B)), Some(FIRST), true),
    ),
    step(
        9,
        "B makes payment 18.",
        pay(B, "pay/18", BOTH),
        said(ACCEPTED, Some((2, B)), Some(BOTH), false),
    ),
    step(
        10,
        "B sends it once more, to be sure.",
        pay(B, "pay/18", BOTH),
        said(REPLAYED, Some((2, B)), Some(BOTH), true),
    ),
    step(
        11,
        "Somebody uses the same name for another payment.",
        pay(B, "pay/18", "paid 17, 18 and 19"),
        said("IntentConflict", None, Some(BOTH), true),
    ),
    step(
        12,
        "The store dies, and A sends payment 17 for the last time.",
        Act::Kill,
        Expected {
            verdict: None,
            fence: None,
            result: None,
            generation_kept: true,
        },
    ),
    step(
        13,
        "The answer is still the first one.",
        pay(A, "pay/17", FIRST),
        said(REPLAYED, Some((1, A)), Some(BOTH), true),
    ),
];
