//! The words of a script. A command is a verb and clauses, with `;` between them; names are as
//! `highwater::unescape` reads them, and `-` stands for no bytes.

use std::num::NonZeroU64;

use highwater::{Admission, GuardRule, HolderBinding, Policy, unescape};
use highwater_tests::raw::{Auth, Auths, Bytes, Change, Cond, ENDINGS, Place, Request, Task};

/// What the words are relative to: the last revision's start, the destination, and the epoch of the
/// domain that the command is on.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    pub(super) start: u64,
    pub(super) place: Place,
    pub(super) epoch: (u64, u64),
}

/// A command's clauses, read.
#[derive(Default)]
pub(super) struct Clauses {
    pub(super) request: Request,
    /// Guards of a read or a take-over.
    pub(super) guards: Vec<Bytes>,
}

pub(super) fn bytes(word: &str) -> Bytes {
    if word == "-" {
        return Bytes::new();
    }
    unescape(word).unwrap_or_else(|| panic!("no name: {word}"))
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("no number: {word}"))
}

impl Scope {
    /// A revision or generation; `absent` is 0.
    fn revision(&self, word: &str) -> u64 {
        if word == "absent" {
            return 0;
        }
        self.start + number(word)
    }

    /// `SEQUENCE@HOLDER`, behind `next:` for an epoch that isn't here yet, or `stranger:` for one
    /// of this number and another mark.
    pub(super) fn auth(&self, word: &str) -> Auth {
        let (epoch, rest) = word.split_once(':').unwrap_or(("", word));
        let (epoch, mark) = match epoch {
            "next" => (self.epoch.0 + 1, self.epoch.1),
            "stranger" => (self.epoch.0, self.epoch.1 ^ 1),
            _ => self.epoch,
        };
        let (sequence, holder) = rest.split_once('@').expect("SEQUENCE@HOLDER");
        let sequence = match sequence {
            "last" => u64::MAX - 1,
            other => number(other),
        };
        Auth {
            epoch,
            mark,
            sequence,
            holder: bytes(holder),
        }
    }

    fn place(&self, word: &str) -> Place {
        let (mut id, incarnation, mark) = self.place;
        match word {
            "here" => self.place,
            "elsewhere" => {
                id[0] ^= 1;
                (id, incarnation, mark)
            }
            "restored" => (id, incarnation + 1, mark),
            "stranger" => (id, incarnation, mark ^ 1),
            other => panic!("no destination: {other}"),
        }
    }

    fn condition(&self, words: &[&str]) -> Cond {
        match words {
            [prefix, "unchanged", "since", at] if prefix.ends_with('*') => {
                Cond::PrefixSince(bytes(prefix.trim_end_matches('*')), self.start + number(at))
            }
            [key, "unchanged", "since", at] => Cond::KeySince(bytes(key), self.revision(at)),
            [key, "is", "not", at] => Cond::GenerationIsNot(bytes(key), self.revision(at)),
            [key, "is", at] => Cond::GenerationIs(bytes(key), self.revision(at)),
            [key, "meta", "is", "not", at] => Cond::MetagenerationIsNot(bytes(key), version(at)),
            [key, "meta", "is", at] => Cond::MetagenerationIs(bytes(key), version(at)),
            [key, "holds", value] => Cond::DigestOf(bytes(key), bytes(value)),
            [key, "under", auth] => {
                let auth = self.auth(auth);
                Cond::WrittenUnder(bytes(key), (auth.epoch, auth.mark, auth.sequence))
            }
            other => panic!("no condition: {other:?}"),
        }
    }

