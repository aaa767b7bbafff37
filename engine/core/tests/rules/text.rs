//! Text forms: one reading for each text, one text for each value.

use highwater_core::{Authority, AuthorityError, NameError, escape, unescape};

use crate::raw::{Auth, authority, raw_fence};

fn parse(text: &str) -> Result<Auth, AuthorityError> {
    Authority::parse(text).map(|authority| raw_fence(&authority.to_fence()))
}

#[test]
fn an_authority_reads_as_it_is_written() {
    let largest = u64::MAX - 1;
    for (epoch, mark, sequence, holder, text) in [
        (
            7,
            0x3FA9_C1D2_E0B1_4C55,
            42,
            "worker-a",
            "7.3fa9c1d2e0b14c55/42@worker-a",
        ),
        (1, 0, 1, "a", "1.0000000000000000/1@a"),
        (
            u64::MAX,
            u64::MAX,
            largest,
            "@/.%",
            "18446744073709551615.ffffffffffffffff/18446744073709551614@@/.%25",
        ),
        (
            10,
            0xA,
            100,
            " \n\u{e4}",
            "10.000000000000000a/100@%20%0a%c3%a4",
        ),
    ] {
        let auth = Auth {
            epoch,
            mark,
            sequence,
            holder: holder.into(),
        };
        assert_eq!(authority(&auth).to_string(), text);
        assert_eq!(authority(&auth).to_fence().to_string(), text);
        assert_eq!(parse(text), Ok(auth));
    }
}

#[test]
fn every_part_of_an_authority_is_demanded() {
    use AuthorityError::{Epoch, Escape, Holder, Mark, Sequence, Shape};
    let mark = "0000000000000009";
    let empty = NameError::Empty { what: "holder" };
    for (text, error) in [
        (String::new(), Shape),
        ("7/42@a".into(), Shape),
        (format!("7.{mark}/42"), Shape),
        (format!("7.{mark}@a"), Shape),
        (format!(".{mark}/42@a"), Epoch),
        (format!("0.{mark}/42@a"), Epoch),
        (format!("07.{mark}/42@a"), Epoch),
        (format!("+7.{mark}/42@a"), Epoch),
        (format!(" 7.{mark}/42@a"), Epoch),
        (format!("18446744073709551616.{mark}/42@a"), Epoch),
        ("7./42@a".into(), Mark),
        ("7.000000000000009/42@a".into(), Mark),
        (format!("7.0{mark}/42@a"), Mark),
        ("7.+000000000000009/42@a".into(), Mark),
        ("7.000000000000000g/42@a".into(), Mark),
        (format!("7.{mark}/@a"), Sequence),
        (format!("7.{mark}/0@a"), Sequence),
        (format!("7.{mark}/042@a"), Sequence),
        (format!("7.{mark}/-1@a"), Sequence),
        (format!("7.{mark}/4 2@a"), Sequence),
        (format!("7.{mark}/18446744073709551615@a"), Sequence),
        (format!("7.{mark}/42@"), Holder(empty)),
        (format!("7.{mark}/42@a%"), Escape),
        (format!("7.{mark}/42@a%2"), Escape),
        (format!("7.{mark}/42@a%2g"), Escape),
    ] {
        assert_eq!(parse(&text), Err(error.clone()), "{text}");
        assert!(!error.to_string().is_empty());
    }
    let long = NameError::TooLong {
        what: "holder",
        bytes: 257,
        max: 256,
    };
    let text = |length| format!("7.{mark}/42@{}", "h".repeat(length));
    assert!(parse(&text(256)).is_ok());
    assert_eq!(parse(&text(257)), Err(Holder(long)));
}

#[test]
fn every_pair_of_bytes_has_one_printable_form() {
    for first in 0..=u8::MAX {
        for second in 0..=u8::MAX {
            let bytes = [first, second];
            let text = escape(&bytes);
            let expected: String = bytes
                .iter()
                .map(|byte| match byte {
                    0x21..=0x24 | 0x26..=0x7E => char::from(*byte).to_string(),
                    _ => format!("%{byte:02x}"),
                })
                .collect();
            assert_eq!(text, expected);
            assert_eq!(unescape(&text), Some(bytes.to_vec()));
        }
    }
    assert_eq!(unescape("%C3%a4\u{e4} b"), Some("\u{e4}\u{e4} b".into()));
}
