//! Conditions.

use highwater_core::{
    Condition, Digest, Generation, Key, Malformed, Metageneration, Prefix, Revision,
};

use super::{
    FromWire, ToWire, exactly, generation, generation_to_wire, metageneration_to_wire, parts,
    required,
};
use crate::v1;
use crate::v1::condition::Kind;

impl FromWire<v1::GenerationCondition> for (Key, Option<Generation>) {
    fn from_wire(wire: v1::GenerationCondition) -> Result<Self, Malformed> {
        let raw = wire.generation.ok_or(Malformed::Missing {
            what: parts::GENERATION,
        })?;
        Ok((Key::from_wire(wire.key)?, generation(raw)?))
    }
}

impl FromWire<v1::MetagenerationCondition> for (Key, Option<Metageneration>) {
    fn from_wire(wire: v1::MetagenerationCondition) -> Result<Self, Malformed> {
        let raw = wire.metageneration.ok_or(Malformed::Missing {
            what: parts::METAGENERATION,
        })?;
        // Zero is "the key doesn't exist"; every other number is a metageneration.
        Ok((Key::from_wire(wire.key)?, Metageneration::new(raw)))
    }
}

impl FromWire<v1::Condition> for Condition {
    fn from_wire(wire: v1::Condition) -> Result<Self, Malformed> {
        let kind = wire.kind.ok_or(Malformed::Missing {
            what: parts::CONDITION,
        })?;
        Ok(match kind {
            Kind::GenerationIs(wire) => {
                let (key, generation) = FromWire::from_wire(wire)?;
                Self::GenerationIs { key, generation }
            }
            Kind::GenerationIsNot(wire) => {
                let (key, generation) = FromWire::from_wire(wire)?;
                Self::GenerationIsNot { key, generation }
            }
            Kind::MetagenerationIs(wire) => {
                let (key, metageneration) = FromWire::from_wire(wire)?;
                Self::MetagenerationIs {
                    key,
                    metageneration,
                }
            }
            Kind::MetagenerationIsNot(wire) => {
                let (key, metageneration) = FromWire::from_wire(wire)?;
                Self::MetagenerationIsNot {
                    key,
                    metageneration,
                }
            }
            Kind::WrittenUnder(wire) => Self::WrittenUnder {
                key: Key::from_wire(wire.key)?,
                term: required(wire.term, parts::TERM)?,
            },
            Kind::ValueDigestIs(wire) => Self::ValueDigestIs {
                key: Key::from_wire(wire.key)?,
                digest: Digest::new(exactly(&wire.digest, parts::DIGEST)?),
            },
            Kind::KeyUnchangedSince(wire) => Self::KeyUnchangedSince {
                key: Key::from_wire(wire.key)?,
                revision: Revision::from_wire(wire.revision)?,
            },
            Kind::PrefixUnchangedSince(wire) => Self::PrefixUnchangedSince {
                prefix: Prefix::from_wire(wire.prefix)?,
                revision: Revision::from_wire(wire.revision)?,
            },
        })
    }
}

fn generation_condition(key: &Key, generation: Option<Generation>) -> v1::GenerationCondition {
    v1::GenerationCondition {
        key: key.to_wire(),
        generation: Some(generation_to_wire(generation)),
    }
}

fn metageneration_condition(
    key: &Key,
    metageneration: Option<Metageneration>,
) -> v1::MetagenerationCondition {
    v1::MetagenerationCondition {
        key: key.to_wire(),
        metageneration: Some(metageneration_to_wire(metageneration)),
    }
}

impl ToWire for Condition {
    type Wire = v1::Condition;

    fn to_wire(&self) -> v1::Condition {
        let kind = match self {
            Self::GenerationIs { key, generation } => {
                Kind::GenerationIs(generation_condition(key, *generation))
            }
            Self::GenerationIsNot { key, generation } => {
                Kind::GenerationIsNot(generation_condition(key, *generation))
            }
            Self::MetagenerationIs {
                key,
                metageneration,
            } => Kind::MetagenerationIs(metageneration_condition(key, *metageneration)),
            Self::MetagenerationIsNot {
                key,
                metageneration,
            } => Kind::MetagenerationIsNot(metageneration_condition(key, *metageneration)),
            Self::WrittenUnder { key, term } => Kind::WrittenUnder(v1::WrittenUnderCondition {
                key: key.to_wire(),
                term: Some(term.to_wire()),
            }),
            Self::ValueDigestIs { key, digest } => Kind::ValueDigestIs(v1::DigestCondition {
                key: key.to_wire(),
                digest: digest.bytes().to_vec().into(),
            }),
            Self::KeyUnchangedSince { key, revision } => {
                Kind::KeyUnchangedSince(v1::KeyUnchangedCondition {
                    key: key.to_wire(),
                    revision: revision.get(),
                })
            }
            Self::PrefixUnchangedSince { prefix, revision } => {
                Kind::PrefixUnchangedSince(v1::PrefixUnchangedCondition {
                    prefix: prefix.to_wire(),
                    revision: revision.get(),
                })
            }
        };
        v1::Condition { kind: Some(kind) }
    }
}
