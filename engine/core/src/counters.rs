//! The counters of the contract, each a type of its own.
//!
//! None of them converts from or to an integer by itself: raw numbers exist only where bytes or
//! text are read and written. Absence is an [`Option`], never zero or the maximum. Terms and epochs
//! have no `<`: their order is a rule of fencing and lives in one place ([`crate::Authority`],
//! [`crate::EpochTable`]).

use core::fmt;
use core::num::{NonZeroU16, NonZeroU32, NonZeroU64};

/// Number of bits of a revision that count commits; the bits above hold the incarnation number.
const REVISION_COUNTER_BITS: u32 = 48;
/// Highest value of the commit counter inside one incarnation.
const REVISION_COUNTER_MAX: u64 = (1 << REVISION_COUNTER_BITS) - 1;

/// The 128 random bits that name one destination (one store), minted at its creation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DestinationId([u8; 16]);

impl DestinationId {
    /// Takes 16 bytes that the caller drew at random when the store was created.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub const fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for DestinationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DestinationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DestinationId({self})")
    }
}

/// A random 64-bit mark: tells strangers of the same number apart. Compared for equality only.
macro_rules! mark {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Takes 64 bits that the caller drew at random.
            #[must_use]
            pub const fn new(bits: u64) -> Self {
                Self(bits)
            }

            /// The 64 bits, for encoding.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

mark! {
    /// The random mark minted with an epoch.
    EpochMark
}
mark! {
    /// The random mark minted with an incarnation.
    IncarnationMark
}

/// A counter that starts at 1 and stops at its type's maximum.
macro_rules! counter {
    ($(#[$doc:meta])* $name:ident($inner:ty, $raw:ty) $(, $extra:ident)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash $(, $extra)*)]
        pub struct $name($inner);

        impl $name {
            /// The first value, 1.
            pub const FIRST: Self = Self(<$inner>::MIN);

            /// The counter with this raw value; `None` for zero, which is never valid.
            #[must_use]
            pub const fn new(raw: $raw) -> Option<Self> {
                match <$inner>::new(raw) {
                    Some(inner) => Some(Self(inner)),
                    None => None,
                }
            }

            /// The raw value, for encoding and display.
            #[must_use]
            pub const fn get(self) -> $raw {
                self.0.get()
            }

            /// The next value; `None` at the end of the range. It never wraps.
            #[must_use]
            pub const fn next(self) -> Option<Self> {
                match self.0.checked_add(1) {
                    Some(inner) => Some(Self(inner)),
                    None => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

counter! {
    /// The number of an epoch. Numbers order the epochs of one domain; two epochs of equal number
    /// and different mark are strangers.
    EpochNumber(NonZeroU64, u64)
}
counter! {
    /// The version of a key's metadata inside one generation: 1 when the value is written, one more
    /// for each metadata-only update.
    Metageneration(NonZeroU64, u64), PartialOrd, Ord
}
counter! {
    /// The number of an incarnation: every restore raises it. It is the top 16 bits of each
    /// revision, so it never exceeds 65,535.
    IncarnationNumber(NonZeroU16, u16), PartialOrd, Ord
}
counter! {
    /// The destination's own short number of a domain, assigned at creation and never reused.
    DomainId(NonZeroU32, u32), PartialOrd, Ord
}

/// One lifetime of a destination between two restores: its number and the mark minted with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incarnation {
    number: IncarnationNumber,
    mark: IncarnationMark,
}

impl Incarnation {
    /// An incarnation of this number and mark.
    #[must_use]
    pub const fn new(number: IncarnationNumber, mark: IncarnationMark) -> Self {
        Self { number, mark }
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> IncarnationNumber {
        self.number
    }

    /// Its mark.
    #[must_use]
    pub const fn mark(&self) -> IncarnationMark {
        self.mark
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.number, self.mark)
    }
}

/// One epoch of a domain: its number and the mark minted with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Epoch {
    number: EpochNumber,
    mark: EpochMark,
}

impl Epoch {
    /// An epoch of this number and mark.
    #[must_use]
    pub const fn new(number: EpochNumber, mark: EpochMark) -> Self {
        Self { number, mark }
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> EpochNumber {
        self.number
    }

    /// Its mark.
    #[must_use]
    pub const fn mark(&self) -> EpochMark {
        self.mark
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.number, self.mark)
    }
}

/// The sequence of a term: 1 to `u64::MAX - 1`. It has no order of its own, on purpose: whether a
/// sequence is stale is decided by [`crate::Authority::standing`] alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sequence(NonZeroU64);

impl Sequence {
    /// The sequence with this raw value; `None` for 0 and `u64::MAX`, which are never valid.
    #[must_use]
    pub const fn new(raw: u64) -> Option<Self> {
        if raw == u64::MAX {
            return None;
        }
        match NonZeroU64::new(raw) {
            Some(inner) => Some(Self(inner)),
            None => None,
        }
    }

    /// The raw value, for encoding and display.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequence({})", self.0)
    }
}

/// The destination's commit counter. Strictly increasing, never reused, across crashes and
/// restores: the top 16 bits are the incarnation number, the other 48 count the commits in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(NonZeroU64);

impl Revision {
    /// Not below any revision that a commit can have: "as of now", never "at".
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// The revision of a store of this incarnation that has committed nothing yet.
    #[must_use]
    pub const fn start(incarnation: IncarnationNumber) -> Self {
        // The number is at least 1, so the shifted value is never zero.
        let raw = (incarnation.get() as u64) << REVISION_COUNTER_BITS;
        match NonZeroU64::new(raw) {
            Some(inner) => Self(inner),
            None => Self(NonZeroU64::MAX),
        }
    }

    /// The revision with this raw value; `None` if its incarnation number would be zero.
    #[must_use]
    pub const fn new(raw: u64) -> Option<Self> {
        if raw >> REVISION_COUNTER_BITS == 0 {
            return None;
        }
        match NonZeroU64::new(raw) {
            Some(inner) => Some(Self(inner)),
            None => None,
        }
    }

    /// The raw value, for encoding and display.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The next revision of the same incarnation; `None` when its 48 bits are used up.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        if self.0.get() & REVISION_COUNTER_MAX == REVISION_COUNTER_MAX {
            return None;
        }
        match self.0.checked_add(1) {
            Some(inner) => Some(Self(inner)),
            None => None,
        }
    }

    /// The number of the incarnation that committed it.
    #[must_use]
    pub const fn incarnation(self) -> Option<IncarnationNumber> {
        let bytes = self.0.get().to_be_bytes();
        IncarnationNumber::new(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// How many commits its incarnation had made when it was used: the low 48 bits.
    #[must_use]
    pub const fn counter(self) -> u64 {
        self.0.get() & REVISION_COUNTER_MAX
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Revision({}/{})",
            self.0.get() >> REVISION_COUNTER_BITS,
            self.counter()
        )
    }
}

/// The id of a lease: the revision of the commit that granted it. Two leases of one guard never
/// share one; those that one commit grants on several guards do.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(Revision);

impl LeaseId {
    /// The id of a lease that was granted at this revision.
    #[must_use]
    pub const fn of(revision: Revision) -> Self {
        Self(revision)
    }

    /// The id with this raw value; `None` for values that no commit can have.
    #[must_use]
    pub const fn new(raw: u64) -> Option<Self> {
        match Revision::new(raw) {
            Some(revision) => Some(Self(revision)),
            None => None,
        }
    }

    /// The raw value, for encoding and display.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The revision of the commit that granted it.
    #[must_use]
    pub const fn revision(self) -> Revision {
        self.0
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId({})", self.0)
    }
}

/// The version of a key: the revision of the commit that last wrote its value. A key that does not
/// exist has no generation; text and wire forms write that as 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(Revision);

impl Generation {
    /// The generation of a key that was written at this revision.
    #[must_use]
    pub const fn of(revision: Revision) -> Self {
        Self(revision)
    }

    /// The generation with this raw value; `None` for values that no commit can have.
    #[must_use]
    pub const fn new(raw: u64) -> Option<Self> {
        match Revision::new(raw) {
            Some(revision) => Some(Self(revision)),
            None => None,
        }
    }

    /// The raw value, for encoding and display.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The revision of the commit that wrote it.
    #[must_use]
    pub const fn revision(self) -> Revision {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Generation({})", self.0)
    }
}
