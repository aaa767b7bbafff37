//! Which guard a key is under, and which keys a guard covers: the two directions of one rule.

use alloc::vec::Vec;

use crate::names::{Guard, Key, KeyRange};
use crate::policy::{GuardRule, Policy};

/// The keys that one guard covers: at most one key by itself and one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpan {
    /// The key that equals the guard, where that is a key.
    pub exact: Option<Key>,
    /// The keys below it.
    pub below: Option<KeyRange>,
}

impl KeySpan {
    /// Whether the guard covers the key.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        self.exact.as_ref() == Some(key)
            || self
                .below
                .as_ref()
                .is_some_and(|range| range.contains(key.as_bytes()))
    }
}

impl Policy {
    /// The guard that a key is under: a pure function of the policy and the key.
    ///
    /// ```
    /// use highwater_core::{GuardRule, Key, Policy};
    ///
    /// let jobs = Policy::default().with_guard(GuardRule::Prefix { delimiter: b'/', depth: 1 })?;
    /// let guard = jobs.guard_of(&Key::new("job-7/result")?);
    /// assert_eq!(guard.as_bytes(), b"job-7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn guard_of(&self, key: &Key) -> Guard {
        match self.guard() {
            GuardRule::Key => Guard::of_whole_key(key),
            GuardRule::Domain => Guard::whole_domain(),
            GuardRule::Prefix { delimiter, depth } => {
                match end_of_component(key.as_bytes(), delimiter, depth) {
                    Some(head) => Guard::new(head).unwrap_or_else(|_| Guard::of_whole_key(key)),
                    None => Guard::of_whole_key(key),
                }
            }
        }
    }

    /// Whether some key is under this guard, that is, whether the name is one that
    /// [`Policy::guard_of`] can give.
    #[must_use]
    pub fn is_guard(&self, guard: &Guard) -> bool {
        let bytes = guard.as_bytes();
        match self.guard() {
            GuardRule::Key => !bytes.is_empty(),
            GuardRule::Domain => bytes.is_empty(),
            GuardRule::Prefix { depth: 1, .. } if bytes.is_empty() => true,
            GuardRule::Prefix { delimiter, depth } => {
                !bytes.is_empty() && end_of_component(bytes, delimiter, depth).is_none()
            }
        }
    }

    /// The keys that a guard covers. For a name that isn't a guard of this policy: none.
    #[must_use]
    pub fn keys_of(&self, guard: &Guard) -> KeySpan {
        let bytes = guard.as_bytes();
        if !self.is_guard(guard) {
            return KeySpan {
                exact: None,
                below: None,
            };
        }
        let exact = Key::new(bytes).ok();
        match self.guard() {
            GuardRule::Key => KeySpan { exact, below: None },
            GuardRule::Domain => KeySpan {
                exact: None,
                below: Some(KeyRange::all()),
            },
            GuardRule::Prefix { delimiter, depth } => {
                let delimiters = bytes.iter().filter(|&&byte| byte == delimiter).count();
                let full = delimiters.checked_add(1) == Some(usize::from(depth));
                let below = full.then(|| {
                    let mut prefix = Vec::from(bytes);
                    prefix.push(delimiter);
                    KeyRange::of_prefix(&prefix)
                });
                KeySpan { exact, below }
            }
        }
    }
}

/// The bytes before the delimiter that ends component number `depth`; `None` if there is no such
/// delimiter.
fn end_of_component(bytes: &[u8], delimiter: u8, depth: u8) -> Option<&[u8]> {
    let nth = usize::from(depth).checked_sub(1)?;
    let (end, _) = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == delimiter)
        .nth(nth)?;
    bytes.get(..end)
}
