//! Sizes and times as people write them: `64MiB`, `10s`, `200ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::input::{InputError, number};

const SIZES: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
const TIMES: [(&str, u64); 3] = [("ms", 1), ("s", 1_000), ("min", 60_000)];

/// A number of bytes, written as such or with `KiB`, `MiB` or `GiB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size(pub(crate) u64);

/// A time, written with `ms`, `s` or `min`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Size {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let what = "size";
        for (unit, bytes) in SIZES {
            if let Some(digits) = text.strip_suffix(unit) {
                let size = number(what, digits)?.checked_mul(bytes);
                return size.map(Self).ok_or(InputError::Number { what });
            }
        }
        number(what, text).map(Self)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, bytes): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*bytes);
        match SIZES.iter().find(whole) {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Span {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let form = "a number with ms, s or min behind it";
        let (what, digits) = (
            "time",
            text.trim_end_matches(|c: char| c.is_ascii_alphabetic()),
        );
        let unit = text.strip_prefix(digits).unwrap_or_default();
        let Some((_, milliseconds)) = TIMES.iter().find(|(name, _)| *name == unit) else {
            return Err(InputError::Form { form });
        };
        match number(what, digits)?.checked_mul(*milliseconds) {
            Some(total) => Ok(Self(Duration::from_millis(total))),
            None => Err(InputError::Number { what }),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_millis();
        if milliseconds.is_multiple_of(1_000) {
            write!(f, "{}s", milliseconds / 1_000)
        } else {
            write!(f, "{milliseconds}ms")
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A number or a text, as both stand in configuration files.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1023", 1_023),
            ("64KiB", 65_536),
            ("3MiB", 3_145_728),
            ("1GiB", 1_073_741_824),
        ] {
            assert_eq!(text.parse::<Size>().unwrap(), Size(bytes));
            assert_eq!(Size(bytes).to_string(), text);
        }
        for wrong in ["", "1MB", "1 MiB", "MiB", "-1", "17179869184GiB"] {
            assert!(wrong.parse::<Size>().is_err(), "'{wrong}' was read");
        }
    }

    #[test]
    fn times_need_a_unit() {
        for (text, milliseconds) in [("200ms", 200), ("10s", 10_000), ("0s", 0)] {
            let span = Span(Duration::from_millis(milliseconds));
            assert_eq!(text.parse::<Span>().unwrap(), span);
            assert_eq!(span.to_string(), text);
        }
        assert_eq!("2min".parse::<Span>().unwrap().0.as_secs(), 120);
        for wrong in [
            "",
            "10",
            "s",
            "10h",
            "-1s",
            "1.5s",
            "18446744073709551615min",
        ] {
            assert!(wrong.parse::<Span>().is_err(), "'{wrong}' was read");
        }
    }
}
