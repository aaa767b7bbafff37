//! Whether what concurrent callers saw is what one after the other would have seen.
//!
//! The revisions in the answers say in which order the store claims to have judged; so the order
//! needn't be searched for. The claim is checked from both sides: replayed in this order, the model
//! gives each call exactly the answer that it got, and the order agrees with what ended before what
//! began.

use crate::model::Model;
use crate::plans::Statement;
use crate::raw::Request;
use crate::seen::Refusal;

/// What a call got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was accepted.
    Accepted(Statement),
    /// It was refused, on the state of this revision.
    Refused(u64, Refusal),
}

/// A call that has ended. Begin and end are moments of one clock that all callers share.
#[derive(Clone, Debug)]
pub struct Call {
    /// Before it was sent.
    pub begin: u64,
    /// After it was answered.
    pub end: u64,
    /// What was asked.
    pub request: Request,
    /// What was answered.
    pub answer: Answer,
}

impl Call {
    /// The revision of the state that it was judged on.
    const fn judged_on(&self) -> u64 {
        match &self.answer {
            Answer::Accepted(statement) => statement.revision - 1,
            Answer::Refused(revision, _) => *revision,
        }
    }

    /// The revision of the state that it left.
    const fn left(&self) -> u64 {
        match &self.answer {
            Answer::Accepted(statement) => statement.revision,
            Answer::Refused(revision, _) => *revision,
        }
    }
}

/// Replays a history on the state before it and returns the state after it.
///
/// # Errors
///
/// The first call that got another answer than the model gives, a revision that nobody got, or two
/// calls whose order in the store contradicts their order in time.
pub fn check(mut model: Model, mut calls: Vec<Call>) -> Result<Model, String> {
    in_real_time(&calls)?;
    // On one state, what was refused comes before what was accepted and so ended it.
    calls.sort_by_key(|call| {
        let accepted = matches!(call.answer, Answer::Accepted(_));
        (call.judged_on(), accepted)
    });
    for call in &calls {
        if call.judged_on() != model.revision {
            return Err(format!(
                "the state of revision {} was seen, but revision {} is the last that anybody got",
                call.judged_on(),
                model.revision
            ));
        }
        let verdict = model.judge(&call.request).map(|_| ());
        let expected = match verdict {
            Ok(()) => Answer::Accepted(model.apply(&call.request)),
            Err(refusal) => Answer::Refused(model.revision, *refusal),
        };
        if expected != call.answer {
            return Err(format!("expected {expected:?} for {call:?}"));
        }
    }
    Ok(model)
}

/// Nobody sees a state older than what was there when its call began, nor one that was only made
/// after its call had ended.
fn in_real_time(calls: &[Call]) -> Result<(), String> {
    let mut ends: Vec<&Call> = calls.iter().collect();
    ends.sort_by_key(|call| call.end);
    let mut begins: Vec<&Call> = calls.iter().collect();
    begins.sort_by_key(|call| call.begin);
    let mut ended = ends.iter().peekable();
    let mut oldest = 0;
    for call in begins {
        while let Some(earlier) = ended.next_if(|earlier| earlier.end < call.begin) {
            oldest = oldest.max(earlier.left());
        }
        if call.judged_on() < oldest {
            return Err(format!(
                "revision {oldest} was known before this began: {call:?}"
            ));
        }
    }
    Ok(())
}
