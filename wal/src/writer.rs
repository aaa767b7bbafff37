//! The log itself: open, append, rotate, close.

use std::sync::Arc;

use crate::buffer::FrameBuf;
use crate::disk::{Disk, DiskFile};
use crate::error::{IoOp, LogError, io_error, space_error};
use crate::frame::{FrameFault, Kind, Link, Salt, TRAILER_BYTES, encode_closed, frame_bytes};
use crate::lsn::{Durable, Lsn};
use crate::options::LogOptions;
use crate::pool::{Sealed, SegmentPool, Spare};
use crate::recovery::{Catalogue, Chain, Judged, Segment, judge};
use crate::repair::repair;
use crate::segment::{HEADER_BLOCK_BYTES, SegmentHeader, draw_salt, log_name, spare_name};

/// Number of the first segment of every log.
const FIRST_SEGMENT: u64 = 1;

/// The answer of a replay that wants no more frames. The caller keeps the reason for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayStop;

/// Takes each data frame that is found when a log is opened: its position and its payload.
pub type Replay<'a> = dyn FnMut(Lsn, &[u8]) -> Result<(), ReplayStop> + 'a;

/// What opening a log found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// How many data frames were replayed.
    pub frames: u64,
    /// Position of the first one; later than [`Lsn::FIRST`] once segments were recycled.
    pub first: Option<Lsn>,
    /// The last position given out so far, now durable; `None` in a log without any.
    pub last: Option<Durable>,
    /// Whether the log was made by this call.
    pub created: bool,
    /// Whether the log had been closed in good order.
    pub closed: bool,
    /// The rest of a frame that was being written when the process ended, and is gone now.
    pub torn: Option<TornTail>,
    /// The file that takes the next frame was shorter than its segment, by a log that wasn't
    /// closed. No crash does that: somebody cut it, and frames that stood behind are lost unseen.
    pub cut_short: Option<CutShort>,
}

/// A file that had lost its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutShort {
    /// The file.
    pub file: String,
    /// How many bytes were left of it.
    pub bytes: u64,
}

/// The rest of a frame that was never confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file it was in.
    pub file: String,
    /// Offset in bytes at which it began.
    pub offset: u64,
    /// What was wrong with it.
    pub fault: FrameFault,
}

/// Figures of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// Position of the oldest data frame that is still there.
    pub first: Option<Lsn>,
    /// The last position given out.
    pub last: Option<Lsn>,
    /// Segments that hold frames, the active one included.
    pub segments: usize,
    /// Segments that are ready to be used.
    pub spares: usize,
    /// Bytes of the active segment that have no frame yet.
    pub active_bytes_left: u64,
    /// Bytes that all segments and spares take.
    pub disk_bytes: u64,
    /// Whether an earlier failure stopped the log.
    pub poisoned: bool,
}

/// The segment that takes the next frame.
#[derive(Debug)]
struct Active {
    header: SegmentHeader,
    name: String,
    file: Box<dyn DiskFile>,
    /// Where the next frame goes.
    end: u64,
}

/// A log that takes frames. There is one for a directory at a time: the caller sees to that.
///
/// Dropping it is like a crash: safe, but the next opening cannot tell that nothing is missing.
/// [`Log::close`] says so on the disk.
#[derive(Debug)]
pub struct Log {
    pool: Arc<SegmentPool>,
    options: LogOptions,
    active: Active,
    chain: Chain,
    /// Whether the last frame says that the log was closed.
    closed: bool,
}

