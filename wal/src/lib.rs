//! The write-ahead log of Highwater: checksummed, chained, preallocated, recycled segments.
//!
//! The log keeps numbered, opaque byte payloads. **A frame is the unit of append and sync**: one
//! [`Log::append`] is one write and one sync, so at most one frame is ever unconfirmed. This is
//! what lets recovery tell a torn tail from corruption: a frame is written only after the one
//! before it was durable, hence a good frame behind a bad one proves that the bad one had been
//! durable, and the log refuses to open instead of losing it.
//!
//! ```text
//!  log-…01.hw                                    log-…02.hw
//!  ┌────────┬─────────┬─────────┬──────┬───┐     ┌────────┬─────────┬──────────────┐
//!  │ header │ frame 1 │ frame 2 │ seal │ 0 │ ──▶ │ header │ frame 3 │ zeros …      │
//!  └────────┴─────────┴─────────┴──────┴───┘     └────────┴─────────┴──────────────┘
//!            each frame carries the checksum of the one before, over segments too
//! ```
//!
//! Every byte of a segment has its space before the first frame goes in, so an append changes no
//! metadata of the file system and cannot find the disk full. The exact bytes, and when they are
//! valid, are written down in `docs/FORMAT.md`.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use highwater_wal::{FrameBuf, Log, LogOptions, OsDisk};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let mut options = LogOptions::new(*b"an example's log");
//! options.segment_bytes = 128 * 1024;
//! options.max_payload_bytes = 64 * 1024;
//!
//! let disk = Arc::new(OsDisk::open(dir.path())?);
//! let (mut log, recovered) = Log::open(disk.clone(), options.clone(), &mut |_, _| Ok(()))?;
//! assert!(recovered.created);
//!
//! let mut frame = FrameBuf::new();
//! frame.extend_from_slice(b"a group of commits");
//! let durable = log.append(&mut frame)?;
//! // Only now, with `durable` in hand, may anyone be told.
//! drop(log);
//!
//! let mut seen = Vec::new();
//! let (_log, recovered) = Log::open(disk, options, &mut |lsn, payload| {
//!     seen.push((lsn, payload.to_vec()));
//!     Ok(())
//! })?;
//! assert_eq!(seen, [(durable.lsn(), b"a group of commits".to_vec())]);
//! assert_eq!(recovered.last, Some(durable));
//! # Ok(())
//! # }
//! ```

mod buffer;
mod disk;
mod error;
mod frame;
mod lsn;
mod number;
mod options;
mod pool;
mod recovery;
mod repair;
mod segment;
mod window;
mod writer;

pub use buffer::FrameBuf;
pub use disk::{Disk, DiskFile, OsDisk};
pub use error::{Damage, IoOp, LogError, lacks_space};
pub use frame::FrameFault;
pub use lsn::{Durable, Lsn};
pub use options::{
    LogOptions, MAX_SEGMENT_BYTES, MAX_SPARE_SEGMENTS, MIN_SEGMENT_BYTES, OptionsError, SaltSource,
};
pub use pool::{Lacking, SegmentPool};
pub use writer::{CutShort, Log, LogStatus, Recovered, Replay, ReplayStop, TornTail};
