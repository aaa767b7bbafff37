//! A bounded map of what was used lately: two generations, of which the older is dropped whole.

use std::hash::Hash;

use hashbrown::HashMap;

/// Keeps entries that were put or used since the last change of generation, and those of the
/// generation before. When the young generation reaches its share of the budget, the old one goes.
#[derive(Debug)]
pub(crate) struct Hot<K, V> {
    young: HashMap<K, Entry<V>, foldhash::fast::RandomState>,
    old: HashMap<K, Entry<V>, foldhash::fast::RandomState>,
    young_bytes: usize,
    budget_bytes: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
}

impl<K: Hash + Eq + Clone, V> Hot<K, V> {
    /// An empty map that holds entries of about this many bytes.
    pub(crate) fn new(budget_bytes: usize) -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
            young_bytes: 0,
            budget_bytes: budget_bytes / 2,
        }
    }

    /// What is known; an entry of the old generation becomes young again.
    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        if !self.young.contains_key(key) {
            let entry = self.old.remove(key)?;
            self.put(key.clone(), entry.value, entry.bytes);
        }
        self.young.get_mut(key).map(|entry| &mut entry.value)
    }

    /// Notes the latest value, which takes about this many bytes.
    pub(crate) fn put(&mut self, key: K, value: V, bytes: usize) {
        if self.young_bytes.saturating_add(bytes) > self.budget_bytes {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes = self.young_bytes.saturating_add(bytes);
        if let Some(replaced) = self.young.insert(key, Entry { value, bytes }) {
            self.young_bytes = self.young_bytes.saturating_sub(replaced.bytes);
        }
    }
}
