//! What was seen at a refusal.

use highwater_core::{ExpectedDestination, Malformed, Metageneration, Observed, Revision};

use super::{
    FromWire, ToWire, digest, digest_to_wire, generation, generation_to_wire,
    metageneration_to_wire, optional, parts, required, revision_or_none,
};
use crate::v1;

impl FromWire<v1::Observed> for Observed {
    fn from_wire(wire: v1::Observed) -> Result<Self, Malformed> {
        let destination: ExpectedDestination = required(wire.destination, parts::DESTINATION)?;
        let digest = wire.digest.as_deref().map(digest).transpose()?;
        Ok(Self {
            destination: destination.id,
            incarnation: destination.incarnation,
            revision: Revision::from_wire(wire.revision)?,
            epoch: optional(wire.epoch)?,
            guard: optional(wire.guard)?,
            fence: optional(wire.fence)?,
            key: optional(wire.key)?,
            generation: generation(wire.generation)?,
            metageneration: Metageneration::new(wire.metageneration),
            changed_at: revision_or_none(wire.changed_at)?,
            digest,
            intent: optional(wire.intent)?,
            lease: optional(wire.lease)?,
        })
    }
}

impl ToWire for Observed {
    type Wire = v1::Observed;

    fn to_wire(&self) -> v1::Observed {
        let destination = ExpectedDestination {
            id: self.destination,
            incarnation: self.incarnation,
        };
        v1::Observed {
            destination: Some(destination.to_wire()),
            revision: self.revision.get(),
            epoch: self.epoch.as_ref().map(ToWire::to_wire),
            guard: self.guard.as_ref().map(ToWire::to_wire),
            fence: self.fence.as_ref().map(ToWire::to_wire),
            key: self.key.as_ref().map(ToWire::to_wire),
            generation: generation_to_wire(self.generation),
            metageneration: metageneration_to_wire(self.metageneration),
            changed_at: self.changed_at.map_or(0, Revision::get),
            digest: self.digest.as_ref().map(digest_to_wire),
            intent: self.intent.as_ref().map(ToWire::to_wire),
            lease: self.lease.as_ref().map(ToWire::to_wire),
        }
    }
}