    /// Reads the clauses of a command on a domain.
    pub(super) fn clauses(&self, name: &str, clauses: &str) -> Clauses {
        let mut read = Clauses {
            request: Request::of(name, Vec::new()),
            ..Clauses::default()
        };
        let request = &mut read.request;
        for clause in clauses.split(';').map(str::trim).filter(|c| !c.is_empty()) {
            let words: Vec<&str> = clause.split_whitespace().collect();
            match words.as_slice() {
                ["in", _] => {}
                ["to", place] => request.destination = Some(self.place(place)),
                ["as", caller] => request.caller = Some(bytes(caller)),
                ["under", auth] => request.auth = Auths::One(self.auth(auth)),
                ["guard", guard, "under", auth] => {
                    let own = (bytes(guard), self.auth(auth));
                    match &mut request.auth {
                        Auths::PerGuard(list) => list.push(own),
                        other => *other = Auths::PerGuard(vec![own]),
                    }
                }
                ["step", step, "of", id] => {
                    let step = u32::try_from(number(step)).unwrap();
                    request.intent = Some((bytes(id), step, false));
                }
                ["last", "step", step, "of", id] => {
                    let step = u32::try_from(number(step)).unwrap();
                    request.intent = Some((bytes(id), step, true));
                }
                ["bind", id, "to", guard, inputs @ ..] => {
                    let inputs = inputs.chunks_exact(3).map(|input| match input {
                        ["from", key, at] => (bytes(key), self.revision(at)),
                        other => panic!("no input: {other:?}"),
                    });
                    let task = Task {
                        guard: bytes(guard),
                        inputs: inputs.collect(),
                        configuration: None,
                    };
                    request.changes.push(Change::Bind(bytes(id), task));
                }
                ["guard", guard] => read.guards.push(bytes(guard)),
                ["when", condition @ ..] => request.conds.push(self.condition(condition)),
                other => request.changes.push(change(other)),
            }
        }
        read
    }
}

fn version(word: &str) -> u64 {
    if word == "absent" { 0 } else { number(word) }
}

fn change(words: &[&str]) -> Change {
    match words {
        ["put", key, value] => Change::Put(bytes(key), bytes(value), String::new()),
        ["put", key, value, text] => Change::Put(bytes(key), bytes(value), (*text).to_owned()),
        ["put-long", key, length] => {
            let value = vec![b'v'; usize::try_from(number(length)).unwrap()];
            Change::Put(bytes(key), value, String::new())
        }
        ["delete", key] => Change::Delete(bytes(key)),
        ["label", key, text] => Change::Label(bytes(key), (*text).to_owned()),
        ["advance", guard] => Change::Advance(bytes(guard)),
        ["end", id, "as", how] => Change::Close(bytes(id), None, ending(how)),
        ["end", id, "of", guard, "as", how] => {
            Change::Close(bytes(id), Some(bytes(guard)), ending(how))
        }
        ["suspend", id, "with", owner] => Change::Suspend(bytes(id), None, bytes(owner), 0),
        other => panic!("no clause: {other:?}"),
    }
}

fn ending(how: &str) -> &'static str {
    let known = ENDINGS.iter().find(|(name, _)| *name == how);
    known.unwrap_or_else(|| panic!("no ending: {how}")).0
}

/// The domain that a command names; `d` if none.
pub(super) fn domain_of(clauses: &str) -> String {
    let mut clauses = clauses.split(';').map(str::trim);
    let named = clauses.find_map(|clause| clause.strip_prefix("in "));
    named.unwrap_or("d").to_owned()
}

/// Reads the settings of a domain, such as `guard=/1 admission=open binding=exact step=3`.
pub(super) fn policy(words: &[&str]) -> Policy {
    let mut policy = Policy::default();
    for word in words {
        let (setting, value) = word.split_once('=').expect("SETTING=VALUE");
        policy = match (setting, value) {
            ("guard", "key") => policy.with_guard(GuardRule::Key).unwrap(),
            ("guard", "domain") => policy.with_guard(GuardRule::Domain).unwrap(),
            ("guard", by) => {
                let (delimiter, depth) = by.split_at(1);
                let rule = GuardRule::Prefix {
                    delimiter: delimiter.as_bytes()[0],
                    depth: depth.parse().unwrap(),
                };
                policy.with_guard(rule).unwrap()
            }
            ("admission", "fenced") => policy.with_admission(Admission::Fenced),
            ("admission", "versioned") => policy.with_admission(Admission::Versioned),
            ("admission", "open") => policy.with_admission(Admission::Open),
            ("binding", "exact") => policy.with_holder_binding(HolderBinding::Exact),
            ("binding", "prefix") => policy.with_holder_binding(HolderBinding::Prefix),
            ("step", step) => policy.with_max_sequence_step(NonZeroU64::new(number(step))),
            other => panic!("no setting: {other:?}"),
        };
    }
    policy
}
