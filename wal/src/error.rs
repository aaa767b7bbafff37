//! What the log cannot do, as data: which file, where, and what was found.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::frame::FrameFault;
use crate::lsn::Lsn;
use crate::options::OptionsError;

/// Why an operation of the log failed.
///
/// The variant says what to do: correct the call (`Options`, `TooLarge`), free some space and go on
/// (`Full`), close some files and go on (`NoDescriptor`), open the log anew (`Io`, `Poisoned`), or
/// restore from elsewhere (the rest).
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// The options contradict each other or leave their bounds. Nothing was touched.
    Options(OptionsError),
    /// The payload is longer than [`LogOptions::max_payload_bytes`](crate::LogOptions). Nothing
    /// was written and the log can be used.
    TooLarge {
        /// Length of the payload in bytes.
        payload_bytes: u64,
        /// The longest one that is allowed.
        max_payload_bytes: u32,
    },
    /// There is no space for another segment. Nothing was appended, the log can be used, and the
    /// same call may be tried again once there is space or a segment was recycled.
    Full {
        /// The file that found no space.
        file: String,
        /// What the storage said.
        source: io::Error,
    },
    /// There is no file descriptor for another segment: the process, or the machine, has too many
    /// files open. Nothing was appended, the log can be used, and the same call may be tried again
    /// once some were closed.
    NoDescriptor {
        /// The file that couldn't be opened or made.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The storage failed. If this came from an append, a rotation or a sync of the directory,
    /// the log is poisoned, and whether the frame is there is known only after opening it again.
    Io {
        /// What was tried.
        op: IoOp,
        /// On which file; empty for the directory itself.
        file: String,
        /// What the storage said.
        source: io::Error,
    },
    /// An earlier failure left open what is on the disk. Drop the log and open it again.
    Poisoned,
    /// The operating system gave no random number for a new segment.
    Entropy {
        /// What it said.
        source: io::Error,
    },
    /// All positions have been used.
    Exhausted,
    /// Data that had been durable are damaged or missing. Not a byte was changed.
    Corrupt {
        /// The damaged file, or the one that is missing.
        file: String,
        /// Offset in bytes of the first thing that is wrong.
        offset: u64,
        /// What is wrong.
        damage: Damage,
    },
    /// The file belongs to another log. Not a byte was changed.
    ForeignLog {
        /// The file.
        file: String,
        /// Offset in bytes of the id.
        offset: u64,
        /// The id that was asked for.
        expected: [u8; 16],
        /// The id in the file.
        found: [u8; 16],
    },
    /// The file was written in a format that this version cannot read. Not a byte was changed.
    UnknownVersion {
        /// The file.
        file: String,
        /// Offset in bytes of the version.
        offset: u64,
        /// The version in the file.
        found: u32,
        /// The version that can be read.
        supported: u32,
    },
    /// A file is named almost, but not quite, like a segment. Not a byte was changed.
    StrangeName {
        /// The file.
        file: String,
    },
    /// The caller's replay asked to stop. Not a byte was changed.
    ReplayStopped {
        /// The frame at which it stopped.
        at: Lsn,
    },
}

/// What is wrong with data that had been durable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// A segment is missing although others on both sides, or a seal that names it, are there.
    MissingSegment,
    /// The segment is too short to hold its header.
    ShortHeader,
    /// The header does not begin as the header of a segment does.
    HeaderMagic,
    /// The checksum of the header is not the one of its bytes.
    HeaderChecksum {
        /// What stands there.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// A field of the header has a value that is never written.
    HeaderField,
    /// The header was written for another segment: files were swapped, copied or renamed.
    OtherSegment {
        /// The number in the header.
        found: u64,
    },
    /// The header does not continue where the segment before ends.
    ChainBroken,
    /// A frame with a right checksum stands where another one belongs.
    OtherFrame {
        /// Its position.
        found: Lsn,
        /// The position that belongs there.
        expected: Lsn,
    },
    /// A bad frame with a good one behind it. A frame is written only after the one before it is
    /// durable, so the bad one had been durable.
    FrameBehind {
        /// What is wrong with the bad one.
        fault: FrameFault,
        /// The file of the good one.
        behind_file: String,
        /// Its offset in bytes.
        behind_offset: u64,
        /// Its position.
        behind: Lsn,
    },
    /// A bad frame although the segment behind was begun with a later position, or with other
    /// frames before it.
    SegmentBehind {
        /// What is wrong with the bad frame.
        fault: FrameFault,
        /// The file of the segment behind.
        behind_file: String,
    },
    /// Bytes that were never written by a log stand where only a blank segment may follow.
    NotBlank,
}

/// What was tried when the storage failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IoOp {
    /// Listing the directory.
    List,
    /// Creating a file.
    Create,
    /// Opening a file.
    Open,
    /// Asking for, or setting, the length of a file.
    Length,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Reserving space.
    Allocate,
    /// Making a file durable.
    Sync,
    /// Renaming a file.
    Rename,
    /// Removing a file.
    Remove,
    /// Making the names durable.
    SyncDir,
}

