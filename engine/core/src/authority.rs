//! Terms, authorities, fences, and the one comparison between them.

use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;
use core::num::NonZeroU64;

use crate::counters::{Epoch, EpochMark, EpochNumber, Sequence};
use crate::names::{Holder, NameError};
use crate::text::{escape, unescape};

/// A term: an epoch and a sequence, both full width, never packed into one number.
///
/// Terms have no `<`. They mean something only against a fence of the same domain, and the answer
/// has more than two cases; see [`Standing`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The epoch, with the mark that it was granted with.
    pub epoch: Epoch,
    /// The sequence inside the epoch.
    pub sequence: Sequence,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.epoch, self.sequence)
    }
}

/// What a writer presents: the term that it was granted, and who it is.
///
/// An authority is captured when it is granted and never completed later; there is no constructor
/// that takes an epoch or an incarnation from anywhere but the caller.
///
/// ```
/// use highwater_core::Authority;
///
/// let authority = Authority::parse("7.3fa9c1d2e0b14c55/42@worker-a")?;
/// assert_eq!(authority.term().sequence.get(), 42);
/// assert_eq!(authority.to_string(), "7.3fa9c1d2e0b14c55/42@worker-a");
/// // Half an authority is refused; nothing is filled in.
/// assert!(Authority::parse("7/42@worker-a").is_err());
/// # Ok::<(), highwater_core::AuthorityError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Authority {
    term: Term,
    holder: Holder,
}

/// The high-water mark of a guard: the highest term accepted under it, and whose it was.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fence {
    /// The term, in the epoch that was current when it was accepted.
    pub term: Term,
    /// The holder that presented it.
    pub holder: Holder,
}

/// How an authority stands against a fence of the same epoch. Every case must be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Its sequence is lower than the fence's: somebody newer was here.
    Older,
    /// Same sequence, same holder: it is the fence.
    Holder,
    /// Same sequence, another holder: two processes claim one term.
    Contested,
    /// Its sequence is higher than the fence's.
    Newer {
        /// By how much.
        step: NonZeroU64,
    },
}

impl Authority {
    /// Binds a term to the holder that it was granted to.
    #[must_use]
    pub const fn new(term: Term, holder: Holder) -> Self {
        Self { term, holder }
    }

    /// The term.
    #[must_use]
    pub const fn term(&self) -> Term {
        self.term
    }

    /// The holder.
    #[must_use]
    pub const fn holder(&self) -> &Holder {
        &self.holder
    }

    /// The fence that this authority becomes when it is accepted.
    #[must_use]
    pub fn to_fence(&self) -> Fence {
        Fence {
            term: self.term,
            holder: self.holder.clone(),
        }
    }

    /// Compares this authority with the fence of a guard. The caller has already made sure that
    /// both belong to the domain's current epoch; this is the only comparison of sequences there
    /// is.
    #[must_use]
    pub fn standing(&self, fence: &Fence) -> Standing {
        let (mine, highest) = (self.term.sequence.get(), fence.term.sequence.get());
        match mine.cmp(&highest) {
            Ordering::Less => Standing::Older,
            Ordering::Equal if self.holder == fence.holder => Standing::Holder,
            Ordering::Equal => Standing::Contested,
            Ordering::Greater => match mine.checked_sub(highest).and_then(NonZeroU64::new) {
                Some(step) => Standing::Newer { step },
                // Unreachable: a greater number minus a smaller one is above zero.
                None => Standing::Older,
            },
        }
    }

    /// Reads the text form `EPOCH.MARK/SEQUENCE@HOLDER`: two decimal numbers, the mark as 16
    /// hexadecimal digits, and the holder with unprintable bytes as `%XX` (see [`crate::escape`]).
    ///
    /// # Errors
    ///
    /// [`AuthorityError`] names the part that is missing or wrong. No part has a default.
    pub fn parse(text: &str) -> Result<Self, AuthorityError> {
        let (term, holder) = text.split_once('@').ok_or(AuthorityError::Shape)?;
        let (epoch, sequence) = term.split_once('/').ok_or(AuthorityError::Shape)?;
        let (number, mark) = epoch.split_once('.').ok_or(AuthorityError::Shape)?;
        let number = decimal(number)
            .and_then(EpochNumber::new)
            .ok_or(AuthorityError::Epoch)?;
        if mark.len() != 16 || !mark.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(AuthorityError::Mark);
        }
        let mark = u64::from_str_radix(mark, 16).map_err(|_| AuthorityError::Mark)?;
        let sequence = decimal(sequence)
            .and_then(Sequence::new)
            .ok_or(AuthorityError::Sequence)?;
        let holder = unescape(holder).ok_or(AuthorityError::Escape)?;
        let holder = Holder::new(holder).map_err(AuthorityError::Holder)?;
        let epoch = Epoch::new(number, EpochMark::new(mark));
        Ok(Self::new(Term { epoch, sequence }, holder))
    }
}

/// A decimal number without sign or leading zero, so that each number has one text form.
fn decimal(text: &str) -> Option<u64> {
    let digits = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.term, escape(self.holder.as_bytes()))
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.term, escape(self.holder.as_bytes()))
    }
}

/// Why a text isn't an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorityError {
    /// It hasn't the shape `EPOCH.MARK/SEQUENCE@HOLDER`.
    Shape,
    /// The epoch number isn't a decimal number from 1 to `u64::MAX`.
    Epoch,
    /// The mark isn't 16 hexadecimal digits.
    Mark,
    /// The sequence isn't a decimal number from 1 to `u64::MAX - 1`.
    Sequence,
    /// A `%` in the holder isn't followed by two hexadecimal digits.
    Escape,
    /// The holder is empty or too long.
    Holder(NameError),
}

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message: String = match self {
            Self::Shape => "an authority has the form EPOCH.MARK/SEQUENCE@HOLDER".into(),
            Self::Epoch => "the epoch is a decimal number from 1".into(),
            Self::Mark => "the epoch's mark is 16 hexadecimal digits".into(),
            Self::Sequence => "the sequence is a decimal number from 1 to 2^64 - 2".into(),
            Self::Escape => "a % in the holder needs two hexadecimal digits behind it".into(),
            Self::Holder(error) => alloc::format!("{error}"),
        };
        f.write_str(&message)
    }
}

impl core::error::Error for AuthorityError {}
