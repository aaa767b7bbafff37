//! The seam between the log and the storage below it: one directory and its files.
//!
//! The two traits are small enough to be implemented by a simulated disk that loses power, and
//! rich enough (writes at any place, setting the length) to carry other files than the log's.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// Only the owner may read what is stored: the log holds values in the clear.
const FILE_MODE: u32 = 0o600;

/// How many bytes one write of zeros carries.
const ZERO_CHUNK_BYTES: usize = 256 * 1024;
static ZEROS: [u8; ZERO_CHUNK_BYTES] = [0; ZERO_CHUNK_BYTES];

/// One flat directory. Names are plain file names without a separator.
///
/// Nothing done to a name (create, rename, remove) is durable before [`Disk::sync_dir`] returned.
pub trait Disk: Send + Sync + Debug {
    /// Names of all files, in any order. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// What the storage reports.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates an empty file for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken, else what the storage reports.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file that exists, for reading and writing.
    ///
    /// # Errors
    /// `NotFound` if there is none, else what the storage reports.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, replacing what had that name, in one step.
    ///
    /// # Errors
    /// What the storage reports; then the names are as before.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name. Files that are still open stay usable.
    ///
    /// # Errors
    /// What the storage reports; then the name is still there.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes every earlier change of names durable.
    ///
    /// # Errors
    /// What the storage reports. What is durable is then unknown, and calling again proves
    /// nothing: the failure may have been reported only once.
    fn sync_dir(&self) -> io::Result<()>;
}

/// One open file. All offsets and lengths are in bytes.
///
/// Nothing written is durable before [`DiskFile::sync_data`] returned.
pub trait DiskFile: Send + Sync + Debug {
    /// The length of the file.
    ///
    /// # Errors
    /// What the storage reports.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes at all.
    ///
    /// # Errors
    /// What the storage reports.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads some bytes at `offset`; fewer than asked for is no error, none means end of file.
    ///
    /// # Errors
    /// What the storage reports.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `buf` at `offset`, extending the file where needed.
    ///
    /// # Errors
    /// What the storage reports. Any part of `buf` may then have been written.
    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros that need not have space behind them.
    ///
    /// # Errors
    /// What the storage reports.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves space for the first `len` bytes and makes the file at least that long, so that a
    /// full disk shows here and not in a later write. Where it fails, it takes no space and leaves
    /// the length as it was, also if the process dies in it.
    ///
    /// # Errors
    /// `StorageFull` and its like if there is no space, else what the storage reports.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Makes all that was written, and the length, durable.
    ///
    /// # Errors
    /// What the storage reports. What is durable is then unknown, and calling again proves
    /// nothing: the failure may have been reported only once.
    fn sync_data(&self) -> io::Result<()>;
}

/// A directory of the operating system.
#[derive(Debug)]
pub struct OsDisk {
    path: PathBuf,
    // Kept open so that a sync reaches this directory even if its path comes to mean another.
    directory: File,
}

impl OsDisk {
    /// Uses the directory `dir`, which must exist. It does not lock it against other users.
    ///
    /// # Errors
    /// If `dir` cannot be opened or is no directory.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let directory = File::open(dir)?;
        if !directory.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self {
            path: dir.to_path_buf(),
            directory,
        })
    }
}

impl Disk for OsDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE);
        Ok(Box::new(OsFile(options.open(self.path.join(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path.join(name))?;
        Ok(Box::new(OsFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// A file of the operating system.
#[derive(Debug)]
struct OsFile(File);

impl DiskFile for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let held = self.len()?;
        let reserved = reserve(&self.0, len).and_then(|can_reserve| {
            if len > held {
                self.set_len(len)?;
            }
            // Bytes that are written have their space.
            if can_reserve {
                Ok(())
            } else {
                write_zeros(self, held, len)
            }
        });
        if reserved.is_err() {
            // Some file systems keep what they could reserve.
            let _ = self.set_len(held);
        }
        reserved
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Reserves space and leaves the file's length as it is: a part of the space there may be enough
/// for a part of the length, and whoever opens the file after a crash must find none that nobody
/// wanted. False where the file system can't reserve.
fn reserve(file: &File, len: u64) -> io::Result<bool> {
    loop {
        return match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, len) {
            Err(Errno::INTR) => continue,
            Err(Errno::OPNOTSUPP) => Ok(false),
            other => other.map(|()| true).map_err(io::Error::from),
        };
    }
}

/// Writes zeros over `from..to`.
pub(crate) fn write_zeros(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let rest = usize::try_from(to - at).unwrap_or(usize::MAX);
        let zeros = ZEROS.get(..rest.min(ZERO_CHUNK_BYTES)).unwrap_or(&ZEROS);
        file.write_all_at(at, zeros)?;
        at += zeros.len() as u64;
    }
    Ok(())
}

/// Fills all of `buf` from `offset` on; a file that ends earlier is `UnexpectedEof`.
pub(crate) fn read_exact_at(file: &dyn DiskFile, offset: u64, buf: &mut [u8]) -> io::Result<()> {
    let mut at = offset;
    let mut rest = buf;
    while !rest.is_empty() {
        match file.read_at(at, rest) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Ok(read) => {
                at += read as u64;
                rest = rest.get_mut(read..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
