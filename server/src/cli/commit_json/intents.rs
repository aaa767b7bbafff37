//! What a commit's JSON says of intents.

use highwater::{Ending, Input, IntentUse, Mutation, Step, Work};
use serde::Deserialize;

use super::super::input::{self, InputError};
use super::super::intent_args;
use super::{guard, key};

/// Which step of which intent the commit is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepForm {
    id: String,
    step: u32,
    #[serde(default)]
    completes: bool,
}

/// One thing that work starts from: a key with its generation, or a name with its digest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputForm {
    key: Option<String>,
    generation: Option<String>,
    name: Option<String>,
    digest: Option<String>,
}

/// How an intent ends.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EndingForm {
    Completed,
    Superseded,
    Cancelled,
    Rejected,
}

impl StepForm {
    pub(super) fn read(self) -> Result<IntentUse, InputError> {
        let what = "step";
        Ok(IntentUse {
            id: intent_args::intent(&self.id)?,
            step: Step::new(self.step).ok_or(InputError::Number { what })?,
            completes: self.completes,
        })
    }
}

impl InputForm {
    fn read(self) -> Result<Input, InputError> {
        match (self.key, self.generation, self.name, self.digest) {
            (Some(name), Some(generation), None, None) => Ok(Input::Key {
                key: key(&name)?,
                generation: input::generation(&generation)?,
            }),
            (None, None, Some(name), Some(digest)) => Ok(Input::Named {
                name: intent_args::input_name(&name)?,
                digest: input::digest(&digest)?,
            }),
            _ => Err(InputError::Form {
                form: "key and generation, or name and digest",
            }),
        }
    }
}

/// A binding.
pub(super) fn bind(
    intent: &str,
    under: &str,
    inputs: Vec<InputForm>,
    configuration: Option<String>,
) -> Result<Mutation, InputError> {
    let mut work = Work::under(guard(under)?);
    for form in inputs {
        work = work.from_input(form.read()?);
    }
    if let Some(version) = configuration {
        work = work.configured(intent_args::configuration(&version)?);
    }
    let intent = intent_args::intent(intent)?;
    Ok(Mutation::BindIntent { intent, work })
}

/// An end.
pub(super) fn close(
    intent: &str,
    named: Option<String>,
    ending: EndingForm,
) -> Result<Mutation, InputError> {
    Ok(Mutation::CloseIntent {
        intent: intent_args::intent(intent)?,
        guard: named.as_deref().map(guard).transpose()?,
        ending: match ending {
            EndingForm::Completed => Ending::Completed,
            EndingForm::Superseded => Ending::Superseded,
            EndingForm::Cancelled => Ending::Cancelled,
            EndingForm::Rejected => Ending::Rejected,
        },
    })
}

/// A suspension.
pub(super) fn suspend(
    intent: &str,
    named: Option<String>,
    owner: &str,
    review_at_ms: &str,
) -> Result<Mutation, InputError> {
    Ok(Mutation::SuspendIntent {
        intent: intent_args::intent(intent)?,
        guard: named.as_deref().map(guard).transpose()?,
        owner: intent_args::owner(owner)?,
        review_at_ms: intent_args::milliseconds(review_at_ms)?,
    })
}
