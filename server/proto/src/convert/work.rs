//! What is asked about intents: steps, and the work that they are bound to.

use highwater_core::{
    Ending, Guard, Input, InputName, IntentId, IntentStep, IntentUse, Key, Malformed, Step, Work,
    limits,
};

use super::{
    FromWire, ToWire, digest, digest_to_wire, generation, generation_to_wire, list, optional,
    parts, to_wire_list,
};
use crate::v1;
use crate::v1::IntentEnding;
use crate::v1::input::Kind;

impl FromWire<u32> for Step {
    fn from_wire(wire: u32) -> Result<Self, Malformed> {
        Self::new(wire).ok_or(Malformed::Number { what: parts::STEP })
    }
}

impl FromWire<v1::IntentUse> for IntentUse {
    fn from_wire(wire: v1::IntentUse) -> Result<Self, Malformed> {
        Ok(Self {
            id: IntentId::from_wire(wire.id)?,
            step: Step::from_wire(wire.step)?,
            completes: wire.completes,
        })
    }
}

impl ToWire for IntentUse {
    type Wire = v1::IntentUse;

    fn to_wire(&self) -> v1::IntentUse {
        v1::IntentUse {
            id: self.id.to_wire(),
            step: self.step.get(),
            completes: self.completes,
        }
    }
}

impl FromWire<v1::IntentStep> for IntentStep {
    fn from_wire(wire: v1::IntentStep) -> Result<Self, Malformed> {
        Ok(Self {
            id: IntentId::from_wire(wire.id)?,
            step: Step::from_wire(wire.step)?,
        })
    }
}

impl ToWire for IntentStep {
    type Wire = v1::IntentStep;

    fn to_wire(&self) -> v1::IntentStep {
        v1::IntentStep {
            id: self.id.to_wire(),
            step: self.step.get(),
        }
    }
}

impl FromWire<i32> for Ending {
    fn from_wire(wire: i32) -> Result<Self, Malformed> {
        let what = parts::ENDING;
        match IntentEnding::try_from(wire).map_err(|_| Malformed::Number { what })? {
            IntentEnding::Unspecified => Err(Malformed::Missing { what }),
            IntentEnding::Completed => Ok(Self::Completed),
            IntentEnding::Superseded => Ok(Self::Superseded),
            IntentEnding::Cancelled => Ok(Self::Cancelled),
            IntentEnding::Rejected => Ok(Self::Rejected),
        }
    }
}

impl ToWire for Ending {
    type Wire = i32;

    fn to_wire(&self) -> i32 {
        i32::from(match self {
            Self::Completed => IntentEnding::Completed,
            Self::Superseded => IntentEnding::Superseded,
            Self::Cancelled => IntentEnding::Cancelled,
            Self::Rejected => IntentEnding::Rejected,
        })
    }
}

impl FromWire<v1::Input> for Input {
    fn from_wire(wire: v1::Input) -> Result<Self, Malformed> {
        let missing = |what| Malformed::Missing { what };
        Ok(match wire.kind.ok_or(missing(parts::INPUT))? {
            Kind::Key(input) => Self::Key {
                key: Key::from_wire(input.key)?,
                generation: generation(input.generation.ok_or(missing(parts::GENERATION))?)?,
            },
            Kind::Named(input) => Self::Named {
                name: InputName::from_wire(input.name)?,
                digest: digest(&input.digest)?,
            },
        })
    }
}

impl ToWire for Input {
    type Wire = v1::Input;

    fn to_wire(&self) -> v1::Input {
        let kind = match self {
            Self::Key { key, generation } => Kind::Key(v1::KeyInput {
                key: key.to_wire(),
                generation: Some(generation_to_wire(*generation)),
            }),
            Self::Named { name, digest } => Kind::Named(v1::NamedInput {
                name: name.to_wire(),
                digest: digest_to_wire(digest),
            }),
        };
        v1::Input { kind: Some(kind) }
    }
}

impl FromWire<v1::Work> for Work {
    fn from_wire(wire: v1::Work) -> Result<Self, Malformed> {
        Ok(Self {
            guard: Guard::from_wire(wire.guard)?,
            inputs: list(wire.inputs, parts::INPUTS, limits::INPUTS_MAX)?,
            configuration: optional(wire.configuration)?,
        })
    }
}

impl ToWire for Work {
    type Wire = v1::Work;

    fn to_wire(&self) -> v1::Work {
        v1::Work {
            guard: self.guard.to_wire(),
            inputs: to_wire_list(&self.inputs),
            configuration: self.configuration.as_ref().map(ToWire::to_wire),
        }
    }
}
