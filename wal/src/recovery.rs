//! Judges what is on the disk: good frames, a torn tail, or corruption. Writes nothing.

use crate::disk::{Disk, DiskFile};
use crate::error::{Damage, IoOp, LogError, io_error};
use crate::frame::{FrameFault, Header, Kind, Salt, Seal, frame_bytes};
use crate::lsn::Lsn;
use crate::options::LogOptions;
use crate::segment::{HEADER_BLOCK_BYTES, Name, SegmentHeader, log_name};
use crate::window::Window;
use crate::writer::{Replay, ReplayStop};

/// How many bytes a header block has in memory.
const HEADER_BLOCK: usize = 4096;

/// Where the chain of frames stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// Number of the next data frame.
    pub(crate) next: Lsn,
    /// Checksum of the last frame.
    pub(crate) previous: u32,
}

/// A segment that takes part in the log.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) file: Box<dyn DiskFile>,
    /// Where its last frame begins, if it has one.
    pub(crate) last_frame: Option<u64>,
    /// Where its frames end.
    pub(crate) end: u64,
    /// The frame that names the segment behind it; `None` if this is the last one.
    pub(crate) seal: Option<Seal>,
    /// The chain behind its last frame.
    pub(crate) chain: Chain,
}

/// The log as it was found: intact, or with a torn tail.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Sealed segments, oldest first.
    pub(crate) sealed: Vec<Segment>,
    /// The segment that takes the next frame.
    pub(crate) active: Segment,
    /// Whether the last frame says that the log was closed.
    pub(crate) closed: bool,
    /// Why there is no further frame.
    pub(crate) fault: FrameFault,
    /// Numbers of segments behind the active one; they hold no frame. Ascending.
    pub(crate) leftovers: Vec<u64>,
}

/// What the names in the directory tell.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// Numbers of the segments, ascending.
    pub(crate) segments: Vec<u64>,
    /// Numbers of the spares, ascending.
    pub(crate) spares: Vec<u64>,
    /// Spares whose making was cut short.
    pub(crate) unfinished: Vec<String>,
}

impl Catalogue {
    /// Lists the directory. The segments must follow each other without a gap.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Self, LogError> {
        let mut catalogue = Self::default();
        for file in disk.list().map_err(io_error(IoOp::List, ""))? {
            match Name::parse(&file) {
                Name::Segment(number) => catalogue.segments.push(number),
                Name::Spare(id) => catalogue.spares.push(id),
                Name::Unfinished => catalogue.unfinished.push(file),
                Name::Strange => return Err(LogError::StrangeName { file }),
                Name::Other => {}
            }
        }
        catalogue.segments.sort_unstable();
        catalogue.spares.sort_unstable();
        catalogue.unfinished.sort_unstable();
        for pair in catalogue.segments.windows(2) {
            if let [before, after] = pair
                && after - before > 1
            {
                return Err(missing(before + 1));
            }
        }
        Ok(catalogue)
    }
}

/// Reads the whole log and hands each data frame to `replay`. `segments` ascend without a gap;
/// `None` if there are none.
pub(crate) fn judge(
    disk: &dyn Disk,
    options: &LogOptions,
    segments: &[u64],
    replay: &mut Replay<'_>,
) -> Result<Option<Judged>, LogError> {
    let mut sealed: Vec<Segment> = Vec::new();
    let mut rest = segments.iter().copied();
    while let Some(number) = rest.next() {
        let name = log_name(number);
        let file = disk.open(&name).map_err(io_error(IoOp::Open, &name))?;
        let mut window = Window::new(&*file, &name)?;
        let header = SegmentHeader::decode(window.view(0, HEADER_BLOCK)?, number, &options.log_id)?;
        if sealed
            .last()
            .is_some_and(|before| !before.is_followed_by(&header))
        {
            return Err(corrupt(name, 0, Damage::ChainBroken));
        }
        let scan = scan(&mut window, &name, &header, replay)?;
        if scan.seal.is_some() {
            sealed.push(scan.into_segment(header, file));
            continue;
        }
        let tail = Tail {
            name: &name,
            header: &header,
            scan: &scan,
        };
        tail.refuse_frames_behind(&mut window, scan.end, header.salt, scan.chain.next, &name)?;
        let leftovers: Vec<u64> = rest.collect();
        tail.judge_leftovers(disk, options, &leftovers)?;
        let (fault, closed) = (scan.fault, scan.closed);
        let active = scan.into_segment(header, file);
        return Ok(Some(Judged {
            sealed,
            active,
            fault,
            closed,
            leftovers,
        }));
    }
    match segments.last() {
        // The last segment was sealed, and a seal promises one more.
        Some(last) => Err(missing(last.saturating_add(1))),
        None => Ok(None),
    }
}

/// What reading one segment gave.
#[derive(Debug)]
struct Scan {
    chain: Chain,
    last_frame: Option<u64>,
    end: u64,
    seal: Option<Seal>,
    closed: bool,
    /// Why there is no frame at `end`, unless a seal ended the segment.
    fault: FrameFault,
}

/// Reads frames until one is bad or seals the segment.
fn scan(
    window: &mut Window<'_>,
    name: &str,
    header: &SegmentHeader,
    replay: &mut Replay<'_>,
) -> Result<Scan, LogError> {
    let mut scan = Scan {
        chain: Chain {
            next: header.first,
            previous: header.previous,
        },
        last_frame: None,
        end: HEADER_BLOCK_BYTES,
        seal: None,
        closed: false,
        fault: FrameFault::NoMark,
    };
    while scan.seal.is_none() {
        let (frame, payload) = match window.frame(scan.end, header.salt)? {
            Ok(frame) => frame,
            Err(fault) => {
                scan.fault = fault;
                break;
            }
        };
        scan.accept(name, &frame, payload, replay)?;
    }
    Ok(scan)
}

