//! Positions in the log, and the proof that a position is on the disk.

use std::fmt;
use std::num::NonZeroU64;

/// The number of a data frame: 1, 2, 3, … without a gap over the life of one log.
///
/// It is a strict type: no arithmetic, no default, no conversion from a bare number other than
/// [`Lsn::from_raw`], which is meant for codecs. "No position yet" is `Option::None`, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(NonZeroU64);

impl Lsn {
    /// The number of the first data frame of every log.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// Reads back a number that was stored with [`Lsn::get`]. Zero is no position: `None`.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Option<Self> {
        match NonZeroU64::new(raw) {
            Some(raw) => Some(Self(raw)),
            None => None,
        }
    }

    /// The bare number, for codecs and for display.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The number that follows, or `None` when the numbers are used up.
    ///
    /// ```
    /// use highwater_wal::Lsn;
    /// assert_eq!(Lsn::FIRST.next(), Lsn::from_raw(2));
    /// assert_eq!(Lsn::from_raw(u64::MAX).and_then(Lsn::next), None);
    /// ```
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(raw) => Some(Self(raw)),
            None => None,
        }
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Proof that the frame of this number, and with it every frame before, survives a power cut.
///
/// Only a successful sync makes one: in [`Log::append`](crate::Log::append) for a new frame, in
/// [`Log::open`](crate::Log::open) for the last frame that was found. An acknowledgement that asks
/// for a `Durable` can therefore not be written down too early:
///
/// ```compile_fail
/// let forged = highwater_wal::Durable(highwater_wal::Lsn::FIRST);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Durable(Lsn);

impl Durable {
    /// To be called right after the sync that covers `lsn` has succeeded, and nowhere else.
    pub(crate) const fn after_sync(lsn: Lsn) -> Self {
        Self(lsn)
    }

    /// The highest number this proof covers.
    #[must_use]
    pub const fn lsn(self) -> Lsn {
        self.0
    }
}