impl fmt::Display for IoOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "listing the directory",
            Self::Create => "creating",
            Self::Open => "opening",
            Self::Length => "asking for or setting the length of",
            Self::Read => "reading",
            Self::Write => "writing",
            Self::Allocate => "reserving space for",
            Self::Sync => "syncing",
            Self::Rename => "renaming",
            Self::Remove => "removing",
            Self::SyncDir => "syncing the directory",
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingSegment => write!(f, "the segment is missing"),
            Self::ShortHeader => write!(f, "the file is shorter than a segment header"),
            Self::HeaderMagic => write!(f, "it does not begin like a segment"),
            Self::HeaderChecksum { stored, computed } => {
                write!(
                    f,
                    "the header's checksum is {stored:08x} but its bytes give {computed:08x}"
                )
            }
            Self::HeaderField => write!(f, "the header has a value that is never written"),
            Self::OtherSegment { found } => write!(f, "the header is the one of segment {found}"),
            Self::ChainBroken => write!(f, "it does not continue the segment before it"),
            Self::OtherFrame { found, expected } => {
                write!(f, "frame {found} stands where frame {expected} belongs")
            }
            Self::FrameBehind {
                fault,
                behind_file,
                behind_offset,
                behind,
            } => write!(
                f,
                "a frame is bad ({fault}) and was durable, since frame {behind} follows it in \
                 {behind_file} at byte {behind_offset}"
            ),
            Self::SegmentBehind { fault, behind_file } => write!(
                f,
                "a frame is bad ({fault}) and was durable, since {behind_file} was begun behind it"
            ),
            Self::NotBlank => write!(f, "bytes stand where only a blank segment may follow"),
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(error) => write!(f, "the log's options are wrong: {error}"),
            Self::TooLarge {
                payload_bytes,
                max_payload_bytes,
            } => write!(
                f,
                "a payload of {payload_bytes} bytes is over the limit of {max_payload_bytes}; \
                 append smaller ones"
            ),
            Self::Full { file, source } => write!(
                f,
                "no space for the log segment {file} ({source}); free some space and try again"
            ),
            Self::NoDescriptor { file, source } => write!(
                f,
                "no file descriptor for the log segment {file} ({source}); close some files, or \
                 allow more, and try again"
            ),
            Self::Io { op, file, source } => {
                write!(
                    f,
                    "{op} {file} failed ({source}); check the storage and open the log again"
                )
            }
            Self::Poisoned => {
                write!(
                    f,
                    "the log stopped after an earlier storage failure; open it again"
                )
            }
            Self::Entropy { source } => {
                write!(
                    f,
                    "the operating system gave no random number ({source}); try again"
                )
            }
            Self::Exhausted => write!(f, "all log positions are used; begin a new log"),
            Self::Corrupt {
                file,
                offset,
                damage,
            } => write!(
                f,
                "{file} is damaged at byte {offset}: {damage}; nothing was changed, restore it \
                 from a copy"
            ),
            Self::ForeignLog { file, offset, .. } => write!(
                f,
                "{file} belongs to another log (id at byte {offset}); nothing was changed, check \
                 the directory"
            ),
            Self::UnknownVersion {
                file,
                offset,
                found,
                supported,
            } => write!(
                f,
                "{file} has format version {found} at byte {offset}, this program reads \
                 {supported}; use a program that reads it"
            ),
            Self::StrangeName { file } => write!(
                f,
                "{file} is named almost like a log segment; move it out of the directory"
            ),
            Self::ReplayStopped { at } => write!(f, "replay was stopped at frame {at}"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Options(error) => Some(error),
            Self::Full { source, .. }
            | Self::NoDescriptor { source, .. }
            | Self::Io { source, .. }
            | Self::Entropy { source } => Some(source),
            _ => None,
        }
    }
}

/// Names the operation and the file in a failure of the storage.
pub(crate) fn io_error(op: IoOp, file: &str) -> impl FnOnce(io::Error) -> LogError {
    move |source| LogError::Io {
        op,
        file: file.to_owned(),
        source,
    }
}

/// As [`io_error`], where a lack of space, or of file descriptors, is no failure of the storage.
pub(crate) fn space_error(op: IoOp, file: &str) -> impl FnOnce(io::Error) -> LogError {
    move |source| {
        let file = file.to_owned();
        if lacks_space(&source) {
            LogError::Full { file, source }
        } else if lacks_descriptors(&source) {
            LogError::NoDescriptor { file, source }
        } else {
            LogError::Io { op, file, source }
        }
    }
}

/// Whether the storage says that it has no space left: none at all, none of the user's quota, or
/// none below the largest file there may be. Everything else is a failure of another kind.
///
/// ```
/// use std::io;
///
/// let full = io::Error::from(io::ErrorKind::StorageFull);
/// assert!(highwater_wal::lacks_space(&full));
/// assert!(!highwater_wal::lacks_space(&io::Error::from_raw_os_error(5)));
/// ```
#[must_use]
pub fn lacks_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Whether the process or the machine has too many files open: nothing was touched, and it passes.
fn lacks_descriptors(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(errno: Errno) -> LogError {
        let source = io::Error::from_raw_os_error(errno.raw_os_error());
        space_error(IoOp::Create, "spare-1.hw.tmp")(source)
    }

    #[test]
    fn what_is_lacking_is_told_apart_from_a_storage_that_fails() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
            assert!(matches!(told(errno), LogError::Full { .. }), "{errno}");
        }
        for errno in [Errno::MFILE, Errno::NFILE] {
            let error = told(errno);
            assert!(matches!(error, LogError::NoDescriptor { .. }), "{errno}");
            assert!(error.to_string().contains("file descriptor"), "{error}");
        }
        for errno in [
            Errno::IO,
            Errno::ROFS,
            Errno::NOMEM,
            Errno::ACCESS,
            Errno::NODEV,
        ] {
            assert!(matches!(told(errno), LogError::Io { .. }), "{errno}");
        }
    }
}
