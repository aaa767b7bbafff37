//! One line: a JSON object that ends with the digest of all that is before it.

use serde::{Deserialize, Serialize};

use super::event::Event;

/// Longest line that is read, in bytes. The longest that is written is a commit of 1,024 keys with
/// guards and intents, every byte of their names escaped: less than half of it.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 20;
/// What the digest before the first line of a trail is.
pub(crate) const NO_DIGEST: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

const DIGEST_BEFORE: &str = ",\"digest\":\"";
const DIGEST_AFTER: &str = "\"}";
const PREFIX: &str = "audit-";
const SUFFIX: &str = ".jsonl";

/// The name of the file that begins with this sequence.
pub(crate) fn file_name(first: u64) -> String {
    format!("{PREFIX}{first:016x}{SUFFIX}")
}

/// The sequence that a file begins with, by its name; `None` if it is no file of a trail.
pub(crate) fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let first = u64::from_str_radix(digits, 16).ok()?;
    (file_name(first) == name).then_some(first)
}

/// Where a trail ends: what the next line goes on from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct End {
    /// The sequence of the last line; 0 before the first.
    pub(crate) seq: u64,
    /// Its digest.
    pub(crate) digest: String,
    /// Up to which revision every change has its line or lies in a gap; `None` before the first.
    pub(crate) audited: Option<u64>,
}

impl Default for End {
    fn default() -> Self {
        Self {
            seq: 0,
            digest: NO_DIGEST.into(),
            audited: None,
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    seq: String,
    batch: String,
    prev: &'a str,
    time_ms: String,
    destination: &'a str,
    incarnation: &'a str,
    audited: Option<String>,
    #[serde(flatten)]
    event: &'a Event,
}

/// Who writes, and when: the same for all lines of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Writing<'a> {
    pub(crate) destination: &'a str,
    pub(crate) incarnation: &'a str,
    /// The sequence of the batch's first line.
    pub(crate) batch: u64,
    /// The wall clock, advisory.
    pub(crate) time_ms: u64,
}

/// Writes a line behind the others of its batch, and moves the end over it.
///
/// # Errors
///
/// What the serializer says; then nothing has changed.
pub(crate) fn put(
    out: &mut Vec<u8>,
    end: &mut End,
    writing: &Writing<'_>,
    event: &Event,
) -> serde_json::Result<()> {
    let seq = end.seq.saturating_add(1);
    let audited = event.audits().or(end.audited);
    let body = Body {
        seq: seq.to_string(),
        batch: writing.batch.to_string(),
        prev: &end.digest,
        time_ms: writing.time_ms.to_string(),
        destination: writing.destination,
        incarnation: writing.incarnation,
        audited: audited.map(|revision| revision.to_string()),
        event,
    };
    let mut body = serde_json::to_vec(&body)?;
    // The closing brace comes after the digest.
    body.pop();
    let digest = blake3::hash(&body).to_hex().to_string();
    out.extend_from_slice(&body);
    for part in [DIGEST_BEFORE, &digest, DIGEST_AFTER, "\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    *end = End {
        seq,
        digest,
        audited,
    };
    Ok(())
}

/// What is read of a line again.
#[derive(Deserialize, Clone, Debug)]
struct Read {
    seq: String,
    batch: String,
    prev: String,
    time_ms: String,
    kind: String,
    audited: Option<String>,
    revision: Option<String>,
    from: Option<String>,
    files: Option<Vec<Removed>>,
}

/// A file that retention removes.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Removed {
    /// Its first sequence.
    pub(crate) first: String,
    /// Its last sequence.
    pub(crate) last: String,
    /// The digest of its last line.
    pub(crate) digest: String,
}

/// A line that is whole: its own digest is right.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) seq: u64,
    pub(crate) batch: u64,
    pub(crate) prev: String,
    pub(crate) time_ms: u64,
    pub(crate) kind: String,
    pub(crate) audited: Option<u64>,
    /// The first revision that it accounts for, if it accounts for any.
    pub(crate) accounts_from: Option<u64>,
    pub(crate) removed: Vec<Removed>,
    pub(crate) digest: String,
}

/// A number in its one text form.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Reads a line without its line break; `None` if it isn't whole.
pub(crate) fn read(bytes: &[u8]) -> Option<Line> {
    let text = std::str::from_utf8(bytes).ok()?;
    let rest = text.strip_suffix(DIGEST_AFTER)?;
    let at = rest.len().checked_sub(64)?;
    let (before, digest) = rest.split_at_checked(at)?;
    let body = before.strip_suffix(DIGEST_BEFORE)?;
    if blake3::hash(body.as_bytes()).to_hex().as_str() != digest {
        return None;
    }
    let read: Read = serde_json::from_str(text).ok()?;
    let optional = |text: Option<&String>| match text {
        Some(text) => number(text).map(Some),
        None => Some(None),
    };
    let accounts = matches!(
        read.kind.as_str(),
        "created" | "domain" | "commit" | "clock"
    );
    let accounts_from = match read.kind.as_str() {
        "gap" => Some(number(read.from.as_ref()?)?),
        _ if accounts => Some(number(read.revision.as_ref()?)?),
        _ => None,
    };
    Some(Line {
        seq: number(&read.seq)?,
        batch: number(&read.batch)?,
        prev: read.prev,
        time_ms: number(&read.time_ms)?,
        kind: read.kind,
        audited: optional(read.audited.as_ref())?,
        accounts_from,
        removed: read.files.unwrap_or_default(),
        digest: digest.to_owned(),
    })
}

impl Line {
    /// Where the trail ends if this is its last line.
    pub(crate) fn end(&self) -> End {
        End {
            seq: self.seq,
            digest: self.digest.clone(),
            audited: self.audited,
        }
    }
}
