//! The bare limit: the same bytes, appended and synced, and nothing else.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of one record in the log, as the store writes it for the measured work.
pub(crate) const RECORD_BYTES: usize = 390;
/// The file is overwritten from its beginning again after so many bytes.
pub(crate) const FILE_BYTES: u64 = 64 << 20;

/// Records per second when `group` records are written and synced at a time, and the median time of
/// one such group.
///
/// # Errors
///
/// What the file system says.
pub fn bare_limit(dir: &Path, group: usize, time: Duration) -> io::Result<(f64, Duration)> {
    let path = dir.join("limit");
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .open(&path)?;
    let zeros = vec![0_u8; 1 << 20];
    for _ in 0..FILE_BYTES >> 20 {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    let mut records = vec![0_u8; RECORD_BYTES * group];
    let (mut at, mut count) = (0_u64, 0_u64);
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        let begun = Instant::now();
        if at + records.len() as u64 > FILE_BYTES {
            at = 0;
        }
        // Other bytes every time, so that nothing below can leave the write out.
        if let Some(first) = records.first_mut() {
            *first = first.wrapping_add(1);
        }
        file.write_all_at(&records, at)?;
        file.sync_data()?;
        at += records.len() as u64;
        count += group as u64;
        times.push(begun.elapsed());
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    times.sort_unstable();
    Ok((
        rate,
        times.get(times.len() / 2).copied().unwrap_or_default(),
    ))
}
