//! Brings a log that was judged good into the state in which it takes frames again.
//!
//! Each step leaves a disk that is judged the same way, so a crash in between costs nothing.

use crate::disk::{read_exact_at, write_zeros};
use crate::error::{IoOp, LogError, io_error, space_error};
use crate::recovery::{Judged, Segment};
use crate::segment::log_name;

/// How many bytes are looked at in one piece when the tail is cleared.
const CHUNK_BYTES: u64 = 256 * 1024;

/// Confirms the last frame, clears what follows it, and gives the active segment its full size.
pub(crate) fn repair(judged: &Judged) -> Result<(), LogError> {
    if judged.active.last_frame.is_none()
        && let Some(before) = judged.sealed.last()
    {
        rewrite_last_frame(before)?;
        sync(before)?;
    }
    rewrite_last_frame(&judged.active)?;
    clear_tail(&judged.active)?;
    restore_length(&judged.active)?;
    sync(&judged.active)
}

/// Writes the last frame over itself. It may be in memory only: the process before may have died
/// before its sync, or the sync may have failed, after which the system takes the bytes for
/// written and a mere sync would do nothing. All frames before it are known to be durable.
fn rewrite_last_frame(segment: &Segment) -> Result<(), LogError> {
    let Some(start) = segment.last_frame else {
        return Ok(());
    };
    let name = log_name(segment.header.number);
    // The frame has been in memory once already, so its length is a sane one.
    let mut bytes = vec![0; usize::try_from(segment.end - start).unwrap_or(0)];
    read_exact_at(&*segment.file, start, &mut bytes).map_err(io_error(IoOp::Read, &name))?;
    segment
        .file
        .write_all_at(start, &bytes)
        .map_err(io_error(IoOp::Write, &name))
}

/// Makes everything behind the last frame zero. What a torn frame left must not stay: mixed with
/// parts of the next torn frame it could become whole.
fn clear_tail(segment: &Segment) -> Result<(), LogError> {
    let name = log_name(segment.header.number);
    let len = segment.file.len().map_err(io_error(IoOp::Length, &name))?;
    let end = len.min(segment.header.segment_bytes);
    let mut at = segment.end;
    while at < end {
        let next = end.min(at.saturating_add(CHUNK_BYTES));
        let mut chunk = vec![0; usize::try_from(next - at).unwrap_or(0)];
        read_exact_at(&*segment.file, at, &mut chunk).map_err(io_error(IoOp::Read, &name))?;
        if chunk.iter().any(|byte| *byte != 0) {
            write_zeros(&*segment.file, at, next).map_err(io_error(IoOp::Write, &name))?;
        }
        at = next;
    }
    Ok(())
}

/// A file that was cut or extended gets the length that its header tells.
fn restore_length(segment: &Segment) -> Result<(), LogError> {
    let name = log_name(segment.header.number);
    let full = segment.header.segment_bytes;
    let len = segment.file.len().map_err(io_error(IoOp::Length, &name))?;
    if len > full {
        segment
            .file
            .set_len(full)
            .map_err(io_error(IoOp::Length, &name))?;
    } else if len < full {
        segment
            .file
            .allocate(full)
            .map_err(space_error(IoOp::Allocate, &name))?;
        write_zeros(&*segment.file, len, full).map_err(space_error(IoOp::Write, &name))?;
    }
    Ok(())
}

fn sync(segment: &Segment) -> Result<(), LogError> {
    let name = log_name(segment.header.number);
    segment
        .file
        .sync_data()
        .map_err(io_error(IoOp::Sync, &name))
}
