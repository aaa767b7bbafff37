//! Messages to the core's types and back: the only parser of what comes from outside.
//!
//! Conversion is total. Whatever can't be a value of the core becomes a typed [`Malformed`], and
//! nothing that is missing is filled in. Bounds that need no state (sizes of names, numbers of
//! parts) are kept here; every other rule is the core's.

mod commit;
mod condition;
mod domain;
mod finding;
mod intent;
mod intent_reason;
mod lease;
mod lease_mutation;
mod malformed;
mod observed;
pub mod parts;
mod receipt;
mod record;
mod rejection;
mod terms;
mod work;

use bytes::Bytes;
pub use record::record_to_wire;
pub use rejection::code_of;

use highwater_core::{
    Configuration, Digest, Generation, Guard, Holder, InputName, IntentId, Key, Malformed,
    Metageneration, Owner, Prefix, Revision,
};

/// A type of the core that is written as a message.
pub trait ToWire {
    /// The message.
    type Wire;

    /// The message that says the same.
    fn to_wire(&self) -> Self::Wire;
}

/// A type of the core that is read from a message.
pub trait FromWire<Wire>: Sized {
    /// Reads the message.
    ///
    /// # Errors
    ///
    /// [`Malformed`], naming the first part that is missing or wrong.
    ///
    /// # Example
    ///
    /// ```
    /// use highwater_core::{Authority, Malformed};
    /// use highwater_proto::{convert::FromWire, v1};
    ///
    /// // Half an authority is refused; nothing is filled in.
    /// let half = v1::Authority { term: None, holder: "worker-a".into() };
    /// let refused = Authority::from_wire(half);
    /// assert_eq!(refused, Err(Malformed::Missing { what: "term" }));
    /// ```
    fn from_wire(wire: Wire) -> Result<Self, Malformed>;
}

/// Reads a part that must be there.
///
/// # Errors
///
/// [`Malformed`]: the part is absent, or wrong itself.
pub fn required<T: FromWire<W>, W>(part: Option<W>, what: &'static str) -> Result<T, Malformed> {
    T::from_wire(part.ok_or(Malformed::Missing { what })?)
}

/// Reads a part that may be absent.
///
/// # Errors
///
/// [`Malformed`]: the part is there and wrong.
pub fn optional<T: FromWire<W>, W>(part: Option<W>) -> Result<Option<T>, Malformed> {
    part.map(T::from_wire).transpose()
}

/// Reads the items of a list, up to a bound.
///
/// # Errors
///
/// [`Malformed::TooMany`], or what is wrong with the first item that is.
pub fn list<T: FromWire<W>, W>(
    items: Vec<W>,
    what: &'static str,
    max: usize,
) -> Result<Vec<T>, Malformed> {
    let count = items.len();
    if count > max {
        return Err(Malformed::TooMany { what, count, max });
    }
    items.into_iter().map(T::from_wire).collect()
}

/// Reads a list of a destination's answer, which is bounded by the size of the message.
fn answered<T: FromWire<W>, W>(items: Vec<W>) -> Result<Vec<T>, Malformed> {
    items.into_iter().map(T::from_wire).collect()
}

fn to_wire_list<T: ToWire>(items: &[T]) -> Vec<T::Wire> {
    items.iter().map(ToWire::to_wire).collect()
}

/// Reads bytes of a fixed length.
fn exactly<const N: usize>(bytes: &[u8], what: &'static str) -> Result<[u8; N], Malformed> {
    bytes.try_into().map_err(|_| match bytes.len() {
        0 => Malformed::Missing { what },
        _ => Malformed::Number { what },
    })
}

/// Reads a digest.
fn digest(bytes: &[u8]) -> Result<Digest, Malformed> {
    exactly(bytes, parts::DIGEST).map(Digest::new)
}

fn digest_to_wire(digest: &Digest) -> Bytes {
    Bytes::copy_from_slice(&digest.bytes())
}

macro_rules! name_from_bytes {
    ($($name:ident),*) => {
        $(
            impl FromWire<Bytes> for $name {
                fn from_wire(wire: Bytes) -> Result<Self, Malformed> {
                    Ok(Self::new(wire)?)
                }
            }

            impl ToWire for $name {
                type Wire = Bytes;

                fn to_wire(&self) -> Bytes {
                    Bytes::copy_from_slice(self.as_bytes())
                }
            }
        )*
    };
}
name_from_bytes!(
    Configuration,
    Guard,
    Holder,
    InputName,
    IntentId,
    Key,
    Owner,
    Prefix
);

impl FromWire<u64> for Revision {
    fn from_wire(wire: u64) -> Result<Self, Malformed> {
        Self::new(wire).ok_or(Malformed::Number {
            what: parts::REVISION,
        })
    }
}

/// Reads a generation that may be 0, "does not exist".
fn generation(raw: u64) -> Result<Option<Generation>, Malformed> {
    match raw {
        0 => Ok(None),
        _ => match Generation::new(raw) {
            Some(generation) => Ok(Some(generation)),
            None => Err(Malformed::Number {
                what: parts::GENERATION,
            }),
        },
    }
}

/// Reads a revision that may be 0, "none".
fn revision_or_none(raw: u64) -> Result<Option<Revision>, Malformed> {
    match raw {
        0 => Ok(None),
        _ => Revision::from_wire(raw).map(Some),
    }
}

fn generation_to_wire(generation: Option<Generation>) -> u64 {
    generation.map_or(0, Generation::get)
}

fn metageneration_to_wire(metageneration: Option<Metageneration>) -> u64 {
    metageneration.map_or(0, Metageneration::get)
}
