//! What people type, read strictly: every text has one reading, and a wrong one is a typed error.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use highwater::{
    Authority, AuthorityError, DestinationId, Digest, Epoch, EpochMark, EpochNumber, Generation,
    Incarnation, IncarnationMark, IncarnationNumber, MetadataError, Metageneration, NameError,
    PolicyError, Revision, Sequence, Term, unescape,
};

/// Longest file or standard input that is read, in bytes: a commit of 16 MiB, written as base64
/// with room around it.
pub(crate) const INPUT_BYTES_MAX: u64 = 64 << 20;

/// Why something that was typed can't be used. Always the caller's to correct: nothing was sent.
#[derive(Debug)]
pub(crate) enum InputError {
    /// A `%` isn't followed by two hexadecimal digits.
    Escape,
    /// The text isn't base64 of the standard alphabet, with padding.
    Base64,
    /// Not this many hexadecimal digits.
    Hex {
        /// What was to be read.
        what: &'static str,
        /// How many digits it has.
        digits: usize,
    },
    /// Not a decimal number of its range.
    Number {
        /// What was to be read.
        what: &'static str,
    },
    /// Not of the form that is named.
    Form {
        /// The form.
        form: &'static str,
    },
    /// A name that can't be.
    Name(NameError),
    /// Metadata that can't be.
    Metadata(MetadataError),
    /// Settings that make no policy.
    Policy(PolicyError),
    /// An authority that isn't whole.
    Authority(AuthorityError),
    /// A file or standard input can't be read.
    Read {
        /// Which one.
        from: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file or standard input is longer than [`INPUT_BYTES_MAX`].
    TooLong {
        /// Which one.
        from: PathBuf,
    },
    /// A commit's text isn't what is expected.
    Json(serde_json::Error),
    /// Two things were given of which one is allowed.
    Both {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// No store ever gave this revision.
    Revision,
    /// Something that must be there is missing.
    Missing {
        /// What.
        what: &'static str,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Escape => f.write_str(
                "a % needs two hexadecimal digits behind it (a % itself is written %25)",
            ),
            Self::Base64 => f.write_str("this isn't base64 (standard alphabet, with padding)"),
            Self::Hex { what, digits } => write!(f, "the {what} is {digits} hexadecimal digits"),
            Self::Number { what } => write!(f, "the {what} isn't a decimal number of its range"),
            Self::Revision => write!(
                f,
                "no store gives this revision: status, receipts and watches name them, and {} is \
                 where a new store begins",
                Revision::start(IncarnationNumber::FIRST)
            ),
            Self::Form { form } => write!(f, "expected the form {form}"),
            Self::Name(error) => error.fmt(f),
            Self::Metadata(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
            Self::Authority(error) => error.fmt(f),
            Self::Read { from, source } => write!(f, "can't read {}: {source}", from.display()),
            Self::TooLong { from } => write!(
                f,
                "{} is longer than {INPUT_BYTES_MAX} bytes",
                from.display()
            ),
            Self::Json(error) => write!(f, "the commit can't be read: {error}"),
            Self::Both { one, other } => write!(f, "{one} and {other} can't both be given"),
            Self::Missing { what } => write!(f, "{what} is missing"),
        }
    }
}

impl std::error::Error for InputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Json(error) => Some(error),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($error:ident => $variant:ident),*) => {
        $(
            impl From<$error> for InputError {
                fn from(error: $error) -> Self {
                    Self::$variant(error)
                }
            }
        )*
    };
}
from!(
    NameError => Name,
    MetadataError => Metadata,
    PolicyError => Policy,
    AuthorityError => Authority
);

/// How keys, guards and prefixes are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    /// As text, in which `%XX` is a byte.
    Escaped,
    /// As base64.
    Base64,
}

impl Encoding {
    /// The bytes that a text means.
    pub(crate) fn bytes(self, text: &str) -> Result<Vec<u8>, InputError> {
        match self {
            Self::Escaped => unescape(text).ok_or(InputError::Escape),
            Self::Base64 => from_base64(text.as_bytes()),
        }
    }
}

/// Reads base64; a line break at the end is ignored.
pub(crate) fn from_base64(text: &[u8]) -> Result<Vec<u8>, InputError> {
    STANDARD
        .decode(text.trim_ascii_end())
        .map_err(|_| InputError::Base64)
}

/// Writes base64.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A decimal number: digits alone, so that neither sign nor blank slips in.
pub(crate) fn number(what: &'static str, text: &str) -> Result<u64, InputError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or(InputError::Number { what })
}

/// A generation; 0 is "does not exist".
pub(crate) fn generation(text: &str) -> Result<Option<Generation>, InputError> {
    let what = "generation";
    match number(what, text)? {
        0 => Ok(None),
        raw => Generation::new(raw)
            .map(Some)
            .ok_or(InputError::Number { what }),
    }
}

/// A metageneration; 0 is "the key does not exist".
pub(crate) fn metageneration(text: &str) -> Result<Option<Metageneration>, InputError> {
    Ok(Metageneration::new(number("metageneration", text)?))
}

/// A revision.
pub(crate) fn revision(text: &str) -> Result<Revision, InputError> {
    let what = "revision";
    Revision::new(number(what, text)?).ok_or(InputError::Revision)
}

