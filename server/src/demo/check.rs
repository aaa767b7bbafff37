//! What must come out of a step, what did, and how the two differ.

/// The verdict of an accepted commit; every other verdict is the code of a rejection.
pub(crate) const ACCEPTED: &str = "Accepted";
/// The verdicts of two writers of which one must win.
pub(crate) const ONE_OF_TWO: &str = "Accepted and ConditionFailed";

/// The verdict of a step of an intent that had been accepted before.
pub(crate) const REPLAYED: &str = "Replayed";
/// What a replacement is told of an intent that took effect, and of one that didn't.
pub(crate) const PRESENT: &str = "Present";
pub(crate) const ABSENT: &str = "Absent";

/// What must come out of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Expected {
    /// The verdict; `None` where the store isn't asked for one.
    pub(crate) verdict: Option<&'static str>,
    /// The fence that is stated with the verdict: of the receipt, or of the rejection's evidence.
    pub(crate) fence: Option<(u64, &'static str)>,
    /// The job's result as it is stored afterwards.
    pub(crate) result: Option<&'static str>,
    /// Whether the result's generation is as it was before.
    pub(crate) generation_kept: bool,
}

/// What came out of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    /// As in [`Expected`].
    pub(crate) verdict: Option<String>,
    /// The sentence for people.
    pub(crate) message: String,
    /// As in [`Expected`].
    pub(crate) fence: Option<(u64, String)>,
    /// As in [`Expected`].
    pub(crate) result: Option<String>,
    /// As in [`Expected`].
    pub(crate) generation_kept: bool,
}

/// One thing that isn't as it must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Difference {
    /// What.
    pub(crate) what: &'static str,
    /// What it must be.
    pub(crate) expected: String,
    /// What it is.
    pub(crate) seen: String,
}

/// Everything that isn't as it must be.
pub(crate) fn differences(expected: &Expected, seen: &Seen) -> Vec<Difference> {
    let fence = |fence: Option<(u64, &str)>| {
        fence.map_or("none".into(), |(sequence, holder)| {
            format!("{sequence}@{holder}")
        })
    };
    let or_none = |text: Option<&str>| text.unwrap_or("none").to_owned();
    let observed = seen.fence.as_ref();
    let observed = observed.map(|(sequence, holder)| (*sequence, holder.as_str()));
    let rows = [
        (
            "the verdict",
            or_none(expected.verdict),
            or_none(seen.verdict.as_deref()),
        ),
        ("the stated fence", fence(expected.fence), fence(observed)),
        (
            "the stored result",
            or_none(expected.result),
            or_none(seen.result.as_deref()),
        ),
        (
            "whether the generation is untouched",
            expected.generation_kept.to_string(),
            seen.generation_kept.to_string(),
        ),
    ];
    let differing = rows
        .into_iter()
        .filter(|(_, expected, seen)| expected != seen);
    let difference = |(what, expected, seen)| Difference {
        what,
        expected,
        seen,
    };
    differing.map(difference).collect()
}
