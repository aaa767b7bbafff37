//! What a request may look like on the wire, and a walk over its bytes that finds what doesn't.
//!
//! Decoding drops what it doesn't know: a condition of a newer client would be gone, and the commit
//! accepted without it. The walk sees every field of every message that a request can hold, before
//! anything is decoded, and touches nothing but tags and lengths.

use std::fmt;

use bytes::Buf;

/// The fields of a message, by number.
pub(crate) struct Shape {
    /// The message's full name.
    pub(crate) name: &'static str,
    /// What each field is; numbers that are behind the end are unknown.
    pub(crate) fields: &'static [Field],
}

/// What a field is.
pub(crate) enum Field {
    /// Nothing that is known here.
    Unknown,
    /// One value: the last one that is sent counts.
    Plain,
    /// One value of a list.
    Item,
    /// A message, one or one of a list.
    Message(&'static Shape),
}

/// Why a request isn't decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Misfit {
    /// It has more parts than this.
    TooMany {
        /// Most parts.
        max: usize,
    },
    /// It says something that isn't known here.
    Unknown {
        /// The message that has the field.
        message: &'static str,
        /// The field's number.
        field: u64,
    },
    /// It ends too early or isn't of the form.
    Unreadable {
        /// The message that can't be read.
        message: &'static str,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { max } => {
                write!(f, "a message has at most {max} parts, all commits together")
            }
            Self::Unknown { message, field } => write!(
                f,
                "{message} has field {field}, which this server doesn't know; nothing was done"
            ),
            Self::Unreadable { message } => {
                write!(f, "{message} can't be read; nothing was done")
            }
        }
    }
}

impl Shape {
    /// Looks at every field of a message: all must be known, and the messages and items of lists,
    /// its parts, be no more than `max`. Gives how many they are.
    ///
    /// It doesn't look at how a known value is written: decoding does.
    pub(crate) fn check(&self, bytes: &[u8], max: usize) -> Result<usize, Misfit> {
        let mut left = max;
        self.walk(bytes, &mut left, max)?;
        Ok(max.saturating_sub(left))
    }

    fn walk(&self, mut bytes: &[u8], left: &mut usize, max: usize) -> Result<(), Misfit> {
        let message = self.name;
        let unreadable = Misfit::Unreadable { message };
        while bytes.has_remaining() {
            let tag = varint(&mut bytes).ok_or(unreadable)?;
            let number = tag >> 3;
            let known = usize::try_from(number).ok();
            let known = known.and_then(|number| self.fields.get(number));
            let inner = match known {
                None | Some(Field::Unknown) => {
                    return Err(match number {
                        0 => unreadable,
                        field => Misfit::Unknown { message, field },
                    });
                }
                Some(Field::Plain) => None,
                Some(Field::Item) => {
                    count(left, max)?;
                    None
                }
                Some(Field::Message(inner)) => {
                    count(left, max)?;
                    Some(*inner)
                }
            };
            let content = content(tag, &mut bytes).ok_or(unreadable)?;
            match (inner, content) {
                (None, _) => {}
                (Some(inner), Some(content)) => inner.walk(content, left, max)?,
                (Some(_), None) => return Err(unreadable),
            }
        }
        Ok(())
    }
}

fn count(left: &mut usize, max: usize) -> Result<(), Misfit> {
    *left = left.checked_sub(1).ok_or(Misfit::TooMany { max })?;
    Ok(())
}

/// Takes a field's content: its bytes where it has a length, and none otherwise. `None` for what
/// can't be read, groups among it: no message has any.
fn content<'a>(tag: u64, bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let fixed = match tag & 7 {
        0 => {
            varint(bytes)?;
            0
        }
        1 => 8,
        5 => 4,
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            let (content, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            return Some(Some(content));
        }
        _ => return None,
    };
    *bytes = bytes.get(fixed..)?;
    Some(None)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(bytes).ok()
}

/// The shapes of the requests that are looked into, generated from their description.
mod requests {
    use super::{Field, Shape};

    include!(concat!(env!("OUT_DIR"), "/shapes.rs"));
}

pub(crate) use requests::*;

#[cfg(test)]
mod tests;
