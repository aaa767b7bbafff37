//! Who the store is: one small file, written before everything else and never changed.

use std::io;

use highwater_core::DestinationId;
use highwater_wal::{Disk, DiskFile};

use crate::error::OpenError;

/// The name of the identity's file.
pub(crate) const IDENTITY_FILE: &str = "identity";
const UNFINISHED_FILE: &str = "identity.tmp";

const MAGIC: [u8; 8] = *b"HWDESTN1";
/// Magic, id, and the first 8 bytes of the digest of both.
const BYTES: usize = 8 + 16 + 8;

fn encode(id: DestinationId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&id.bytes());
    let digest = blake3::hash(&bytes);
    bytes.extend_from_slice(digest.as_bytes().get(..8).unwrap_or(&[]));
    bytes
}

fn io_error(what: &'static str) -> impl Fn(io::Error) -> OpenError + Copy {
    move |source| OpenError::Io {
        what,
        file: IDENTITY_FILE.into(),
        source,
    }
}

/// Reads the identity; `None` if the directory holds no store yet.
///
/// # Errors
///
/// [`OpenError::Corrupt`] if the file is damaged, or missing beside files that need it.
pub(crate) fn read(disk: &dyn Disk) -> Result<Option<DestinationId>, OpenError> {
    let corrupt = |detail: &str| OpenError::Corrupt {
        file: IDENTITY_FILE.into(),
        offset: 0,
        detail: detail.into(),
    };
    let names = disk.list().map_err(io_error("list the directory of"))?;
    if !names.iter().any(|name| name == IDENTITY_FILE) {
        let orphan = names.iter().any(|name| name.starts_with("log-"));
        if orphan {
            return Err(corrupt("it is missing, but there is a log"));
        }
        return Ok(None);
    }
    let file = disk.open(IDENTITY_FILE).map_err(io_error("open"))?;
    let bytes = read_all(&*file).map_err(io_error("read"))?;
    let id = bytes
        .get(8..24)
        .and_then(|id| id.try_into().ok())
        .map(DestinationId::new);
    match id {
        Some(id) if encode(id) == bytes => Ok(Some(id)),
        _ => Err(corrupt("it isn't an identity of this version")),
    }
}

/// Reads a file that is as long as it must be; anything else reads as nothing.
fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    if file.len()? != BYTES as u64 {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; BYTES];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(done as u64, rest)? {
            0 => return Ok(Vec::new()),
            count => done += count,
        }
    }
    Ok(bytes)
}

/// Writes the identity of a new store: complete and durable under its name, or not there at all.
///
/// # Errors
///
/// [`OpenError::Io`] with what the storage says.
pub(crate) fn create(disk: &dyn Disk, id: DestinationId) -> Result<(), OpenError> {
    let write = || -> io::Result<()> {
        if disk.list()?.iter().any(|name| name == UNFINISHED_FILE) {
            disk.remove(UNFINISHED_FILE)?;
        }
        let file = disk.create(UNFINISHED_FILE)?;
        file.write_all_at(0, &encode(id))?;
        file.sync_data()?;
        disk.rename(UNFINISHED_FILE, IDENTITY_FILE)?;
        disk.sync_dir()
    };
    write().map_err(io_error("create"))
}
