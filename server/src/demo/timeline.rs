//! The timeline: what happens, and what must come out of it.

use super::check::{ACCEPTED, Expected, ONE_OF_TWO};

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// When, in seconds since the beginning.
    pub(crate) at: u64,
    /// What happens, for people.
    pub(crate) says: &'static str,
    /// What is done.
    pub(crate) act: Act,
    /// What must come out.
    pub(crate) expected: Expected,
}

/// Which epoch an authority names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EpochOf {
    /// The domain's.
    Domain,
    /// The same number with another mark, as a fork of the store would have it.
    Stranger,
}

/// What is done in a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Something outside the store; it isn't asked.
    Outside,
    /// A new version of the job's input is published.
    Publish(&'static str),
    /// A worker raises the job's fence and reads the input, which must be of this version.
    TakeOver {
        sequence: u64,
        holder: &'static str,
        input: &'static str,
    },
    /// A worker writes the job's result.
    Write {
        epoch: EpochOf,
        sequence: u64,
        holder: &'static str,
        result: &'static str,
        /// Only if the generation is the one of the first result.
        if_first_generation: bool,
    },
    /// Two writers create the same key at once, each only if it doesn't exist.
    Race,
    /// The store dies without being closed, and what is on disk is opened.
    Kill,
    /// A worker asks the store for a lease on the account.
    Acquire { holder: &'static str },
    /// An operator takes the account's lease away.
    Revoke,
    /// A worker says what it is about to pay, under the term that it was granted.
    Bind {
        holder: &'static str,
        intent: &'static str,
    },
    /// A worker pays: the first and last step of an intent. The ledger is the account's result.
    Pay {
        holder: &'static str,
        intent: &'static str,
        ledger: &'static str,
    },
    /// A replacement asks what became of an intent.
    Reconcile {
        holder: &'static str,
        intent: &'static str,
    },
}

impl Act {
    /// Whether it is about the account, and not about the job.
    pub(crate) const fn is_payment(self) -> bool {
        matches!(
            self,
            Self::Acquire { .. }
                | Self::Revoke
                | Self::Bind { .. }
                | Self::Pay { .. }
                | Self::Reconcile { .. }
        )
    }
}

const fn outside(result: Option<&'static str>) -> Expected {
    Expected {
        verdict: None,
        fence: None,
        result,
        generation_kept: true,
    }
}

const fn accepted(fence: (u64, &'static str), result: &'static str, kept: bool) -> Expected {
    Expected {
        verdict: Some(ACCEPTED),
        fence: Some(fence),
        result: Some(result),
        generation_kept: kept,
    }
}

const fn refused(code: &'static str, fence: (u64, &'static str), result: &'static str) -> Expected {
    Expected {
        verdict: Some(code),
        fence: Some(fence),
        result: Some(result),
        generation_kept: true,
    }
}

const fn write(sequence: u64, holder: &'static str, result: &'static str) -> Act {
    Act::Write {
        epoch: EpochOf::Domain,
        sequence,
        holder,
        result,
        if_first_generation: false,
    }
}

const DRAFT: &str = "draft of version 8, by A";
const LATE: &str = "result of version 8, by A";
const DONE: &str = "result of version 9, by B";
const BACK: &str = "result of version 9, checked by A";

/// The whole demonstration.
pub(crate) const TIMELINE: &[Step] = &[
    Step {
        at: 0,
        says: "Version 8 of J's input is published.",
        act: Act::Publish("version 8"),
        expected: outside(None),
    },
    Step {
        at: 0,
        says: "The coordinator grants A term 41 for 30 s. A takes J over and reads version 8.",
        act: Act::TakeOver {
            sequence: 41,
            holder: "A",
            input: "version 8",
        },
        expected: Expected {
            verdict: Some(ACCEPTED),
            fence: Some((41, "A")),
            result: None,
            generation_kept: true,
        },
    },
    Step {
        at: 10,
        says: "The coordinator renews A's lease until t = 40. A writes a draft.",
        act: write(41, "A", DRAFT),
        expected: accepted((41, "A"), DRAFT, false),
    },
    Step {
        at: 10,
        says: "A is paused for 45 s, with its result ready to be sent.",
        act: Act::Outside,
        expected: outside(Some(DRAFT)),
    },
    Step {
        at: 20,
        says: "Version 9 of J's input is published.",
        act: Act::Publish("version 9"),
        expected: outside(Some(DRAFT)),
    },
    Step {
        at: 40,
        says: "A's lease lapses. The coordinator knows; A doesn't.",
        act: Act::Outside,
        expected: outside(Some(DRAFT)),
    },
    Step {
        at: 41,
        says: "The coordinator grants B term 42. B takes J over, reads version 9 and works.",
        act: Act::TakeOver {
            sequence: 42,
            holder: "B",
            input: "version 9",
        },
        expected: accepted((42, "B"), DRAFT, true),
    },
    Step {
        at: 55,
        says: "A wakes up, believes that it holds J, and commits its result of version 8.",
        act: write(41, "A", LATE),
        expected: refused("StaleTerm", (42, "B"), DRAFT),
    },
    Step {
        at: 56,
        says: "B commits its result of version 9.",
        act: write(42, "B", DONE),
        expected: accepted((42, "B"), DONE, false),
    },
    Step {
        at: 57,
        says: "C presents term 42, too, which is B's.",
        act: write(42, "C", "by C"),
        expected: refused("HolderConflict", (42, "B"), DONE),
    },
    Step {
        at: 58,
        says: "B presents an old term of its own, 40.",
        act: write(40, "B", "by B in term 40"),
        expected: refused("StaleTerm", (42, "B"), DONE),
    },
    Step {
        at: 59,
        says: "D presents term 99 of an epoch that was never installed here.",
        act: Act::Write {
            epoch: EpochOf::Stranger,
            sequence: 99,
            holder: "D",
            result: "by D",
            if_first_generation: false,
        },
        expected: Expected {
            verdict: Some("UnknownEpoch"),
            fence: None,
            result: Some(DONE),
            generation_kept: true,
        },
    },
    Step {
        at: 60,
        says: "The coordinator grants A a newer term, 43. A commits again: failback.",
        act: write(43, "A", BACK),
        expected: accepted((43, "A"), BACK, false),
    },
    Step {
        at: 61,
        says: "A, still in term 43, writes on the condition that its draft is unchanged.",
        act: Act::Write {
            epoch: EpochOf::Domain,
            sequence: 43,
            holder: "A",
            result: "over the draft",
            if_first_generation: true,
        },
        expected: Expected {
            verdict: Some("ConditionFailed"),
            fence: None,
            result: Some(BACK),
            generation_kept: true,
        },
    },
    Step {
        at: 62,
        says: "Two writers create one key at once, each on the condition that it doesn't exist.",
        act: Act::Race,
        expected: Expected {
            verdict: Some(ONE_OF_TWO),
            fence: None,
            result: Some(BACK),
            generation_kept: true,
        },
    },
    Step {
        at: 63,
        says: "The store dies: a copy of its files, taken while it is open, is opened instead.",
        act: Act::Kill,
        expected: outside(Some(BACK)),
    },
    Step {
        at: 64,
        says: "A's result of version 8 arrives once more, in term 41.",
        act: write(41, "A", LATE),
        expected: refused("StaleTerm", (43, "A"), BACK),
    },
    Step {
        at: 65,
        says: "A writes in term 43, which is still the highest.",
        act: write(43, "A", "final result, by A"),
        expected: accepted((43, "A"), "final result, by A", false),
    },
];
