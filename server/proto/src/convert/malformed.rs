//! What is wrong with a request, as data.

use bytes::Bytes;
use highwater_core::{Guard, IntentId, Key, Malformed, MetadataError, NameError, PolicyError};

use super::{FromWire, ToWire, parts};
use crate::v1;
use crate::v1::malformed::Kind;

/// A message of a kind; every other part is filled in where the kind has it.
fn of(kind: Kind) -> v1::Malformed {
    v1::Malformed {
        kind: i32::from(kind),
        ..v1::Malformed::default()
    }
}

fn about(kind: Kind, what: &str) -> v1::Malformed {
    v1::Malformed {
        what: what.into(),
        ..of(kind)
    }
}

fn counted(kind: Kind, count: usize, max: usize) -> v1::Malformed {
    v1::Malformed {
        count: wide(count),
        max: wide(max),
        ..of(kind)
    }
}

fn named(kind: Kind, name: Bytes) -> v1::Malformed {
    v1::Malformed { name, ..of(kind) }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn narrow(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl ToWire for Malformed {
    type Wire = v1::Malformed;

    fn to_wire(&self) -> v1::Malformed {
        match self {
            Self::Name(error) => name_error(error),
            Self::Metadata(error) => metadata_error(error),
            Self::Policy(PolicyError::Depth { depth }) => {
                counted(Kind::GuardDepth, usize::from(*depth), 0)
            }
            Self::Policy(PolicyError::Grace { grace_ms }) => v1::Malformed {
                count: *grace_ms,
                ..of(Kind::Grace)
            },
            Self::Missing { what } => about(Kind::Missing, what),
            Self::Number { what } => about(Kind::Number, what),
            Self::Empty => of(Kind::Empty),
            Self::TooMany { what, count, max } => v1::Malformed {
                what: (*what).into(),
                ..counted(Kind::TooMany, *count, *max)
            },
            Self::ValueTooLarge { bytes, max } => counted(Kind::ValueTooLarge, *bytes, *max),
            Self::CommitTooLarge { bytes, max } => counted(Kind::CommitTooLarge, *bytes, *max),
            Self::DuplicateKey(key) => named(Kind::DuplicateKey, key.to_wire()),
            Self::DuplicateGuard(guard) => named(Kind::DuplicateGuard, guard.to_wire()),
            Self::UntouchedGuard(guard) => named(Kind::UntouchedGuard, guard.to_wire()),
            Self::NoSuchGuard(guard) => named(Kind::NoSuchGuard, guard.to_wire()),
            Self::DuplicateIntent(id) => {
                named(Kind::DuplicateIntent, Bytes::copy_from_slice(id.as_bytes()))
            }
        }
    }
}

fn name_error(error: &NameError) -> v1::Malformed {
    match error {
        NameError::Empty { what } => about(Kind::NameEmpty, what),
        NameError::TooLong { what, bytes, max } => v1::Malformed {
            what: (*what).into(),
            ..counted(Kind::NameTooLong, *bytes, *max)
        },
        NameError::Character { at } => counted(Kind::NameCharacter, *at, 0),
    }
}

fn metadata_error(error: &MetadataError) -> v1::Malformed {
    match error {
        MetadataError::ContentType { bytes } => counted(Kind::ContentType, *bytes, 0),
        MetadataError::TooManyLabels => of(Kind::TooManyLabels),
        MetadataError::LabelName { bytes } => counted(Kind::LabelName, *bytes, 0),
        MetadataError::LabelValue { bytes } => counted(Kind::LabelValue, *bytes, 0),
        MetadataError::DuplicateLabel => of(Kind::DuplicateLabel),
    }
}

/// The evidence in an answer, itself read. A kind of a newer destination is refused.
impl FromWire<v1::Malformed> for Malformed {
    fn from_wire(wire: v1::Malformed) -> Result<Self, Self> {
        let unknown = Self::Number {
            what: parts::MALFORMED,
        };
        let kind = Kind::try_from(wire.kind).map_err(|_| unknown.clone())?;
        let what = parts::known(&wire.what);
        let (count, max) = (narrow(wire.count), narrow(wire.max));
        Ok(match kind {
            Kind::Unspecified => return Err(unknown),
            Kind::NameEmpty => Self::Name(NameError::Empty { what }),
            Kind::NameTooLong => Self::Name(NameError::TooLong {
                what,
                bytes: count,
                max,
            }),
            Kind::NameCharacter => Self::Name(NameError::Character { at: count }),
            Kind::ContentType => Self::Metadata(MetadataError::ContentType { bytes: count }),
            Kind::TooManyLabels => Self::Metadata(MetadataError::TooManyLabels),
            Kind::LabelName => Self::Metadata(MetadataError::LabelName { bytes: count }),
            Kind::LabelValue => Self::Metadata(MetadataError::LabelValue { bytes: count }),
            Kind::DuplicateLabel => Self::Metadata(MetadataError::DuplicateLabel),
            Kind::GuardDepth => Self::Policy(PolicyError::Depth {
                depth: u8::try_from(wire.count).map_err(|_| unknown)?,
            }),
            Kind::Grace => Self::Policy(PolicyError::Grace {
                grace_ms: wire.count,
            }),
            Kind::Missing => Self::Missing { what },
            Kind::Number => Self::Number { what },
            Kind::Empty => Self::Empty,
            Kind::TooMany => Self::TooMany { what, count, max },
            Kind::ValueTooLarge => Self::ValueTooLarge { bytes: count, max },
            Kind::CommitTooLarge => Self::CommitTooLarge { bytes: count, max },
            Kind::DuplicateKey => Self::DuplicateKey(Key::from_wire(wire.name)?),
            Kind::DuplicateGuard => Self::DuplicateGuard(Guard::from_wire(wire.name)?),
            Kind::UntouchedGuard => Self::UntouchedGuard(Guard::from_wire(wire.name)?),
            Kind::NoSuchGuard => Self::NoSuchGuard(Guard::from_wire(wire.name)?),
            Kind::DuplicateIntent => Self::DuplicateIntent(IntentId::new(&wire.name)?),
        })
    }
}