impl Log {
    /// Opens the log in `disk`, or makes a new one if there is none.
    ///
    /// Every data frame that is there goes to `replay`, oldest first. What `replay` does must stay
    /// without effect until this call has returned `Ok`: damage may show later than a frame, and
    /// only the end of the call makes the last frame durable. Nothing on the disk changes before
    /// all of it was judged; then a torn tail is cleared and the last frame confirmed.
    ///
    /// # Errors
    /// [`LogError::Corrupt`], [`LogError::ForeignLog`], [`LogError::UnknownVersion`] and
    /// [`LogError::StrangeName`] if the disk does not hold an intact log, and
    /// [`LogError::ReplayStopped`] if `replay` stopped: nothing was changed. [`LogError::Options`],
    /// [`LogError::Io`], [`LogError::Full`], [`LogError::NoDescriptor`]: opening may be tried
    /// again.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        replay: &mut Replay<'_>,
    ) -> Result<(Self, Recovered), LogError> {
        options.validate().map_err(LogError::Options)?;
        let catalogue = Catalogue::read(&*disk)?;
        let (mut frames, mut first) = (0, None);
        let mut count = |lsn, payload: &[u8]| {
            frames += 1;
            first.get_or_insert(lsn);
            replay(lsn, payload)
        };
        let judged = judge(&*disk, &options, &catalogue.segments, &mut count)?;
        let created = judged.is_none();
        let torn = judged.as_ref().and_then(Judged::torn_tail);
        let cut_short = judged
            .as_ref()
            .map(Judged::cut_short)
            .transpose()?
            .flatten();
        let log = match judged {
            Some(judged) => Self::resume(disk, options, &catalogue, judged)?,
            None => Self::create(disk, options, &catalogue)?,
        };
        let last = log.last().map(Durable::after_sync);
        let closed = log.closed;
        Ok((
            log,
            Recovered {
                frames,
                first,
                last,
                created,
                closed,
                torn,
                cut_short,
            },
        ))
    }

    fn create(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        catalogue: &Catalogue,
    ) -> Result<Self, LogError> {
        let pool = SegmentPool::open(disk, &options, catalogue, [].into())?;
        let header = SegmentHeader {
            number: FIRST_SEGMENT,
            first: Lsn::FIRST,
            salt: draw_salt(&options, FIRST_SEGMENT)?,
            segment_bytes: options.segment_bytes,
            previous: 0,
        };
        let spare = pool.take()?;
        let active = begin_segment(&pool, spare, header, &options.log_id)?;
        let chain = Chain {
            next: header.first,
            previous: header.previous,
        };
        Ok(Self {
            pool: Arc::new(pool),
            options,
            active,
            chain,
            closed: false,
        })
    }

    fn resume(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        catalogue: &Catalogue,
        judged: Judged,
    ) -> Result<Self, LogError> {
        repair(&judged)?;
        let sealed = judged.sealed.iter().map(Sealed::from_segment).collect();
        let pool = SegmentPool::open(disk, &options, catalogue, sealed)?;
        // The youngest goes first, so that a crash leaves no gap.
        for number in judged.leftovers.iter().rev() {
            pool.retire(*number)?;
        }
        let Segment {
            header,
            file,
            end,
            chain,
            ..
        } = judged.active;
        let active = Active {
            header,
            name: log_name(header.number),
            file,
            end,
        };
        Ok(Self {
            pool: Arc::new(pool),
            options,
            active,
            chain,
            closed: judged.closed,
        })
    }

    /// Writes one data frame and makes it durable: one write and one sync, and a few more
    /// whenever the active segment is full and the next one is begun. The payload stays in
    /// `payload` until the caller clears it.
    ///
    /// # Errors
    /// [`LogError::TooLarge`], [`LogError::Full`] or [`LogError::NoDescriptor`]: nothing was
    /// appended and the log can be used. [`LogError::Io`]: whether the frame is there is unknown,
    /// and the log is poisoned. [`LogError::Poisoned`] after that, for ever.
    /// [`LogError::Exhausted`] if no position is left, [`LogError::Entropy`] as for `Full`.
    pub fn append(&mut self, payload: &mut FrameBuf) -> Result<Durable, LogError> {
        self.pool.check()?;
        let payload_len = payload.len();
        let payload_bytes = self.checked_len(payload_len)?;
        let result = self.append_data(payload, payload_bytes);
        payload.strip(payload_len);
        result.inspect_err(|error| self.poison_after(error))
    }

    fn append_data(
        &mut self,
        payload: &mut FrameBuf,
        payload_bytes: u32,
    ) -> Result<Durable, LogError> {
        let lsn = self.chain.next;
        let next = lsn.next().ok_or(LogError::Exhausted)?;
        let frame_bytes = frame_bytes(payload_bytes);
        if self.active.end + frame_bytes + TRAILER_BYTES > self.active.header.segment_bytes {
            self.rotate()?;
        }
        let (crc, frame) = payload.complete(&self.link(), Kind::Data, payload_bytes);
        self.active.write(frame)?;
        self.active.end += frame_bytes;
        self.chain = Chain {
            next,
            previous: crc,
        };
        self.closed = false;
        Ok(Durable::after_sync(lsn))
    }

    /// What is on the disk is unknown after a failure of the storage, and neither the write nor
    /// the sync may be tried again. This holds even where it would be possible to go on, so that
    /// the same answer always means the same.
    fn poison_after(&self, error: &LogError) {
        if matches!(error, LogError::Io { .. }) {
            self.pool.poison();
        }
    }

    fn checked_len(&self, payload_len: usize) -> Result<u32, LogError> {
        let max_payload_bytes = self.options.max_payload_bytes;
        match u32::try_from(payload_len) {
            Ok(len) if len <= max_payload_bytes => Ok(len),
            _ => Err(LogError::TooLarge {
                payload_bytes: payload_len as u64,
                max_payload_bytes,
            }),
        }
    }

    /// Begins the next segment. It is complete and durable under its name before the seal is
    /// written, and the seal is durable before any frame behind it: a seal without its successor
    /// is therefore corruption, and so is a frame behind a segment without a seal.
    fn rotate(&mut self) -> Result<(), LogError> {
        let number = self
            .active
            .header
            .number
            .checked_add(1)
            .ok_or(LogError::Exhausted)?;
        let mut header = SegmentHeader {
            number,
            first: self.chain.next,
            salt: draw_salt(&self.options, number)?,
            segment_bytes: self.pool.segment_bytes(),
            previous: 0,
        };
        let (crc, seal) = header.seal_before(self.active.header.salt, self.chain.previous);
        header.previous = crc;
        let spare = self.pool.take()?;
        let next = begin_segment(&self.pool, spare, header, &self.options.log_id)?;
        self.active.write(&seal)?;
        let full = std::mem::replace(&mut self.active, next);
        self.chain.previous = crc;
        self.pool.add_sealed(Sealed {
            number: full.header.number,
            first: full.header.first,
            end: header.first,
            bytes: full.header.segment_bytes,
        });
        Ok(())
    }

    /// As [`SegmentPool::recycle_through`].
    ///
    /// # Errors
    /// As there.
    pub fn recycle_through(&mut self, lsn: Lsn) -> Result<(), LogError> {
        self.pool.recycle_through(lsn)
    }

    /// As [`SegmentPool::ensure_spare`].
    ///
    /// # Errors
    /// As there.
    pub fn ensure_spare(&mut self) -> Result<(), LogError> {
        self.pool.ensure_spare()
    }

    /// The part of the log that another thread may work on.
    #[must_use]
    pub fn pool(&self) -> Arc<SegmentPool> {
        Arc::clone(&self.pool)
    }

    /// The log's figures at this moment.
    #[must_use]
    pub fn status(&self) -> LogStatus {
        let pool = self.pool.status();
        let oldest = pool.first.unwrap_or(self.active.header.first);
        LogStatus {
            first: Some(oldest).filter(|first| *first < self.chain.next),
            last: self.last(),
            segments: pool.sealed + 1,
            spares: pool.spares,
            active_bytes_left: self
                .active
                .header
                .segment_bytes
                .saturating_sub(self.active.end),
            disk_bytes: pool.bytes + self.active.header.segment_bytes,
            poisoned: self.pool.is_poisoned(),
        }
    }

    /// Says on the disk that the log ends here. With a frame behind every data frame, damage to
    /// any of them can be told from a torn tail at the next opening.
    ///
    /// # Errors
    /// [`LogError::Io`] or [`LogError::Poisoned`]: the frames are as durable as they were, and
    /// the log opens as after a crash.
    pub fn close(self) -> Result<(), LogError> {
        self.pool.check()?;
        if self.closed {
            return Ok(());
        }
        let (_, frame) = encode_closed(&self.link());
        self.active.write(&frame)
    }

    fn link(&self) -> Link {
        let salt: Salt = self.active.header.salt;
        Link {
            salt,
            lsn: self.chain.next,
            previous: self.chain.previous,
        }
    }

    fn last(&self) -> Option<Lsn> {
        Lsn::from_raw(self.chain.next.get() - 1)
    }
}

