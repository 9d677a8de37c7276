//! Numbers that only grow. Each has its own type so that a generation is never compared with a term.

use core::fmt;

macro_rules! counters {
    ($($(#[$doc:meta])* $type:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $type(u64);

        impl $type {
            /// Before the first.
            pub const ZERO: Self = Self(0);

            /// From the plain number.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The plain number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one after this; saturates.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}

counters! {
    /// The store's count of commits at which a record was last written; zero means "not written".
    Revision;
    /// The count of a node's orders.
    Generation;
    /// The number of the current leadership. Every decider's write is guarded by it.
    Term;
    /// An event's place in its namespace: 1, 2, 3 … without gaps.
    Sequence;
    /// A rollout's place in its entity's history, from 1.
    RolloutNumber;
    /// A person's request for an entity, from 1; a decider acts once on each.
    RequestNumber;
    /// A revision of a profile, from 1, without gaps; not the store's [`Revision`].
    ProfileRevisionNumber;
    /// How often a slot was taken: whoever took it later has the larger one.
    FenceNumber;
    /// How often one target was told something; a report that answers an older one is old news.
    AssignmentNumber;
}
