//! Ordered maps and sets that share unchanged parts between copies: a copy takes constant time, a change
//! copies one path.

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

/// An ordered map whose copies share what did not change.
pub type Map<K, V> = RedBlackTreeMapSync<K, V>;

/// An ordered set whose copies share what did not change.
pub type Set<T> = RedBlackTreeSetSync<T>;

/// An ordered map from each key to a set of values that is never empty; copies share what did not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultiMap<K: Ord, V: Ord>(Map<K, Set<V>>);

impl<K: Ord, V: Ord> Default for MultiMap<K, V> {
    fn default() -> Self {
        Self(Map::default())
    }
}

impl<K: Ord + Clone, V: Ord + Clone> MultiMap<K, V> {
    /// The values of a key.
    pub fn get(&self, key: &K) -> impl Iterator<Item = &V> + use<'_, K, V> {
        self.0.get(key).into_iter().flat_map(|values| values.iter())
    }

    /// The values of all keys from `first` on, in the order of the keys.
    pub fn from(&self, first: K) -> impl Iterator<Item = &V> + use<'_, K, V> {
        self.0.range(first..).flat_map(|(_, values)| values.iter())
    }

    /// Adds a value to a key.
    pub fn insert(&mut self, key: K, value: &V) {
        if let Some(values) = self.0.get_mut(&key) {
            values.insert_mut(value.clone());
        } else {
            self.0.insert_mut(key, core::iter::once(value.clone()).collect());
        }
    }

    /// Removes a value from a key.
    pub fn remove(&mut self, key: &K, value: &V) {
        let Some(values) = self.0.get_mut(key) else { return };
        values.remove_mut(value);
        if values.is_empty() {
            self.0.remove_mut(key);
        }
    }
}
