//! A segment's header and names, and the names of the files around it. Pure.
//!
//! ```text
//!  0        8        12       28       36       44      52        60       64         4092   4096
//!  | magic  | version| log id | number | first  | salt  | segment | prev.  | zeros … | crc    |
//!  |        |        |        |        | lsn    |       | bytes   | frame  |         |        |
//! ```

use std::io;

use crate::error::{Damage, LogError};
use crate::frame::{Link, Salt, Seal};
use crate::lsn::Lsn;
use crate::number::{take, take_u32, take_u64};
use crate::options::{LogOptions, MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES, SaltSource};

/// The header has a block of its own, so that no later write can tear it.
pub(crate) const HEADER_BLOCK_BYTES: u64 = 4096;
const BLOCK: usize = 4096;
const CRC_OFFSET: usize = BLOCK - size_of::<u32>();
const MAGIC: [u8; 8] = *b"HWLOGSEG";
const MAGIC_BYTES: u64 = 8;
const VERSION: u32 = 1;
const LOG_ID_OFFSET: u64 = 12;
const NUMBER_OFFSET: u64 = 28;

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) number: u64,
    /// Number of the first data frame, whether in this segment or, if it has none, in the next.
    pub(crate) first: Lsn,
    pub(crate) salt: Salt,
    pub(crate) segment_bytes: u64,
    /// Checksum of the frame before, the seal of the segment before; zero in the first segment.
    pub(crate) previous: u32,
}

impl SegmentHeader {
    /// The whole header block.
    pub(crate) fn encode(&self, log_id: &[u8; 16]) -> Vec<u8> {
        let mut block = Vec::with_capacity(BLOCK);
        block.extend_from_slice(&MAGIC);
        block.extend_from_slice(&VERSION.to_be_bytes());
        block.extend_from_slice(log_id);
        block.extend_from_slice(&self.number.to_be_bytes());
        block.extend_from_slice(&self.first.get().to_be_bytes());
        block.extend_from_slice(&self.salt.get().to_be_bytes());
        block.extend_from_slice(&self.segment_bytes.to_be_bytes());
        block.extend_from_slice(&self.previous.to_be_bytes());
        block.resize(CRC_OFFSET, 0);
        let crc = crc32fast::hash(&block);
        block.extend_from_slice(&crc.to_be_bytes());
        block
    }

    /// Judges the first block of the segment with this number.
    pub(crate) fn decode(block: &[u8], number: u64, log_id: &[u8; 16]) -> Result<Self, LogError> {
        let file = log_name(number);
        let corrupt = |offset, damage| LogError::Corrupt {
            file: file.clone(),
            offset,
            damage,
        };
        let (Some(covered), Some(mut crc)) =
            (block.get(..CRC_OFFSET), block.get(CRC_OFFSET..BLOCK))
        else {
            return Err(corrupt(block.len() as u64, Damage::ShortHeader));
        };
        let mut rest = covered;
        if take(&mut rest) != Some(MAGIC) {
            return Err(corrupt(0, Damage::HeaderMagic));
        }
        let stored = take_u32(&mut crc).unwrap_or(0);
        let computed = crc32fast::hash(covered);
        if stored != computed {
            return Err(corrupt(0, Damage::HeaderChecksum { stored, computed }));
        }
        // Every format version keeps what was read so far where it is.
        let version = take_u32(&mut rest).unwrap_or(0);
        if version != VERSION {
            let (offset, supported) = (MAGIC_BYTES, VERSION);
            return Err(LogError::UnknownVersion {
                file,
                offset,
                found: version,
                supported,
            });
        }
        let found = take(&mut rest).unwrap_or([0; 16]);
        if found != *log_id {
            let (offset, expected) = (LOG_ID_OFFSET, *log_id);
            return Err(LogError::ForeignLog {
                file,
                offset,
                expected,
                found,
            });
        }
        let header =
            Self::decode_fields(rest).ok_or_else(|| corrupt(NUMBER_OFFSET, Damage::HeaderField))?;
        if header.number != number {
            return Err(corrupt(
                NUMBER_OFFSET,
                Damage::OtherSegment {
                    found: header.number,
                },
            ));
        }
        Ok(header)
    }

