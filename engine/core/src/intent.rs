//! Intents: operations that have a name of their own, so that repeating one never does it twice.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::authority::Authority;
use crate::counters::{Generation, Revision};
use crate::limits::STEPS_MAX;
use crate::names::{Configuration, Digest, Guard, InputName, IntentId, Key, Owner};
use crate::receipt::Receipt;

/// The number of a step of an intent: 1 to 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Step(u32);

impl Step {
    /// The first step.
    pub const FIRST: Self = Self(1);

    /// A step of this number; `None` for 0 and above 64.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number == 0 || number > STEPS_MAX {
            return None;
        }
        Some(Self(number))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The step after this one; `None` after the last that there can be.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(number) => Self::new(number),
            None => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One step of one intent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IntentStep {
    /// The intent.
    pub id: IntentId,
    /// The step.
    pub step: Step,
}

/// Which step of which intent a commit is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IntentUse {
    /// The intent.
    pub id: IntentId,
    /// The step: the one after the last that was accepted.
    pub step: Step,
    /// Whether the intent is completed by it.
    pub completes: bool,
}

/// How an intent ended. Each is final.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// Everything that it meant was done.
    Completed,
    /// Another intent took its place.
    Superseded,
    /// Who wanted it doesn't want it any more.
    Cancelled,
    /// It can't or mustn't be done.
    Rejected,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
        })
    }
}

/// What an intent is in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum IntentState {
    /// It takes its next step.
    Open,
    /// Nobody knows what became of it. It takes no step until it is ended; its owner sees to that.
    Indeterminate {
        /// Who has to resolve it.
        owner: Owner,
        /// When it is to be looked at again, in milliseconds since 1970. Nothing happens then by
        /// itself.
        review_at_ms: u64,
    },
    /// It has ended, for ever.
    Ended(Ending),
}

impl fmt::Display for IntentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Indeterminate { owner, .. } => {
                write!(f, "indeterminate, to be resolved by '{owner}'")
            }
            Self::Ended(ending) => fmt::Display::fmt(ending, f),
        }
    }
}

/// One thing that work starts from, exactly as it was.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// A key of the domain.
    Key {
        /// The key.
        key: Key,
        /// Its generation, or `None` for "does not exist".
        generation: Option<Generation>,
    },
    /// Something that isn't kept here.
    Named {
        /// Its name.
        name: InputName,
        /// Its digest.
        digest: Digest,
    },
}

/// The work that an intent is bound to before it starts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Work {
    /// The guard that the work is done under.
    pub guard: Guard,
    /// What it starts from: up to 64. They are recorded, not compared with anything.
    pub inputs: Vec<Input>,
    /// The version of the configuration that it is done under.
    pub configuration: Option<Configuration>,
}

impl Work {
    /// Work under a guard, to which inputs and configuration are added.
    #[must_use]
    pub const fn under(guard: Guard) -> Self {
        Self {
            guard,
            inputs: Vec::new(),
            configuration: None,
        }
    }

    /// With one more input.
    #[must_use]
    pub fn from_input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// With a configuration.
    #[must_use]
    pub fn configured(mut self, configuration: Configuration) -> Self {
        self.configuration = Some(configuration);
        self
    }

    /// How many bytes of names it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let name = |input: &Input| match input {
            Input::Key { key, .. } => key.as_bytes().len(),
            Input::Named { name, .. } => name.as_bytes().len(),
        };
        let inputs: usize = self.inputs.iter().map(name).sum();
        let configuration = self.configuration.as_ref();
        let configuration = configuration.map_or(0, |version| version.as_bytes().len());
        inputs
            .saturating_add(configuration)
            .saturating_add(self.guard.as_bytes().len())
    }
}

/// Who took on which work.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Binding {
    /// The work.
    pub work: Work,
    /// The authority for its guard, under which it was bound.
    pub authority: Authority,
}

/// A step that was accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRecord {
    /// Its number.
    pub step: Step,
    /// The digest of what was asked.
    pub digest: Digest,
    /// What was answered.
    pub receipt: Receipt,
}

/// What is stored of an intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentRecord {
    /// What it is in.
    pub state: IntentState,
    /// What it is bound to, if it is. The guard stays; the rest does once there is a step.
    pub binding: Option<Arc<Binding>>,
    /// The steps that were accepted, from the first one on.
    pub steps: Vec<Arc<StepRecord>>,
    /// The revision that last changed any of it.
    pub changed_at: Revision,
}

impl IntentRecord {
    /// The record of a step, if it was accepted.
    #[must_use]
    pub fn step(&self, step: Step) -> Option<&Arc<StepRecord>> {
        self.steps.iter().find(|record| record.step == step)
    }

    /// The step that comes next; `None` if there were as many as there can be.
    #[must_use]
    pub fn next_step(&self) -> Option<Step> {
        self.steps
            .last()
            .map_or(Some(Step::FIRST), |last| last.step.next())
    }

    /// The guard that it is bound to.
    #[must_use]
    pub fn guard(&self) -> Option<&Guard> {
        self.binding.as_ref().map(|binding| &binding.work.guard)
    }
}
