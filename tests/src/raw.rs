//! Requests in bare numbers and bytes, as the tests of the core have them, with real digests.

use highwater::{Commit, Digest, Value};

#[path = "../../engine/core/tests/shared/raw.rs"]
mod shared;

pub use shared::*;

/// The digest of a value. What is too long to be one has a digest that no value has.
fn digest(value: &[u8]) -> Digest {
    Value::new(value).map_or(Digest::new([0; 32]), |value| highwater::digest(&value))
}

impl Request {
    /// The product's commit; `None` if a part can't be made.
    #[must_use]
    pub fn typed(&self) -> Option<Commit> {
        self.typed_with(digest)
    }
}
