//! Ordered maps and sets that share unchanged parts between copies: a copy takes constant time, a change
//! copies one path.

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

/// An ordered map whose copies share what did not change.
pub type Map<K, V> = RedBlackTreeMapSync<K, V>;

/// An ordered set whose copies share what did not change.
pub type Set<T> = RedBlackTreeSetSync<T>;