impl Judged {
    fn cut_short(&self) -> Result<Option<CutShort>, LogError> {
        let file = log_name(self.active.header.number);
        let bytes = self.active.file.len();
        let bytes = bytes.map_err(io_error(IoOp::Length, &file))?;
        let is_cut = !self.closed && bytes < self.active.header.segment_bytes;
        Ok(is_cut.then_some(CutShort { file, bytes }))
    }

    fn torn_tail(&self) -> Option<TornTail> {
        let (fault, offset) = (self.fault, self.active.end);
        let file = log_name(self.active.header.number);
        (fault != FrameFault::NoMark).then_some(TornTail {
            file,
            offset,
            fault,
        })
    }
}

impl Sealed {
    fn from_segment(segment: &Segment) -> Self {
        Self {
            number: segment.header.number,
            first: segment.header.first,
            end: segment.chain.next,
            bytes: segment.header.segment_bytes,
        }
    }
}

impl Active {
    /// Writes a frame behind the last one and makes it durable.
    fn write(&self, frame: &[u8]) -> Result<(), LogError> {
        let written = self.file.write_all_at(self.end, frame);
        written.map_err(io_error(IoOp::Write, &self.name))?;
        self.file
            .sync_data()
            .map_err(io_error(IoOp::Sync, &self.name))
    }
}

/// Gives a spare its header and its name, both durable. A lack of space leaves it a spare.
fn begin_segment(
    pool: &SegmentPool,
    spare: Spare,
    header: SegmentHeader,
    log_id: &[u8; 16],
) -> Result<Active, LogError> {
    let name = log_name(header.number);
    if let Err(error) = write_header(pool, &spare, &header.encode(log_id), &name) {
        if matches!(error, LogError::Full { .. } | LogError::NoDescriptor { .. }) {
            pool.give_back(spare);
        }
        return Err(error);
    }
    pool.sync_dir()?;
    Ok(Active {
        header,
        name,
        file: spare.file,
        end: HEADER_BLOCK_BYTES,
    })
}

fn write_header(
    pool: &SegmentPool,
    spare: &Spare,
    header: &[u8],
    name: &str,
) -> Result<(), LogError> {
    let spare_name = spare_name(spare.id);
    let written = spare.file.write_all_at(0, header);
    written.map_err(space_error(IoOp::Write, &spare_name))?;
    spare
        .file
        .sync_data()
        .map_err(io_error(IoOp::Sync, &spare_name))?;
    let renamed = pool.disk().rename(&spare_name, name);
    renamed.map_err(space_error(IoOp::Rename, &spare_name))
}
