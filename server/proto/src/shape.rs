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

/// A message that is sent by itself.
pub(crate) trait Shaped {
    /// What a request must be like. `None` for plain reads, which a newer client may ask more than
    /// is known, and for answers, which come from a server that keeps its own bounds.
    const SHAPE: Option<&'static Shape>;
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
    pub(crate) fn check(&'static self, bytes: &[u8], max: usize) -> Result<usize, Misfit> {
        let mut walk = Walk {
            left: max,
            misfit: Misfit::TooMany { max },
        };
        match walk.over(self, bytes) {
            Some(()) => Ok(max.saturating_sub(walk.left)),
            None => Err(walk.misfit),
        }
    }
}

/// A walk over a request. Its steps say where they stopped, not why: that is put down once, so that
/// what passes from step to step is small.
struct Walk {
    left: usize,
    misfit: Misfit,
}

impl Walk {
    fn over(&mut self, shape: &'static Shape, mut bytes: &[u8]) -> Option<()> {
        while bytes.has_remaining() {
            let Some(tag) = varint(&mut bytes) else {
                return self.unreadable(shape);
            };
            let number = tag >> 3;
            let known = usize::try_from(number).ok();
            let inner = match known.and_then(|number| shape.fields.get(number)) {
                None | Some(Field::Unknown) => return self.unknown(shape, number),
                Some(Field::Plain) => None,
                Some(Field::Item) => {
                    self.count()?;
                    None
                }
                Some(Field::Message(inner)) => {
                    self.count()?;
                    Some(*inner)
                }
            };
            match (inner, content(tag, &mut bytes)) {
                (None, Some(_)) => {}
                (Some(inner), Some(Some(content))) => self.over(inner, content)?,
                (_, None) | (Some(_), Some(None)) => return self.unreadable(shape),
            }
        }
        Some(())
    }

    fn count(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }

    #[cold]
    fn unreadable(&mut self, shape: &Shape) -> Option<()> {
        let message = shape.name;
        self.misfit = Misfit::Unreadable { message };
        None
    }

    #[cold]
    fn unknown(&mut self, shape: &Shape, field: u64) -> Option<()> {
        let message = shape.name;
        self.misfit = match field {
            0 => Misfit::Unreadable { message },
            field => Misfit::Unknown { message, field },
        };
        None
    }
}

/// Takes a field's content: its bytes where it has a length, and none otherwise. `None` for what
/// can't be read, groups among it: no message has any.
#[inline]
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

#[inline]
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    // Nearly every tag and length has one byte.
    match bytes.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *bytes = rest;
            Some(u64::from(byte))
        }
        _ => prost::encoding::decode_varint(bytes).ok(),
    }
}

/// The shapes of the requests that are looked into, generated from their description.
mod requests {
    use super::{Field, Shape, Shaped};

    include!(concat!(env!("OUT_DIR"), "/shapes.rs"));
}

#[cfg(test)]
mod tests;