    fn decode_fields(mut rest: &[u8]) -> Option<Self> {
        let header = Self {
            number: take_u64(&mut rest)?,
            first: Lsn::from_raw(take_u64(&mut rest)?)?,
            salt: Salt::new(take_u64(&mut rest)?)?,
            segment_bytes: take_u64(&mut rest)?,
            previous: take_u32(&mut rest)?,
        };
        let sized = (MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&header.segment_bytes)
            && header.segment_bytes.is_multiple_of(HEADER_BLOCK_BYTES);
        (sized && rest.iter().all(|byte| *byte == 0)).then_some(header)
    }

    /// The seal that the segment before gets when it is followed by this one, and its checksum.
    /// It is known before it is written, so that the header can carry the checksum.
    pub(crate) fn seal_before(&self, salt_before: Salt, previous: u32) -> (u32, Vec<u8>) {
        let link = Link {
            salt: salt_before,
            lsn: self.first,
            previous,
        };
        Seal {
            next_number: self.number,
            next_salt: self.salt.get(),
        }
        .encode(&link)
    }
}

/// Draws the salt for the segment with this number.
pub(crate) fn draw_salt(options: &LogOptions, number: u64) -> Result<Salt, LogError> {
    let raw = match options.salts {
        SaltSource::OperatingSystem => getrandom::u64().map_err(|error| LogError::Entropy {
            source: io::Error::from(error),
        })?,
        SaltSource::Seeded(seed) => mix(seed ^ mix(number)),
    };
    Ok(Salt::new(raw).unwrap_or(Salt::MIN))
}

/// Spreads every bit of the input over the whole output (a bijection).
const fn mix(input: u64) -> u64 {
    let mut x = input.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const LOG_PREFIX: &str = "log-";
const SPARE_PREFIX: &str = "spare-";
const SUFFIX: &str = ".hw";
const UNFINISHED_SUFFIX: &str = ".hw.tmp";

/// Name of the segment with this number.
pub(crate) fn log_name(number: u64) -> String {
    format!("{LOG_PREFIX}{number:016x}{SUFFIX}")
}

/// Name of a segment that is ready for use but carries nothing.
pub(crate) fn spare_name(id: u64) -> String {
    format!("{SPARE_PREFIX}{id:016x}{SUFFIX}")
}

/// Name of a spare segment that is still being made.
pub(crate) fn unfinished_name(id: u64) -> String {
    format!("{SPARE_PREFIX}{id:016x}{UNFINISHED_SUFFIX}")
}

/// What a file of the directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Segment(u64),
    Spare(u64),
    Unfinished,
    /// Begins and ends like a segment, but is none.
    Strange,
    /// Not the log's.
    Other,
}

impl Name {
    pub(crate) fn parse(name: &str) -> Self {
        let number = |prefix: &str| {
            let digits = name.strip_prefix(prefix)?.strip_suffix(SUFFIX)?;
            u64::from_str_radix(digits, 16).ok()
        };
        // Comparing with the name that would be written leaves one spelling for each number.
        match (number(LOG_PREFIX), number(SPARE_PREFIX)) {
            (Some(found), _) if found > 0 && log_name(found) == name => Self::Segment(found),
            (_, Some(found)) if spare_name(found) == name => Self::Spare(found),
            _ if name.starts_with(SPARE_PREFIX) && name.ends_with(UNFINISHED_SUFFIX) => {
                Self::Unfinished
            }
            _ if name.starts_with(LOG_PREFIX) && name.ends_with(SUFFIX) => Self::Strange,
            _ => Self::Other,
        }
    }
}
