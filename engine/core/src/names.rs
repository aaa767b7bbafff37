//! Bounded bytes with a meaning, checked once, when they are made.
//!
//! All of them share their bytes: a clone is a reference count.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::limits::{
    CONFIGURATION_BYTES_MAX, DOMAIN_NAME_BYTES_MAX, HOLDER_BYTES_MAX, IDENTITY_BYTES_MAX,
    INPUT_NAME_BYTES_MAX, INTENT_ID_BYTES_MAX, KEY_BYTES_MAX, OWNER_BYTES_MAX, VALUE_BYTES_MAX,
};
use crate::text::escape;

/// Why bytes can't be a name of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The bytes are empty, and this kind of name never is.
    Empty {
        /// The kind of name, as the contract calls it.
        what: &'static str,
    },
    /// There are more bytes than the kind allows.
    TooLong {
        /// The kind of name, as the contract calls it.
        what: &'static str,
        /// How many bytes were given.
        bytes: usize,
        /// How many are allowed.
        max: usize,
    },
    /// A domain name has a character outside `A-Z a-z 0-9 . _ -`.
    Character {
        /// The position of the first such byte.
        at: usize,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { what } => write!(f, "the {what} is empty"),
            Self::TooLong { what, bytes, max } => {
                write!(f, "the {what} has {bytes} bytes; at most {max} are allowed")
            }
            Self::Character { at } => write!(
                f,
                "the domain name has a character other than A-Z, a-z, 0-9, '.', '_', '-' at byte {at}"
            ),
        }
    }
}

impl core::error::Error for NameError {}

fn bounded(what: &'static str, bytes: &[u8], min: usize, max: usize) -> Result<(), NameError> {
    if bytes.len() < min {
        return Err(NameError::Empty { what });
    }
    if bytes.len() > max {
        return Err(NameError::TooLong {
            what,
            bytes: bytes.len(),
            max,
        });
    }
    Ok(())
}

macro_rules! bytes_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $min:expr, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<[u8]>);

        impl $name {
            /// Takes a copy of the bytes after checking their number.
            ///
            /// # Errors
            ///
            /// [`NameError`] when there are too few or too many.
            pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, NameError> {
                let bytes = bytes.as_ref();
                bounded($what, bytes, $min, $max)?;
                Ok(Self(Arc::from(bytes)))
            }

            /// The bytes.
            #[must_use]
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl core::borrow::Borrow<[u8]> for $name {
            fn borrow(&self) -> &[u8] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&escape(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

bytes_name! {
    /// A key: 1 to 1,024 bytes, ordered byte by byte.
    Key, "key", 1, KEY_BYTES_MAX
}
bytes_name! {
    /// The name of a guard: what [`crate::Policy::guard_of`] makes of a key. Empty for the guard of
    /// a whole domain, and for keys whose first component is empty.
    Guard, "guard", 0, KEY_BYTES_MAX
}
bytes_name! {
    /// The beginning of keys; empty means every key.
    Prefix, "prefix", 0, KEY_BYTES_MAX
}
bytes_name! {
    /// The name of one process instance or session: 1 to 256 opaque bytes.
    Holder, "holder", 1, HOLDER_BYTES_MAX
}
bytes_name! {
    /// The authenticated name of a caller: 1 to 256 bytes, from the transport, never from the
    /// request.
    Identity, "identity", 1, IDENTITY_BYTES_MAX
}
bytes_name! {
    /// The id of one operation in a domain, the same over retries and over holders: 1 to 256 opaque
    /// bytes.
    IntentId, "intent", 1, INTENT_ID_BYTES_MAX
}
bytes_name! {
    /// The name of who has to resolve an indeterminate intent: 1 to 256 opaque bytes.
    Owner, "owner", 1, OWNER_BYTES_MAX
}
bytes_name! {
    /// The name of an input that isn't a key of the domain: 1 to 256 opaque bytes.
    InputName, "name of an input", 1, INPUT_NAME_BYTES_MAX
}
bytes_name! {
    /// The version of the configuration that work is done under: 1 to 256 opaque bytes.
    Configuration, "configuration", 1, CONFIGURATION_BYTES_MAX
}

impl Guard {
    /// The guard of a whole domain.
    #[must_use]
    pub fn whole_domain() -> Self {
        Self(Arc::from(&[][..]))
    }

    /// A guard with the bytes of a key, sharing them.
    pub(crate) fn of_whole_key(key: &Key) -> Self {
        Self(Arc::clone(&key.0))
    }
}

/// The name of a domain: 1 to 128 of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DomainName(Arc<str>);

impl DomainName {
    /// Takes a copy of the name after checking it.
    ///
    /// # Errors
    ///
    /// [`NameError`] when it is empty, too long or has another character.
    pub fn new(name: &str) -> Result<Self, NameError> {
        bounded("domain name", name.as_bytes(), 1, DOMAIN_NAME_BYTES_MAX)?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        match name.bytes().position(|byte| !allowed(byte)) {
            Some(at) => Err(NameError::Character { at }),
            None => Ok(Self(Arc::from(name))),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::borrow::Borrow<str> for DomainName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A value: 0 B to 16 MiB, shared. What a destination accepts is bounded further by its
/// [`crate::Limits`]. `Debug` shows the length only, so that values never reach logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Arc<[u8]>);

impl Value {
    /// Takes a copy of the bytes after checking their number.
    ///
    /// # Errors
    ///
    /// [`NameError::TooLong`] above 16 MiB.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let bytes = bytes.as_ref();
        bounded("value", bytes, 0, VALUE_BYTES_MAX)?;
        Ok(Self(Arc::from(bytes)))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({} bytes)", self.0.len())
    }
}

/// The BLAKE3-256 digest of a value, or of what a commit asks for. The core compares digests; the
/// shell computes them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Takes the 32 bytes of a digest.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A half-open range of keys: from `start` (included) to `end` (excluded; `None` is no end).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key that may be in the range; empty means from the beginning.
    pub start: Vec<u8>,
    /// The first key behind the range; `None` means to the end.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            start: Vec::new(),
            end: None,
        }
    }

    /// The keys from `start` up to, not including, `end`.
    #[must_use]
    pub fn between(start: impl Into<Vec<u8>>, end: Option<Vec<u8>>) -> Self {
        Self {
            start: start.into(),
            end,
        }
    }

    /// The keys that begin with the prefix. The end is the next byte string of the prefix's length
    /// or shorter; a prefix of 0xFF bytes alone (or an empty one) has no end.
    #[must_use]
    pub fn of_prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        while let Some(last) = end.pop() {
            if let Some(bumped) = last.checked_add(1) {
                end.push(bumped);
                return Self {
                    start: prefix.to_vec(),
                    end: Some(end),
                };
            }
        }
        Self {
            start: prefix.to_vec(),
            end: None,
        }
    }

    /// Whether the key is in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && self.end.as_ref().is_none_or(|end| key < end.as_slice())
    }

    /// Whether no key can be in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end
            .as_ref()
            .is_some_and(|end| end.as_slice() <= self.start.as_slice())
    }
}

/// A printable form of bytes for messages; see [`crate::escape`].
impl From<&Key> for String {
    fn from(key: &Key) -> Self {
        escape(key.as_bytes())
    }
}
