//! Guards, as the contract draws them over bytes.

use highwater::{GuardRule, Policy};

use crate::raw::{Bytes, Change};

/// The guard of a key: its first components, glued together again.
#[must_use]
pub fn guard_of(policy: &Policy, key: &[u8]) -> Bytes {
    match policy.guard() {
        GuardRule::Key => key.to_vec(),
        GuardRule::Domain => Bytes::new(),
        GuardRule::Prefix { delimiter, depth } => {
            let parts = key.split(|byte| *byte == delimiter).take(depth.into());
            parts.collect::<Vec<_>>().join(&delimiter)
        }
    }
}

/// Whether some key is under the guard: one of the two shortest that could be.
pub(crate) fn is_guard(policy: &Policy, guard: &[u8]) -> bool {
    let delimiter = match policy.guard() {
        GuardRule::Prefix { delimiter, .. } => delimiter,
        GuardRule::Key | GuardRule::Domain => b'x',
    };
    let below = [guard, &[delimiter]].concat();
    [guard, &below]
        .iter()
        .any(|key| !key.is_empty() && guard_of(policy, key) == guard)
}

/// The guard that a change touches.
#[must_use]
pub fn guard_touched(policy: &Policy, change: &Change) -> Option<Bytes> {
    match change.key() {
        Some(key) => Some(guard_of(policy, key)),
        None => change.named_guard().cloned(),
    }
}
