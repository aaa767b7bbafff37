//! The printable form of arbitrary bytes, shared by messages, the text form of authorities and the
//! command line.

use alloc::string::String;
use alloc::vec::Vec;

const HEX: [char; 16] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
];

/// Writes bytes as printable ASCII. Every byte outside the range `!` to `~`, and `%` itself,
/// becomes
/// `%` and two hexadecimal digits, so the form has no blanks, no line breaks and exactly one
/// reading.
///
/// ```
/// assert_eq!(highwater_core::escape(b"job 7/\x00%"), "job%207/%00%25");
/// ```
#[must_use]
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_graphic() && byte != b'%' {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push(*HEX.get(usize::from(byte >> 4)).unwrap_or(&'0'));
            text.push(*HEX.get(usize::from(byte & 15)).unwrap_or(&'0'));
        }
    }
    text
}

/// Reads what [`escape`] writes. Bytes that need no escape may stand for themselves, blanks and
/// non-ASCII text included. `None` if a `%` isn't followed by two hexadecimal digits.
#[must_use]
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = hex_digit(rest.next()?)?;
            let low = hex_digit(rest.next()?)?;
            bytes.push(high << 4 | low);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => byte.checked_sub(b'0'),
        b'a'..=b'f' => byte.checked_sub(b'a')?.checked_add(10),
        b'A'..=b'F' => byte.checked_sub(b'A')?.checked_add(10),
        _ => None,
    }
}
