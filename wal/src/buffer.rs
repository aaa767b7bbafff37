//! The buffer a frame is built in.

use crate::frame::{self, HEADER_BYTES};

/// A payload with room for the frame header in front, so that appending copies nothing.
///
/// It can be used again and again; [`FrameBuf::clear`] keeps the memory.
///
/// ```
/// use highwater_wal::FrameBuf;
/// let mut frame = FrameBuf::new();
/// frame.extend_from_slice(b"one ");
/// frame.extend_with(|bytes| bytes.extend_from_slice(b"group"));
/// assert_eq!(frame.payload(), b"one group");
/// ```
#[derive(Debug)]
pub struct FrameBuf {
    // Invariant: at least HEADER_BYTES long; the payload is all that follows.
    bytes: Vec<u8>,
}

impl FrameBuf {
    /// An empty payload.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; HEADER_BYTES],
        }
    }

    /// An empty payload with memory for `payload_bytes` of it.
    #[must_use]
    pub fn with_capacity(payload_bytes: usize) -> Self {
        let mut bytes = Vec::with_capacity(payload_bytes.saturating_add(HEADER_BYTES));
        bytes.resize(HEADER_BYTES, 0);
        Self { bytes }
    }

    /// The payload so far.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// Length of the payload in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.payload().len()
    }

    /// Whether the payload has no bytes. An empty payload may be appended like any other.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Empties the payload and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
    }

    /// Cuts the payload to its first `payload_bytes`; a shorter one stays as it is. Lets a caller
    /// take back the part of a group that turned out not to belong to it.
    pub fn truncate(&mut self, payload_bytes: usize) {
        self.bytes
            .truncate(payload_bytes.saturating_add(HEADER_BYTES));
    }

    /// Adds bytes at the end of the payload.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Lets `write` add bytes at the end of the payload, for encoders that work on a vector.
    ///
    /// The vector already holds the header's room and the payload so far: `write` must only add.
    /// If it takes away more than the payload, the payload is empty afterwards.
    pub fn extend_with<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let result = write(&mut self.bytes);
        if self.bytes.len() < HEADER_BYTES {
            self.bytes.resize(HEADER_BYTES, 0);
        }
        result
    }

    /// Completes the frame in place and lends its bytes, padding included, with its checksum.
    /// [`FrameBuf::strip`] takes the padding off again.
    pub(crate) fn complete(
        &mut self,
        link: &frame::Link,
        kind: frame::Kind,
        len: u32,
    ) -> (u32, &[u8]) {
        let padded = HEADER_BYTES + frame::padded(self.len());
        self.bytes.resize(padded, 0);
        let body = self.bytes.get(HEADER_BYTES..).unwrap_or_default();
        let (crc, header) = frame::encode_header(link, kind, len, body);
        if let Some(room) = self.bytes.first_chunk_mut::<HEADER_BYTES>() {
            *room = header;
        }
        (crc, &self.bytes)
    }

    /// Takes the padding off again.
    pub(crate) fn strip(&mut self, payload_bytes: usize) {
        self.truncate(payload_bytes);
    }
}

impl Default for FrameBuf {
    fn default() -> Self {
        Self::new()
    }
}
