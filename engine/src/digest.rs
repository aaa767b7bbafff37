//! Digests of values: the core compares them, this computes them.

use highwater_core::{Digest, Value};

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