impl Scan {
    /// Takes a frame that is good by itself, if it is the one that belongs here. A torn write
    /// never gives a whole frame, so any other one is corruption.
    fn accept(
        &mut self,
        name: &str,
        frame: &Header,
        payload: &[u8],
        replay: &mut Replay<'_>,
    ) -> Result<(), LogError> {
        let (found, expected) = (frame.link.lsn, self.chain.next);
        if found != expected {
            let damage = Damage::OtherFrame { found, expected };
            return Err(corrupt(name.to_owned(), self.end, damage));
        }
        if frame.link.previous != self.chain.previous {
            return Err(corrupt(name.to_owned(), self.end, Damage::ChainBroken));
        }
        self.closed = frame.kind == Kind::Closed;
        match frame.kind {
            Kind::Data => {
                replay(found, payload)
                    .map_err(|ReplayStop| LogError::ReplayStopped { at: found })?;
                self.chain.next = found.next().ok_or(LogError::Exhausted)?;
            }
            Kind::Seal => {
                let damage = || corrupt(name.to_owned(), self.end, Damage::ChainBroken);
                self.seal = Some(Seal::decode(payload).ok_or_else(damage)?);
            }
            Kind::Closed => {}
        }
        self.chain.previous = frame.crc;
        self.last_frame = Some(self.end);
        self.end += frame_bytes(frame.payload_bytes);
        Ok(())
    }

    fn into_segment(self, header: SegmentHeader, file: Box<dyn DiskFile>) -> Segment {
        let Self {
            chain,
            last_frame,
            end,
            seal,
            ..
        } = self;
        Segment {
            header,
            file,
            last_frame,
            end,
            seal,
            chain,
        }
    }
}

impl Segment {
    /// Whether the seal names this header and the header continues behind the seal.
    fn is_followed_by(&self, next: &SegmentHeader) -> bool {
        let named = Seal {
            next_number: next.number,
            next_salt: next.salt.get(),
        };
        self.seal == Some(named)
            && next.first == self.chain.next
            && next.previous == self.chain.previous
    }
}

/// The end of the frames in the segment that is not sealed. What is behind it decides whether the
/// bytes there are a torn tail or a frame that was damaged after it had been durable.
struct Tail<'a> {
    name: &'a str,
    header: &'a SegmentHeader,
    scan: &'a Scan,
}

impl Tail<'_> {
    fn corrupt(&self, damage: Damage) -> LogError {
        corrupt(self.name.to_owned(), self.scan.end, damage)
    }

    /// Looks at every aligned offset from `from` on for a frame that is good by itself and not
    /// older than `oldest`. Older ones are copies of the log's own bytes inside a payload.
    fn refuse_frames_behind(
        &self,
        window: &mut Window<'_>,
        from: u64,
        salt: Salt,
        oldest: Lsn,
        behind_file: &str,
    ) -> Result<(), LogError> {
        let mut at = from;
        while let Some((marks, end)) = window.marks(at, salt)? {
            for behind_offset in marks {
                if let Ok((frame, _)) = window.frame(behind_offset, salt)?
                    && frame.link.lsn >= oldest
                {
                    return Err(self.corrupt(Damage::FrameBehind {
                        fault: self.scan.fault,
                        behind_file: behind_file.to_owned(),
                        behind_offset,
                        behind: frame.link.lsn,
                    }));
                }
            }
            at = end;
        }
        Ok(())
    }

    /// A crash in the middle of a rotation leaves one segment without frames, and copying tools
    /// leave files of zeros; anything else behind a segment without a seal is corruption.
    fn judge_leftovers(
        &self,
        disk: &dyn Disk,
        options: &LogOptions,
        leftovers: &[u64],
    ) -> Result<(), LogError> {
        for (index, number) in leftovers.iter().enumerate() {
            let name = log_name(*number);
            let file = disk.open(&name).map_err(io_error(IoOp::Open, &name))?;
            let mut window = Window::new(&*file, &name)?;
            if window.is_blank()? {
                continue;
            }
            if index > 0 {
                return Err(corrupt(name, 0, Damage::NotBlank));
            }
            if window.len() < HEADER_BLOCK_BYTES {
                continue; // Too short to have had a frame.
            }
            let block = window.view(0, HEADER_BLOCK)?;
            let next = SegmentHeader::decode(block, *number, &options.log_id)?;
            let start = HEADER_BLOCK_BYTES;
            self.refuse_frames_behind(&mut window, start, next.salt, Lsn::FIRST, &name)?;
            let chain = &self.scan.chain;
            let (seal_crc, _) = next.seal_before(self.header.salt, chain.previous);
            if next.first != chain.next || next.previous != seal_crc {
                let fault = self.scan.fault;
                return Err(self.corrupt(Damage::SegmentBehind {
                    fault,
                    behind_file: name,
                }));
            }
        }
        Ok(())
    }
}

fn corrupt(file: String, offset: u64, damage: Damage) -> LogError {
    LogError::Corrupt {
        file,
        offset,
        damage,
    }
}

fn missing(number: u64) -> LogError {
    corrupt(log_name(number), 0, Damage::MissingSegment)
}
