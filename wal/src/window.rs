//! Reads a segment from front to back through a moving window.

use crate::disk::{DiskFile, read_exact_at};
use crate::error::{IoOp, LogError, io_error};
use crate::frame::{ALIGN, FrameFault, HEADER_BYTES, Header, Salt, padded};

/// How many bytes one read asks for.
const CHUNK_BYTES: usize = 1024 * 1024;

/// A moving view of one file. It holds at most one chunk or one frame, whichever is longer.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    file: &'a dyn DiskFile,
    name: &'a str,
    len: u64,
    base: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(crate) fn new(file: &'a dyn DiskFile, name: &'a str) -> Result<Self, LogError> {
        let len = file.len().map_err(io_error(IoOp::Length, name))?;
        Ok(Self {
            file,
            name,
            len,
            base: 0,
            bytes: Vec::new(),
        })
    }

    /// Length of the file in bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Up to `want` bytes at `offset`; fewer only at the end of the file.
    pub(crate) fn view(&mut self, offset: u64, want: usize) -> Result<&[u8], LogError> {
        self.fill(offset, want)?;
        let start = usize::try_from(offset.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let end = start.saturating_add(want).min(self.bytes.len());
        Ok(self.bytes.get(start..end).unwrap_or_default())
    }

    fn fill(&mut self, offset: u64, want: usize) -> Result<(), LogError> {
        let end = self.len.min(offset.saturating_add(want as u64));
        let held = self.base + self.bytes.len() as u64;
        if offset >= self.base && end <= held {
            return Ok(());
        }
        match usize::try_from(offset.saturating_sub(self.base)) {
            Ok(passed) if offset >= self.base && passed < self.bytes.len() => {
                self.bytes.drain(..passed);
            }
            _ => self.bytes.clear(),
        }
        self.base = offset;
        let rest = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let held = self.bytes.len();
        self.bytes.resize(want.max(CHUNK_BYTES).min(rest), 0);
        let room = self.bytes.get_mut(held..).unwrap_or_default();
        read_exact_at(self.file, offset + held as u64, room)
            .map_err(io_error(IoOp::Read, self.name))
    }

    /// The frame at `offset`, judged by itself: its place in the chain is not asked.
    ///
    /// The inner `Err` says why there is none. The length is bounded by the file's before any
    /// memory is asked for.
    pub(crate) fn frame(
        &mut self,
        offset: u64,
        salt: Salt,
    ) -> Result<Result<(Header, &[u8]), FrameFault>, LogError> {
        let header = match Header::decode(self.view(offset, HEADER_BYTES)?, salt) {
            Ok(header) => header,
            Err(fault) => return Ok(Err(fault)),
        };
        let body_offset = offset + HEADER_BYTES as u64;
        let body_bytes = usize::try_from(header.payload_bytes).map_or(usize::MAX, padded);
        if self.len.saturating_sub(body_offset) < body_bytes as u64 {
            return Ok(Err(FrameFault::Length {
                found: header.payload_bytes,
            }));
        }
        // Header and body are viewed in one piece, so that the window moves over them only once.
        let whole = self.view(offset, HEADER_BYTES + body_bytes)?;
        let body = whole.get(HEADER_BYTES..).unwrap_or_default();
        Ok(header
            .verify(body)
            .map(|()| (header, payload_of(&header, body))))
    }

    /// Offsets from `from` on, at multiples of the frame alignment, that carry `salt`, for the
    /// next chunk of the file; and where the chunk ends. `None` at the end of the file.
    pub(crate) fn marks(
        &mut self,
        from: u64,
        salt: Salt,
    ) -> Result<Option<(Vec<u64>, u64)>, LogError> {
        let chunk = self.view(from, CHUNK_BYTES)?;
        let (words, _) = chunk.as_chunks::<ALIGN>();
        if words.is_empty() {
            return Ok(None);
        }
        let mark = salt.get().to_be_bytes();
        let offset = |index: usize| from + (index * ALIGN) as u64;
        let found = words.iter().enumerate().filter(|(_, word)| **word == mark);
        Ok(Some((
            found.map(|(index, _)| offset(index)).collect(),
            offset(words.len()),
        )))
    }

    /// Whether the whole file consists of zeros.
    pub(crate) fn is_blank(&mut self) -> Result<bool, LogError> {
        let mut at = 0;
        loop {
            let chunk = self.view(at, CHUNK_BYTES)?;
            if chunk.is_empty() {
                return Ok(true);
            }
            if chunk.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            at += chunk.len() as u64;
        }
    }
}

fn payload_of<'b>(header: &Header, body: &'b [u8]) -> &'b [u8] {
    usize::try_from(header.payload_bytes)
        .ok()
        .and_then(|len| body.get(..len))
        .unwrap_or_default()
}
