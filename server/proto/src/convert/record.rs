//! Records, metadata, values and ranges.

use bytes::Bytes;
use highwater_core::{
    Generation, Key, KeyRange, Malformed, Metadata, Metageneration, NameError, Record, Revision,
    Value, limits,
};

use super::{FromWire, ToWire, optional, parts};
use crate::v1;

/// Values from this size on are shared with the message instead of copied into it.
const SHARED_VALUE_BYTES_MIN: usize = 256;

impl FromWire<Bytes> for Value {
    fn from_wire(wire: Bytes) -> Result<Self, Malformed> {
        Ok(Self::new(wire)?)
    }
}

impl ToWire for Value {
    type Wire = Bytes;

    fn to_wire(&self) -> Bytes {
        if self.as_bytes().len() < SHARED_VALUE_BYTES_MIN {
            Bytes::copy_from_slice(self.as_bytes())
        } else {
            Bytes::from_owner(self.clone())
        }
    }
}

impl FromWire<Option<v1::Metadata>> for Metadata {
    fn from_wire(wire: Option<v1::Metadata>) -> Result<Self, Malformed> {
        let mut metadata = Self::default();
        let Some(wire) = wire else {
            return Ok(metadata);
        };
        if let Some(content_type) = &wire.content_type {
            metadata = metadata.with_content_type(content_type)?;
        }
        for (name, value) in &wire.labels {
            metadata = metadata.with_label(name, value)?;
        }
        Ok(metadata)
    }
}

impl ToWire for Metadata {
    type Wire = Option<v1::Metadata>;

    fn to_wire(&self) -> Option<v1::Metadata> {
        if self.content_type().is_none() && self.labels().is_empty() {
            return None;
        }
        Some(v1::Metadata {
            content_type: self.content_type().map(String::from),
            labels: self.labels().clone(),
        })
    }
}

/// The message of a record under its key.
#[must_use]
pub fn record_to_wire(key: &Key, record: &Record) -> v1::Record {
    v1::Record {
        key: key.to_wire(),
        generation: record.generation.get(),
        metageneration: record.metageneration.get(),
        changed_at: record.changed_at.get(),
        written_under: record.written_under.as_ref().map(ToWire::to_wire),
        value: record.value.to_wire(),
        metadata: record.metadata.to_wire(),
    }
}

impl FromWire<v1::Record> for (Key, Record) {
    fn from_wire(wire: v1::Record) -> Result<Self, Malformed> {
        let number = |what| Malformed::Number { what };
        let record = Record {
            generation: Generation::new(wire.generation)
                .ok_or_else(|| number(parts::GENERATION))?,
            metageneration: Metageneration::new(wire.metageneration)
                .ok_or_else(|| number(parts::METAGENERATION))?,
            changed_at: Revision::from_wire(wire.changed_at)?,
            written_under: optional(wire.written_under)?,
            value: Value::from_wire(wire.value)?,
            metadata: Metadata::from_wire(wire.metadata)?,
        };
        Ok((Key::from_wire(wire.key)?, record))
    }
}

/// Refuses an end of a range that is longer than any key.
fn bound(bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
    if bytes.len() > limits::KEY_BYTES_MAX {
        return Err(Malformed::Name(NameError::TooLong {
            what: parts::RANGE,
            bytes: bytes.len(),
            max: limits::KEY_BYTES_MAX,
        }));
    }
    Ok(bytes.to_vec())
}

impl FromWire<v1::KeyRange> for KeyRange {
    fn from_wire(wire: v1::KeyRange) -> Result<Self, Malformed> {
        let end = wire.end.as_deref().map(bound).transpose()?;
        Ok(Self::between(bound(&wire.start)?, end))
    }
}

impl ToWire for KeyRange {
    type Wire = v1::KeyRange;

    fn to_wire(&self) -> v1::KeyRange {
        v1::KeyRange {
            start: Bytes::copy_from_slice(&self.start),
            end: self.end.as_deref().map(Bytes::copy_from_slice),
        }
    }
}
