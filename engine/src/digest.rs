//! Digests of values, and of what commits ask for: the core compares them, this computes them.

use highwater_core::codec::encode_command;
use highwater_core::{Commit, Digest, Value};

/// The BLAKE3-256 digest of a value, as a condition on it must name it.
///
/// ```
/// let value = highwater::Value::new("done")?;
/// assert_eq!(highwater::digest(&value).to_string().len(), 64);
/// # Ok::<(), highwater::NameError>(())
/// ```
#[must_use]
pub fn digest(value: &Value) -> Digest {
    Digest::new(*blake3::hash(value.as_bytes()).as_bytes())
}

/// The digest of what a commit asks for, where it is a step of an intent.
pub(crate) fn of_command(commit: &Commit) -> Option<Digest> {
    commit.intent.as_ref()?;
    let mut command = Vec::new();
    encode_command(commit, &mut command);
    Some(Digest::new(*blake3::hash(&command).as_bytes()))
}
