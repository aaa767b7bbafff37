//! Every text form from both sides: what is read, and what is refused.

use super::*;

#[test]
fn an_authority_is_read_only_when_it_is_whole() {
    let whole = "7.3fa9c1d2e0b14c55/18446744073709551614@job%20runner";
    let read = authority(whole).unwrap();
    assert_eq!(read.to_string(), whole);
    assert_eq!(read.term().sequence.get(), u64::MAX - 1);
    assert_eq!(read.holder().as_bytes(), b"job runner");
    for half in [
        "",
        "42@worker",
        "7/42@worker",
        "7.3fa9c1d2e0b14c55/42",
        "7.3fa9c1d2e0b14c55/42@",
        "7.3fa9c1d2e0b14c5/42@worker",
        "0.3fa9c1d2e0b14c55/42@worker",
        "7.3fa9c1d2e0b14c55/0@worker",
        "7.3fa9c1d2e0b14c55/18446744073709551615@worker",
        "7.3fa9c1d2e0b14c55/42@worker%2",
    ] {
        assert!(authority(half).is_err(), "{half} was read");
    }
}

#[test]
fn keys_go_through_both_encodings_byte_by_byte() {
    let all: Vec<u8> = (0..=255).collect();
    let escaped = highwater::escape(&all);
    assert_eq!(Encoding::Escaped.bytes(&escaped).unwrap(), all);
    assert_eq!(Encoding::Base64.bytes(&to_base64(&all)).unwrap(), all);
    assert!(Encoding::Escaped.bytes("100%").is_err());
    assert!(Encoding::Escaped.bytes("%zz").is_err());
    assert!(Encoding::Base64.bytes("a").is_err());
    assert!(Encoding::Base64.bytes("YQ").is_err(), "padding is missing");
}

#[test]
fn numbers_are_digits_alone_and_keep_all_64_bits() {
    assert_eq!(number("n", "9007199254740993").unwrap(), (1 << 53) + 1);
    assert_eq!(number("n", "18446744073709551615").unwrap(), u64::MAX);
    for wrong in ["", "+1", "-1", " 1", "1 ", "1e3", "18446744073709551616"] {
        assert!(number("n", wrong).is_err(), "'{wrong}' was read");
    }
}

#[test]
fn a_generation_of_zero_is_absence_and_no_other_is() {
    assert_eq!(generation("0").unwrap(), None);
    let first = (1_u64 << 48) + 1;
    assert_eq!(
        generation(&first.to_string()).unwrap().unwrap().get(),
        first
    );
    // A number that no commit can have isn't taken for anything.
    assert!(generation("7").is_err());
    assert_eq!(metageneration("0").unwrap(), None);
    assert_eq!(metageneration("1").unwrap().unwrap().get(), 1);
}

#[test]
fn identities_have_one_form() {
    let id = "000102030405060708090a0b0c0d0e0f";
    assert_eq!(destination_id(id).unwrap().to_string(), id);
    assert!(destination_id(&id[1..]).is_err());
    assert!(destination_id(&format!("+{}", &id[1..])).is_err());
    let text = "65535.00000000000000ff";
    assert_eq!(incarnation(text).unwrap().to_string(), text);
    for wrong in ["1", "0.00000000000000ff", "65536.00000000000000ff", "1.ff"] {
        assert!(incarnation(wrong).is_err(), "{wrong} was read");
    }
    let text = "7.00000000000000ff/42";
    assert_eq!(term(text).unwrap().to_string(), text);
    for wrong in ["7/42", "7.00000000000000ff", "7.00000000000000ff/0"] {
        assert!(term(wrong).is_err(), "{wrong} was read");
    }
    assert_eq!(digest(&"ab".repeat(32)).unwrap().bytes(), [0xab; 32]);
    assert!(digest("ab").is_err());
}

#[test]
fn pairs_are_divided_where_they_say() {
    assert_eq!(label("a=b=c").unwrap(), ("a".into(), "b=c".into()));
    assert!(label("a").is_err());
    let revision = (1_u64 << 48) + 5;
    let (prefix, read) = prefix_revision(&format!("a=b={revision}")).unwrap();
    assert_eq!((prefix.as_str(), read.get()), ("a=b", revision));
    assert!(prefix_revision("a").is_err());
}

#[test]
fn a_value_is_text_or_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("value");
    std::fs::write(&path, [0, 255, b'%']).unwrap();
    let at = format!("@{}", path.display());
    assert_eq!(value(OsStr::new(&at), false).unwrap(), [0, 255, b'%']);
    assert_eq!(value(OsStr::new("100%"), false).unwrap(), b"100%");
    assert_eq!(value(OsStr::new(""), false).unwrap(), b"");
    assert_eq!(value(OsStr::new("AP8="), true).unwrap(), [0, 255]);
    assert!(value(OsStr::new("@/does/not/exist"), false).is_err());
}
