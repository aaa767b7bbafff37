//! Destinations, epochs, terms, authorities and fences.

use bytes::Bytes;
use highwater_core::{
    Authorities, Authority, DestinationId, Epoch, EpochMark, EpochNumber, ExpectedDestination,
    Fence, Guard, Holder, Incarnation, IncarnationMark, IncarnationNumber, Malformed, Sequence,
    Term, limits,
};

use super::{FromWire, ToWire, exactly, list, parts, required};
use crate::v1;

impl FromWire<v1::Incarnation> for Incarnation {
    fn from_wire(wire: v1::Incarnation) -> Result<Self, Malformed> {
        let what = parts::INCARNATION_NUMBER;
        let number = u16::try_from(wire.number).map_err(|_| Malformed::Number { what })?;
        let number = IncarnationNumber::new(number).ok_or(Malformed::Number { what })?;
        let mark = wire.mark.ok_or(Malformed::Missing {
            what: parts::INCARNATION_MARK,
        })?;
        Ok(Self::new(number, IncarnationMark::new(mark)))
    }
}

impl ToWire for Incarnation {
    type Wire = v1::Incarnation;

    fn to_wire(&self) -> v1::Incarnation {
        v1::Incarnation {
            number: u32::from(self.number().get()),
            mark: Some(self.mark().get()),
        }
    }
}

impl FromWire<v1::Destination> for ExpectedDestination {
    fn from_wire(wire: v1::Destination) -> Result<Self, Malformed> {
        Ok(Self {
            id: DestinationId::new(exactly(&wire.id, parts::DESTINATION_ID)?),
            incarnation: required(wire.incarnation, parts::INCARNATION)?,
        })
    }
}

impl ToWire for ExpectedDestination {
    type Wire = v1::Destination;

    fn to_wire(&self) -> v1::Destination {
        v1::Destination {
            id: Bytes::copy_from_slice(&self.id.bytes()),
            incarnation: Some(self.incarnation.to_wire()),
        }
    }
}

impl FromWire<v1::Epoch> for Epoch {
    fn from_wire(wire: v1::Epoch) -> Result<Self, Malformed> {
        let number = EpochNumber::new(wire.number).ok_or(Malformed::Number {
            what: parts::EPOCH_NUMBER,
        })?;
        let mark = wire.mark.ok_or(Malformed::Missing {
            what: parts::EPOCH_MARK,
        })?;
        Ok(Self::new(number, EpochMark::new(mark)))
    }
}

impl ToWire for Epoch {
    type Wire = v1::Epoch;

    fn to_wire(&self) -> v1::Epoch {
        v1::Epoch {
            number: self.number().get(),
            mark: Some(self.mark().get()),
        }
    }
}

impl FromWire<v1::Term> for Term {
    fn from_wire(wire: v1::Term) -> Result<Self, Malformed> {
        Ok(Self {
            epoch: required(wire.epoch, parts::EPOCH)?,
            sequence: Sequence::new(wire.sequence).ok_or(Malformed::Number {
                what: parts::SEQUENCE,
            })?,
        })
    }
}

impl ToWire for Term {
    type Wire = v1::Term;

    fn to_wire(&self) -> v1::Term {
        v1::Term {
            epoch: Some(self.epoch.to_wire()),
            sequence: self.sequence.get(),
        }
    }
}

impl FromWire<v1::Authority> for Authority {
    fn from_wire(wire: v1::Authority) -> Result<Self, Malformed> {
        let term = required(wire.term, parts::TERM)?;
        Ok(Self::new(term, Holder::new(wire.holder)?))
    }
}

impl ToWire for Authority {
    type Wire = v1::Authority;

    fn to_wire(&self) -> v1::Authority {
        v1::Authority {
            term: Some(self.term().to_wire()),
            holder: Bytes::copy_from_slice(self.holder().as_bytes()),
        }
    }
}

impl FromWire<v1::Fence> for Fence {
    fn from_wire(wire: v1::Fence) -> Result<Self, Malformed> {
        Ok(Self {
            term: required(wire.term, parts::TERM)?,
            holder: Holder::new(wire.holder)?,
        })
    }
}

impl ToWire for Fence {
    type Wire = v1::Fence;

    fn to_wire(&self) -> v1::Fence {
        v1::Fence {
            term: Some(self.term.to_wire()),
            holder: Bytes::copy_from_slice(self.holder.as_bytes()),
        }
    }
}

impl FromWire<v1::GuardAuthority> for (Guard, Authority) {
    fn from_wire(wire: v1::GuardAuthority) -> Result<Self, Malformed> {
        let guard = Guard::from_wire(wire.guard)?;
        Ok((guard, required(wire.authority, parts::AUTHORITY)?))
    }
}

impl FromWire<Option<v1::commit::Authority>> for Authorities {
    fn from_wire(wire: Option<v1::commit::Authority>) -> Result<Self, Malformed> {
        match wire {
            None => Ok(Self::None),
            Some(v1::commit::Authority::One(one)) => Ok(Self::One(Authority::from_wire(one)?)),
            Some(v1::commit::Authority::PerGuard(per_guard)) => {
                let max = limits::MUTATIONS_MAX;
                let entries = list(per_guard.entries, parts::GUARDS, max)?;
                if entries.is_empty() {
                    return Err(Malformed::Missing {
                        what: parts::AUTHORITY,
                    });
                }
                Ok(Self::PerGuard(entries))
            }
        }
    }
}

impl ToWire for Authorities {
    type Wire = Option<v1::commit::Authority>;

    fn to_wire(&self) -> Self::Wire {
        match self {
            Self::None => None,
            Self::One(authority) => Some(v1::commit::Authority::One(authority.to_wire())),
            Self::PerGuard(list) => {
                let entries = list.iter().map(|(guard, authority)| v1::GuardAuthority {
                    guard: guard.to_wire(),
                    authority: Some(authority.to_wire()),
                });
                let entries = entries.collect();
                Some(v1::commit::Authority::PerGuard(v1::GuardAuthorities {
                    entries,
                }))
            }
        }
    }
}
