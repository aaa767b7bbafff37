//! Settings of a log, and their bounds.

use std::fmt;

use crate::frame::{TRAILER_BYTES, frame_bytes};
use crate::segment::HEADER_BLOCK_BYTES;

/// Smallest allowed [`LogOptions::segment_bytes`].
pub const MIN_SEGMENT_BYTES: u64 = 64 * 1024;
/// Largest allowed [`LogOptions::segment_bytes`].
pub const MAX_SEGMENT_BYTES: u64 = 1024 * 1024 * 1024;
/// Largest allowed [`LogOptions::spare_segments`].
pub const MAX_SPARE_SEGMENTS: u32 = 64;

const _: () = assert!(MIN_SEGMENT_BYTES > HEADER_BLOCK_BYTES + TRAILER_BYTES + frame_bytes(0));
const _: () = assert!(MIN_SEGMENT_BYTES.is_multiple_of(HEADER_BLOCK_BYTES));
const _: () = assert!(MAX_SEGMENT_BYTES.is_multiple_of(HEADER_BLOCK_BYTES));

/// Settings of a log. All but `log_id` may differ from one opening to the next: a segment keeps
/// the size that it was made with.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size of a new segment in bytes, a multiple of 4096 between [`MIN_SEGMENT_BYTES`] and
    /// [`MAX_SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// The longest payload in bytes. A frame never spans segments, so it must fit into one.
    pub max_payload_bytes: u32,
    /// Tells this log from every other one; files that carry another id are refused.
    pub log_id: [u8; 16],
    /// How many ready segments are kept beyond the active one, up to [`MAX_SPARE_SEGMENTS`].
    /// Recycled segments beyond that are removed.
    pub spare_segments: u32,
    /// Where the numbers that mark a segment's frames come from.
    pub salts: SaltSource,
}

/// Where the numbers come from that mark the frames of one use of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaltSource {
    /// The random numbers of the operating system: the only choice for real data.
    OperatingSystem,
    /// Numbers computed from this seed and the segment's number, for simulations that must run
    /// the same way twice. Whoever knows the seed can make up frames.
    Seeded(u64),
}

/// Why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsError {
    /// `segment_bytes` is out of its bounds or no multiple of 4096.
    SegmentBytes {
        /// What was asked for.
        given: u64,
    },
    /// A frame with the longest payload does not fit into a segment.
    PayloadBytes {
        /// What was asked for.
        given: u32,
        /// The longest that would fit.
        max: u64,
    },
    /// `spare_segments` is above its bound.
    SpareSegments {
        /// What was asked for.
        given: u32,
    },
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SegmentBytes { given } => write!(
                f,
                "a segment of {given} bytes is not a multiple of {HEADER_BLOCK_BYTES} between \
                 {MIN_SEGMENT_BYTES} and {MAX_SEGMENT_BYTES}"
            ),
            Self::PayloadBytes { given, max } => {
                write!(
                    f,
                    "payloads of {given} bytes do not fit into a segment, {max} would"
                )
            }
            Self::SpareSegments { given } => {
                write!(
                    f,
                    "{given} spare segments are more than {MAX_SPARE_SEGMENTS}"
                )
            }
        }
    }
}

impl std::error::Error for OptionsError {}

impl LogOptions {
    /// The usual settings for the log with this id: 64 MiB segments, payloads up to 32 MiB, one
    /// spare segment.
    #[must_use]
    pub const fn new(log_id: [u8; 16]) -> Self {
        Self {
            segment_bytes: 64 * 1024 * 1024,
            max_payload_bytes: 32 * 1024 * 1024,
            log_id,
            spare_segments: 1,
            salts: SaltSource::OperatingSystem,
        }
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// The first bound that is not kept.
    ///
    /// ```
    /// use highwater_wal::LogOptions;
    /// let mut options = LogOptions::new([7; 16]);
    /// assert!(options.validate().is_ok());
    /// options.segment_bytes = 64 * 1024;
    /// assert!(options.validate().is_err(), "a 32 MiB payload cannot fit");
    /// ```
    pub fn validate(&self) -> Result<(), OptionsError> {
        let size = self.segment_bytes;
        let in_bounds = (MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&size);
        if !in_bounds || !size.is_multiple_of(HEADER_BLOCK_BYTES) {
            return Err(OptionsError::SegmentBytes { given: size });
        }
        let max = size - HEADER_BLOCK_BYTES - TRAILER_BYTES - frame_bytes(0);
        if u64::from(self.max_payload_bytes) > max {
            return Err(OptionsError::PayloadBytes {
                given: self.max_payload_bytes,
                max,
            });
        }
        if self.spare_segments > MAX_SPARE_SEGMENTS {
            return Err(OptionsError::SpareSegments {
                given: self.spare_segments,
            });
        }
        Ok(())
    }
}
