//! Receipts.

use highwater_core::{
    DomainName, ExpectedDestination, Guard, GuardReceipt, InputReceipt, Key, Malformed,
    Metageneration, Receipt, Revision, WriteReceipt,
};

use super::{
    FromWire, ToWire, answered, generation, generation_to_wire, metageneration_to_wire, optional,
    parts, required, to_wire_list,
};
use crate::v1;

impl FromWire<v1::Receipt> for Receipt {
    fn from_wire(wire: v1::Receipt) -> Result<Self, Malformed> {
        let destination: ExpectedDestination = required(wire.destination, parts::DESTINATION)?;
        Ok(Self {
            destination: destination.id,
            incarnation: destination.incarnation,
            domain: DomainName::new(&wire.domain)?,
            revision: Revision::from_wire(wire.revision)?,
            intent: optional(wire.intent)?,
            guards: answered(wire.guards)?,
            inputs: answered(wire.inputs)?,
            writes: answered(wire.writes)?,
            leases: answered(wire.leases)?,
            replayed: wire.replayed,
            advisory_time_ms: wire.advisory_time_ms,
        })
    }
}

impl ToWire for Receipt {
    type Wire = v1::Receipt;

    fn to_wire(&self) -> v1::Receipt {
        let destination = ExpectedDestination {
            id: self.destination,
            incarnation: self.incarnation,
        };
        v1::Receipt {
            destination: Some(destination.to_wire()),
            domain: self.domain.as_str().into(),
            revision: self.revision.get(),
            guards: to_wire_list(&self.guards),
            inputs: to_wire_list(&self.inputs),
            writes: to_wire_list(&self.writes),
            replayed: self.replayed,
            advisory_time_ms: self.advisory_time_ms,
            intent: self.intent.as_ref().map(ToWire::to_wire),
            leases: to_wire_list(&self.leases),
        }
    }
}

impl FromWire<v1::GuardReceipt> for GuardReceipt {
    fn from_wire(wire: v1::GuardReceipt) -> Result<Self, Malformed> {
        Ok(Self {
            guard: Guard::from_wire(wire.guard)?,
            fence: required(wire.fence, parts::FENCE)?,
            previous: optional(wire.previous)?,
        })
    }
}

impl ToWire for GuardReceipt {
    type Wire = v1::GuardReceipt;

    fn to_wire(&self) -> v1::GuardReceipt {
        v1::GuardReceipt {
            guard: self.guard.to_wire(),
            fence: Some(self.fence.to_wire()),
            previous: self.previous.as_ref().map(ToWire::to_wire),
        }
    }
}

impl FromWire<v1::InputReceipt> for InputReceipt {
    fn from_wire(wire: v1::InputReceipt) -> Result<Self, Malformed> {
        Ok(Self {
            key: Key::from_wire(wire.key)?,
            generation: generation(wire.generation)?,
        })
    }
}

impl ToWire for InputReceipt {
    type Wire = v1::InputReceipt;

    fn to_wire(&self) -> v1::InputReceipt {
        v1::InputReceipt {
            key: self.key.to_wire(),
            generation: generation_to_wire(self.generation),
        }
    }
}

impl FromWire<v1::WriteReceipt> for WriteReceipt {
    fn from_wire(wire: v1::WriteReceipt) -> Result<Self, Malformed> {
        Ok(Self {
            key: Key::from_wire(wire.key)?,
            generation: generation(wire.generation)?,
            metageneration: Metageneration::new(wire.metageneration),
            previous: generation(wire.previous_generation)?,
        })
    }
}

impl ToWire for WriteReceipt {
    type Wire = v1::WriteReceipt;

    fn to_wire(&self) -> v1::WriteReceipt {
        v1::WriteReceipt {
            key: self.key.to_wire(),
            generation: generation_to_wire(self.generation),
            metageneration: metageneration_to_wire(self.metageneration),
            previous_generation: generation_to_wire(self.previous),
        }
    }
}
