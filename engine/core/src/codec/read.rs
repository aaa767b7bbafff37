//! A reader that knows where it is and never reads past the end.

use core::fmt;

/// Bytes that aren't what the format says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeError {
    /// Where in the bytes, from 0.
    pub at: usize,
    /// What should have stood there.
    pub expected: &'static str,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: expected {}", self.at, self.expected)
    }
}

impl core::error::Error for DecodeError {}

/// What reading returns.
pub(super) type Read<T> = Result<T, DecodeError>;

/// A position in bytes.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The error for what should have stood just before the current position.
    pub(super) const fn wrong<T>(&self, expected: &'static str) -> Read<T> {
        Err(DecodeError {
            at: self.at,
            expected,
        })
    }

    pub(super) fn take(&mut self, count: usize, expected: &'static str) -> Read<&'a [u8]> {
        let end = self.at.checked_add(count);
        match end.and_then(|end| Some((end, self.bytes.get(self.at..end)?))) {
            Some((end, taken)) => {
                self.at = end;
                Ok(taken)
            }
            None => self.wrong(expected),
        }
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Read<[u8; N]> {
        let taken = self.take(N, expected)?;
        taken.try_into().or_else(|_| self.wrong(expected))
    }

    pub(super) fn byte(&mut self, expected: &'static str) -> Read<u8> {
        self.array::<1>(expected).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, expected: &'static str) -> Read<u16> {
        self.array(expected).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, expected: &'static str) -> Read<u32> {
        self.array(expected).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, expected: &'static str) -> Read<u64> {
        self.array(expected).map(u64::from_be_bytes)
    }

    pub(super) fn bytes16(&mut self, expected: &'static str) -> Read<[u8; 16]> {
        self.array(expected)
    }

    pub(super) fn bytes32(&mut self, expected: &'static str) -> Read<[u8; 32]> {
        self.array(expected)
    }

    /// Bytes behind a 16-bit length.
    pub(super) fn short(&mut self, expected: &'static str) -> Read<&'a [u8]> {
        let count = self.u16(expected)?;
        self.take(usize::from(count), expected)
    }

    /// Bytes behind a 32-bit length.
    pub(super) fn long(&mut self, expected: &'static str) -> Read<&'a [u8]> {
        let count = self.u32(expected)?;
        let count = usize::try_from(count).or_else(|_| self.wrong(expected))?;
        self.take(count, expected)
    }

    /// UTF-8 text behind a 16-bit length.
    pub(super) fn text(&mut self, expected: &'static str) -> Read<&'a str> {
        let bytes = self.short(expected)?;
        core::str::from_utf8(bytes).or_else(|_| self.wrong(expected))
    }

    /// A value that a constructor accepts.
    pub(super) fn valid<T>(&self, value: Option<T>, expected: &'static str) -> Read<T> {
        value.map_or_else(|| self.wrong(expected), Ok)
    }

    /// How many bytes are left: an upper bound for how many things can follow.
    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Every byte was used.
    pub(super) fn end(&self) -> Read<()> {
        if self.left() == 0 {
            Ok(())
        } else {
            self.wrong("the end")
        }
    }
}
