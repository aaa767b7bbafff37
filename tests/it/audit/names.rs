//! H-54: no name can break a line, or forge one.

use highwater::{
    Admission, Authority, Commit, Guard, GuardRule, Holder, IntentId, Key, Step, Term, Value,
    unescape,
};

use highwater_tests::disk::SimDisk;
use serde_json::Value as Json;

use super::{audited, lines, of_kind, put, text_of, texts, verified};
use crate::support::{domain, open, policy};

/// Names that somebody would choose who wants to break a line.
fn hostile() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "a\nb",
        "a\r\nb",
        "\0",
        "\u{2028}\u{2029}\u{85}",
        "\x1b[2J\x1b]0;x\x07",
        "\"",
        "\\",
        "\\\"",
        "%0A%",
        "{}",
        "\"}\n{\"seq\":\"1\",\"kind\":\"commit\"}",
        "\",\"digest\":\"0000\"}",
        " ",
        "\u{7f}",
        "\u{202e}txt",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    names.push(vec![0xff, 0xfe, 0xc3, 0x28]);
    names.push((0..=255).collect());
    let imitation = "\n{\"seq\":\"2\",\"batch\":\"2\",\"prev\":\"00\",\"time_ms\":\"0\",\
                     \"kind\":\"closed\",\"at\":\"1\",\"digest\":\"00\"}\n";
    names.push(imitation.into());
    names
}

fn bytes_of(value: &Json) -> Vec<u8> {
    unescape(text_of(value)).unwrap()
}

#[test]
fn every_name_comes_back_as_it_was_from_exactly_one_line() {
    let disk = SimDisk::default();
    let store = open(&disk, &audited());
    let fenced = policy(GuardRule::Key, Admission::Fenced);
    let made = store.create_domain(domain("d"), fenced, None).unwrap();
    let epoch = made.epochs.current().epoch;
    let under = |sequence, name: &[u8]| {
        let sequence = highwater::Sequence::new(sequence).unwrap();
        let holder = Holder::new(&name[..name.len().min(200)]).unwrap();
        Authority::new(Term { epoch, sequence }, holder)
    };
    for name in hostile() {
        let key = || Key::new(&name).unwrap();
        let id = IntentId::new(&name[..name.len().min(200)]).unwrap();
        let commit = Commit::new(domain("d")).put(key(), Value::new("v").unwrap());
        let stale = commit.clone().under(under(1, &name));
        let commit = commit.under(under(2, &name)).for_intent(id, Step::FIRST);
        store.commit(commit).unwrap();
        let refused = store.commit(stale).unwrap_err();
        assert_eq!(refused.rejection().unwrap().reason.code(), "StaleTerm");
    }
    store.close().unwrap();
    let files = disk.files();
    let lines = lines(&files);
    verified(&files, &lines);
    // created, domain, opened, closed.
    assert_eq!(texts(&files).len(), hostile().len() * 2 + 4);
    let accepted = of_kind(&lines, "commit");
    let refused = of_kind(&lines, "refused");
    assert_eq!(
        (accepted.len(), refused.len()),
        (hostile().len(), hostile().len())
    );
    for (name, line) in hostile().iter().zip(accepted) {
        let short = &name[..name.len().min(200)];
        assert_eq!(bytes_of(&line["writes"][0]["key"]), *name);
        assert_eq!(bytes_of(&line["guards"][0]["guard"]), *name);
        assert_eq!(bytes_of(&line["intents"][0]["intent"]), short);
        assert_eq!(line["intents"][0]["step"], "1");
        let authority = Authority::parse(text_of(&line["guards"][0]["authority"]));
        assert_eq!(authority.unwrap(), under(2, name));
    }
    for (name, line) in hostile().iter().zip(refused) {
        assert_eq!(line["reason"], "StaleTerm");
        let guard = Guard::new(bytes_of(&line["guard"])).unwrap();
        assert_eq!(guard.as_bytes(), *name);
        let presented = Authority::parse(text_of(&line["presented"])).unwrap();
        assert_eq!(presented, under(1, name));
        let fence = Authority::parse(text_of(&line["fence"])).unwrap();
        assert_eq!(fence, under(2, name));
    }
}

/// H-67: every number is text, at full width.
#[test]
fn numbers_above_what_a_reader_of_json_can_hold_are_exact() {
    let disk = SimDisk::default();
    let store = open(&disk, &audited());
    let fenced = policy(GuardRule::Key, Admission::Fenced);
    let made = store.create_domain(domain("d"), fenced, None).unwrap();
    let epoch = made.epochs.current().epoch;
    let terms = [(1 << 53) + 1, u64::MAX - 1].map(|sequence: u64| format!("{epoch}/{sequence}"));
    for term in &terms {
        let authority = Authority::parse(&format!("{term}@a")).unwrap();
        store.commit(put(term, "v").under(authority)).unwrap();
    }
    store.close().unwrap();
    let lines = lines(&disk.files());
    for (line, term) in of_kind(&lines, "commit").into_iter().zip(&terms) {
        assert_eq!(line["guards"][0]["authority"], format!("{term}@a"));
        assert_eq!(line["writes"][0]["term"], *term);
    }
    assert!(lines.iter().all(has_no_number));
}

fn has_no_number(value: &Json) -> bool {
    match value {
        Json::Number(_) => false,
        Json::Array(all) => all.iter().all(has_no_number),
        Json::Object(all) => all.values().all(has_no_number),
        Json::Null | Json::Bool(_) | Json::String(_) => true,
    }
}
