//! Ordered maps and sets that share unchanged parts between copies: a copy costs nothing, a change copies one path.

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

/// An ordered map that shares what did not change between its copies.
pub type Map<K, V> = RedBlackTreeMapSync<K, V>;

/// An ordered set that shares what did not change between its copies.
pub type Set<T> = RedBlackTreeSetSync<T>;