fn hex<const N: usize>(what: &'static str, text: &str) -> Result<[u8; N], InputError> {
    let error = || InputError::Hex {
        what,
        digits: N * 2,
    };
    let digits = text.as_bytes();
    if digits.len() != N * 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(error());
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| error())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| error())?;
    }
    Ok(bytes)
}

fn mark(what: &'static str, text: &str) -> Result<u64, InputError> {
    hex(what, text).map(u64::from_be_bytes)
}

/// A destination's id: 32 hexadecimal digits.
pub(crate) fn destination_id(text: &str) -> Result<DestinationId, InputError> {
    hex("destination id", text).map(DestinationId::new)
}

/// A digest: 64 hexadecimal digits.
pub(crate) fn digest(text: &str) -> Result<Digest, InputError> {
    hex("digest", text).map(Digest::new)
}

/// An incarnation: `NUMBER.MARK`.
pub(crate) fn incarnation(text: &str) -> Result<Incarnation, InputError> {
    let what = "incarnation's number";
    let form = "NUMBER.MARK";
    let (digits, bits) = text.split_once('.').ok_or(InputError::Form { form })?;
    let raw = u16::try_from(number(what, digits)?).map_err(|_| InputError::Number { what })?;
    let number = IncarnationNumber::new(raw).ok_or(InputError::Number { what })?;
    let mark = IncarnationMark::new(mark("incarnation's mark", bits)?);
    Ok(Incarnation::new(number, mark))
}

/// An authority: `EPOCH.MARK/SEQUENCE@HOLDER`, always whole.
pub(crate) fn authority(text: &str) -> Result<Authority, InputError> {
    Ok(Authority::parse(text)?)
}

/// A term: `EPOCH.MARK/SEQUENCE`.
pub(crate) fn term(text: &str) -> Result<Term, InputError> {
    let form = "EPOCH.MARK/SEQUENCE";
    let error = InputError::Form { form };
    let Some((epoch, sequence)) = text.split_once('/') else {
        return Err(error);
    };
    let Some((digits, bits)) = epoch.split_once('.') else {
        return Err(error);
    };
    let what = "epoch's number";
    let epoch = EpochNumber::new(number(what, digits)?).ok_or(InputError::Number { what })?;
    let mark = EpochMark::new(mark("epoch's mark", bits)?);
    let what = "sequence";
    let sequence = Sequence::new(number(what, sequence)?).ok_or(InputError::Number { what })?;
    Ok(Term {
        epoch: Epoch::new(epoch, mark),
        sequence,
    })
}

/// A label: `NAME=VALUE`, divided at the first `=`.
pub(crate) fn label(text: &str) -> Result<(String, String), InputError> {
    let form = "NAME=VALUE";
    let (name, value) = text.split_once('=').ok_or(InputError::Form { form })?;
    Ok((name.into(), value.into()))
}

/// A prefix and a revision: `PREFIX=REVISION`, divided at the last `=`.
pub(crate) fn prefix_revision(text: &str) -> Result<(String, Revision), InputError> {
    let form = "PREFIX=REVISION";
    let (prefix, number) = text.rsplit_once('=').ok_or(InputError::Form { form })?;
    Ok((prefix.into(), revision(number)?))
}

/// The bytes of a file, or of standard input for `-`.
pub(crate) fn read(from: &OsStr) -> Result<Vec<u8>, InputError> {
    if from == "-" {
        let from = Path::new("standard input");
        return read_bounded(from, io::stdin().lock());
    }
    let path = Path::new(from);
    match std::fs::File::open(path) {
        Ok(file) => read_bounded(path, file),
        Err(source) => Err(InputError::Read {
            from: path.into(),
            source,
        }),
    }
}

fn read_bounded(from: &Path, source: impl Read) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = source.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    match read {
        Err(source) => Err(InputError::Read {
            from: from.into(),
            source,
        }),
        Ok(count) if count as u64 > INPUT_BYTES_MAX => {
            Err(InputError::TooLong { from: from.into() })
        }
        Ok(_) => Ok(bytes),
    }
}

/// The bytes of a value: the text as it is, `@FILE`, or `-` for standard input.
pub(crate) fn value(text: &OsStr, base64: bool) -> Result<Vec<u8>, InputError> {
    let raw = text.as_encoded_bytes();
    let bytes = match raw.strip_prefix(b"@") {
        Some(_) => read(&file_of(text))?,
        None if raw == b"-" => read(text)?,
        None => raw.to_vec(),
    };
    if base64 {
        from_base64(&bytes)
    } else {
        Ok(bytes)
    }
}

/// The file's name behind the `@`.
#[cfg(unix)]
fn file_of(text: &OsStr) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStrExt;
    let name = text.as_bytes();
    OsStr::from_bytes(name.strip_prefix(b"@").unwrap_or(name)).into()
}

/// The file's name behind the `@`.
#[cfg(not(unix))]
fn file_of(text: &OsStr) -> std::ffi::OsString {
    let name = text.to_string_lossy();
    name.strip_prefix('@').unwrap_or(&name).into()
}

#[cfg(test)]
mod tests;
