//! What may be said of an intent's effects by one who asks what earlier holders did.

use crate::intent::{IntentRecord, IntentState};
use crate::names::Guard;

/// What became of an intent, as far as it is known here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effects {
    /// Steps of it took effect: their receipts are in its record.
    Present,
    /// No step of it took effect, and none by an earlier holder can any more.
    Absent,
    /// No step of it is known, but one may still take effect.
    Indeterminate,
}

/// What is said of an intent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Finding {
    /// Its effects.
    pub effects: Effects,
    /// Whether no earlier holder can add a step any more.
    pub settled: bool,
}

impl Finding {
    /// Judges a record, or that there is none. `fenced` is the guard that the one who asks had
    /// fenced before the record was read; `None` if nothing was fenced.
    ///
    /// An earlier holder can add nothing once the intent has ended, or once it is bound to the
    /// guard that was fenced, since its steps need an authority for that guard. Without a fence
    /// nobody is told that something is absent.
    ///
    /// ```
    /// use highwater_core::{Effects, Finding};
    ///
    /// // Nothing is known of it, and whoever asks has fenced nobody.
    /// let finding = Finding::of(None, None);
    /// assert_eq!(finding.effects, Effects::Indeterminate);
    /// assert!(!finding.settled);
    /// ```
    #[must_use]
    pub fn of(record: Option<&IntentRecord>, fenced: Option<&Guard>) -> Self {
        let ended = record.is_some_and(|record| matches!(record.state, IntentState::Ended(_)));
        let bound = record.and_then(IntentRecord::guard);
        let settled = ended || (bound.is_some() && bound == fenced);
        let any = record.is_some_and(|record| !record.steps.is_empty());
        let effects = match (any, settled && fenced.is_some()) {
            (true, _) => Effects::Present,
            (false, true) => Effects::Absent,
            (false, false) => Effects::Indeterminate,
        };
        Self { effects, settled }
    }
}
