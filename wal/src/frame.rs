//! A frame and its bytes. Pure: no file is touched here.
//!
//! ```text
//!  0        8        16       20       24        28       32
//!  | salt   | lsn    | kind   | length | previous| crc    | payload … | zeros to a multiple of 8 |
//! ```

use std::fmt;
use std::num::NonZeroU64;

use crate::lsn::Lsn;
use crate::number::{take_u32, take_u64};

/// Bytes in front of every payload.
pub(crate) const HEADER_BYTES: usize = 32;

/// Every frame starts and ends at a multiple of this.
pub(crate) const ALIGN: usize = 8;

/// A number that is drawn anew each time a segment is put to use. A frame belongs to this use of
/// the segment only if it carries it, so neither what an earlier use left behind nor bytes that a
/// client made up can pass. Never zero: zeros are never a frame.
pub(crate) type Salt = NonZeroU64;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Carries a payload of the log's user.
    Data,
    /// Last frame of its segment; its payload names the next one.
    Seal,
    /// The log was closed in good order; more frames may follow after it was opened again.
    Closed,
}

impl Kind {
    const fn code(self) -> u32 {
        match self {
            Self::Data => 1,
            Self::Seal => 2,
            Self::Closed => 3,
        }
    }

    const fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Data),
            2 => Some(Self::Seal),
            3 => Some(Self::Closed),
            _ => None,
        }
    }
}

/// The place in the chain that a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) salt: Salt,
    /// Its own number for a data frame; the number of the next data frame for the other kinds.
    pub(crate) lsn: Lsn,
    /// Checksum of the frame before it, in whichever segment that is.
    pub(crate) previous: u32,
}

/// The header of a frame whose checksum has not been verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) link: Link,
    pub(crate) kind: Kind,
    pub(crate) payload_bytes: u32,
    pub(crate) crc: u32,
}

/// Why bytes are no frame of this segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// The bytes don't carry the number that marks frames of this use of the segment.
    NoMark,
    /// The kind of frame is not one of this format.
    Kind {
        /// What stands there.
        found: u32,
    },
    /// The position is zero.
    NoLsn,
    /// The frame would reach over the end of the segment.
    Length {
        /// The length that stands there, in bytes.
        found: u32,
    },
    /// The checksum is not the one of the bytes.
    Checksum {
        /// What stands there.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMark => write!(f, "it does not carry the segment's mark"),
            Self::Kind { found } => write!(f, "kind {found} is unknown"),
            Self::NoLsn => write!(f, "its position is zero"),
            Self::Length { found } => {
                write!(
                    f,
                    "its length of {found} bytes reaches over the end of the segment"
                )
            }
            Self::Checksum { stored, computed } => {
                write!(
                    f,
                    "its checksum is {stored:08x} but its bytes give {computed:08x}"
                )
            }
        }
    }
}

impl Header {
    /// Reads the header, as far as it can be judged without the payload.
    pub(crate) fn decode(bytes: &[u8], salt: Salt) -> Result<Self, FrameFault> {
        let mut rest = bytes;
        if take_u64(&mut rest) != Some(salt.get()) {
            return Err(FrameFault::NoMark);
        }
        // Fewer bytes than a header cannot hold the checksum; zeros in their stead are refused.
        let lsn = take_u64(&mut rest)
            .and_then(Lsn::from_raw)
            .ok_or(FrameFault::NoLsn)?;
        let code = take_u32(&mut rest).unwrap_or(0);
        let kind = Kind::from_code(code).ok_or(FrameFault::Kind { found: code })?;
        let payload_bytes = take_u32(&mut rest).unwrap_or(0);
        let previous = take_u32(&mut rest).unwrap_or(0);
        let Some(crc) = take_u32(&mut rest) else {
            return Err(FrameFault::Length {
                found: payload_bytes,
            });
        };
        Ok(Self {
            link: Link {
                salt,
                lsn,
                previous,
            },
            kind,
            payload_bytes,
            crc,
        })
    }

    /// Judges the bytes behind the header, payload and padding.
    pub(crate) fn verify(&self, body: &[u8]) -> Result<(), FrameFault> {
        let computed = checksum(&self.link, self.kind, self.payload_bytes, body);
        if computed == self.crc {
            Ok(())
        } else {
            Err(FrameFault::Checksum {
                stored: self.crc,
                computed,
            })
        }
    }
}

/// The header for `body`, which is the payload with its padding, and the checksum in it.
pub(crate) fn encode_header(
    link: &Link,
    kind: Kind,
    payload_bytes: u32,
    body: &[u8],
) -> (u32, [u8; HEADER_BYTES]) {
    let crc = checksum(link, kind, payload_bytes, body);
    let pair = |high: u32, low: u32| (u64::from(high) << 32) | u64::from(low);
    let words = [
        link.salt.get(),
        link.lsn.get(),
        pair(kind.code(), payload_bytes),
        pair(link.previous, crc),
    ];
    let mut header = [0; HEADER_BYTES];
    for (place, word) in header.chunks_exact_mut(size_of::<u64>()).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    (crc, header)
}

/// Covers every byte of the frame but the checksum itself.
fn checksum(link: &Link, kind: Kind, payload_bytes: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&link.salt.get().to_be_bytes());
    hasher.update(&link.lsn.get().to_be_bytes());
    hasher.update(&kind.code().to_be_bytes());
    hasher.update(&payload_bytes.to_be_bytes());
    hasher.update(&link.previous.to_be_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// The payload's length with its padding.
pub(crate) const fn padded(payload_bytes: usize) -> usize {
    payload_bytes.next_multiple_of(ALIGN)
}

/// The whole frame's length on disk.
pub(crate) const fn frame_bytes(payload_bytes: u32) -> u64 {
    HEADER_BYTES as u64 + (payload_bytes as u64).next_multiple_of(ALIGN as u64)
}

/// A seal: the last frame of a segment, naming the one that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) next_number: u64,
    pub(crate) next_salt: u64,
}

impl Seal {
    /// Length of a seal's payload.
    pub(crate) const PAYLOAD_BYTES: u32 = 16;

    /// The whole frame and its checksum.
    pub(crate) fn encode(self, link: &Link) -> (u32, Vec<u8>) {
        let mut payload = self.next_number.to_be_bytes().to_vec();
        payload.extend_from_slice(&self.next_salt.to_be_bytes());
        encode_frame(link, Kind::Seal, Self::PAYLOAD_BYTES, &payload)
    }

    /// Reads the payload of a seal; `None` if it has another length.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let mut rest = payload;
        let seal = Self {
            next_number: take_u64(&mut rest)?,
            next_salt: take_u64(&mut rest)?,
        };
        rest.is_empty().then_some(seal)
    }
}

/// The whole frame that says that the log was closed, and its checksum.
pub(crate) fn encode_closed(link: &Link) -> (u32, Vec<u8>) {
    encode_frame(link, Kind::Closed, 0, &[])
}

/// `body` must have its padding already.
fn encode_frame(link: &Link, kind: Kind, payload_bytes: u32, body: &[u8]) -> (u32, Vec<u8>) {
    let (crc, header) = encode_header(link, kind, payload_bytes, body);
    let mut bytes = header.to_vec();
    bytes.extend_from_slice(body);
    (crc, bytes)
}

/// Room that must be left behind every data frame: one closed frame and the seal.
pub(crate) const TRAILER_BYTES: u64 = frame_bytes(0) + frame_bytes(Seal::PAYLOAD_BYTES);
