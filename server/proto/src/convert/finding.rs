//! What was found of intents.

use highwater_core::{Effects, Finding, Malformed};

use super::{FromWire, ToWire, parts};
use crate::v1;

impl FromWire<i32> for Effects {
    fn from_wire(wire: i32) -> Result<Self, Malformed> {
        let what = parts::EFFECTS;
        match v1::Effects::try_from(wire).map_err(|_| Malformed::Number { what })? {
            v1::Effects::Unspecified => Err(Malformed::Missing { what }),
            v1::Effects::Present => Ok(Self::Present),
            v1::Effects::Absent => Ok(Self::Absent),
            v1::Effects::Indeterminate => Ok(Self::Indeterminate),
        }
    }
}

impl ToWire for Effects {
    type Wire = i32;

    fn to_wire(&self) -> i32 {
        i32::from(match self {
            Self::Present => v1::Effects::Present,
            Self::Absent => v1::Effects::Absent,
            Self::Indeterminate => v1::Effects::Indeterminate,
        })
    }
}

/// What is said of an intent, without what is stored of it.
impl FromWire<&v1::FoundIntent> for Finding {
    fn from_wire(wire: &v1::FoundIntent) -> Result<Self, Malformed> {
        Ok(Self {
            effects: Effects::from_wire(wire.effects)?,
            settled: wire.settled,
        })
    }
}
