//! Appends integers and counted bytes. Counts can't overflow their fields: every counted thing has
//! a bound in [`crate::limits`] that fits, and what has none is counted in 32 bits.

use alloc::vec::Vec;

pub(super) fn u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// A count in 32 bits.
pub(super) fn count(out: &mut Vec<u8>, count: usize) {
    u32(out, u32::try_from(count).unwrap_or(u32::MAX));
}

/// Bytes behind a 16-bit length.
pub(super) fn short(out: &mut Vec<u8>, bytes: &[u8]) {
    u16(out, u16::try_from(bytes.len()).unwrap_or(u16::MAX));
    out.extend_from_slice(bytes);
}

/// Bytes behind a 32-bit length.
pub(super) fn long(out: &mut Vec<u8>, bytes: &[u8]) {
    count(out, bytes.len());
    out.extend_from_slice(bytes);
}
