//! Reading a trail: line by line, each against the one before it.

use std::fmt;
use std::io::{self, BufRead, Read};

use highwater_wal::DiskFile;

use super::line::{End, LINE_BYTES_MAX, Line, read};

/// What is wrong with a line, or with where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AuditFault {
    /// It isn't a whole line whose digest is right: it was changed, or is torn.
    Line,
    /// Its sequence doesn't follow: lines are missing, or there twice.
    Sequence {
        /// The one that follows.
        expected: u64,
        /// The one that is there.
        found: u64,
    },
    /// It goes on from another line than the one before it.
    Chain,
    /// It accounts for other revisions than the next ones.
    Revision,
    /// The trail begins in the middle, and no retention says that it removed what was before.
    Beginning,
    /// The file's name isn't the sequence of its first line.
    Name,
}

impl fmt::Display for AuditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line => f.write_str("it was changed or cut: its digest isn't right"),
            Self::Sequence { expected, found } => write!(
                f,
                "its sequence is {found}, but {expected} comes next: lines are missing or doubled"
            ),
            Self::Chain => {
                f.write_str("the line before it isn't the one that it was written after")
            }
            Self::Revision => f.write_str("it accounts for other revisions than the next ones"),
            Self::Beginning => f.write_str(
                "the trail begins here in the middle, and no retention removed what was before",
            ),
            Self::Name => f.write_str("the file has another name than its first line says"),
        }
    }
}

/// Whether a line is the one after this end.
pub(crate) fn follows(end: &End, line: &Line) -> Result<(), AuditFault> {
    let expected = end.seq.saturating_add(1);
    if line.seq != expected {
        let found = line.seq;
        return Err(AuditFault::Sequence { expected, found });
    }
    if line.prev != end.digest {
        return Err(AuditFault::Chain);
    }
    let next = end.audited.and_then(|revision| revision.checked_add(1));
    let right = match line.accounts_from {
        None => line.audited == end.audited,
        Some(from) => {
            let reached = line.audited.is_some_and(|to| to >= from);
            let one = line.kind == "gap" || line.audited == Some(from);
            reached && one && next.is_none_or(|next| next == from)
        }
    };
    if right {
        Ok(())
    } else {
        Err(AuditFault::Revision)
    }
}

/// A line as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The line, if it is whole.
    pub(crate) line: Option<Line>,
    /// Where it begins, in bytes.
    pub(crate) offset: u64,
    /// Its number in the file, from 1 on.
    pub(crate) number: u64,
}

/// The lines of one file.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    offset: u64,
    number: u64,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The lines of what is read.
    pub(crate) const fn new(reader: R) -> Self {
        Self {
            reader,
            offset: 0,
            number: 0,
            bytes: Vec::new(),
        }
    }

    /// Where the next line begins, in bytes.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// What the storage says.
    pub(crate) fn next(&mut self) -> io::Result<Option<Found>> {
        self.bytes.clear();
        let limit = LINE_BYTES_MAX as u64;
        let mut limited = self.reader.by_ref().take(limit);
        let count = limited.read_until(b'\n', &mut self.bytes)?;
        if count == 0 {
            return Ok(None);
        }
        let offset = self.offset;
        self.offset = offset.saturating_add(count as u64);
        self.number = self.number.saturating_add(1);
        let line = self.bytes.strip_suffix(b"\n").and_then(read);
        let number = self.number;
        Ok(Some(Found {
            line,
            offset,
            number,
        }))
    }
}

/// Reads a file of a disk from its beginning.
#[derive(Debug)]
pub(crate) struct FileReader<'a> {
    file: &'a dyn DiskFile,
    at: u64,
}

impl<'a> FileReader<'a> {
    /// From the first byte on.
    pub(crate) const fn new(file: &'a dyn DiskFile) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.at, buf)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}
