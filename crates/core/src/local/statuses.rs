//! What a machine says of itself in categories of the user's own: one state each, by the last saying.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::records::status::{BUILT_IN, MAX_CATEGORIES, StatusState, is_built_in};
use crate::words::name::Category;
use crate::words::time::{Span, Timestamp};

/// Most categories of the user's own: the built-in ones have their place beside them.
pub const MAX_OWN: usize = MAX_CATEGORIES - BUILT_IN.len();

/// Every category that was ever said here, with its last saying.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalStatuses(BTreeMap<Category, StatusUpdate>);

/// One saying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The state.
    pub state: StatusState,
    /// One line; may be empty.
    pub reason: String,
    /// For how long it holds without being said again; for ever if there is none.
    pub lifetime: Option<Span>,
    /// When it was said, by this machine's clock: only ever used to tell how long ago that was.
    pub at: Timestamp,
    /// Its number; no other saying of this machine has it.
    pub update: u64,
}

/// Why a saying is refused. Fits after "could not ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatusRefusal {
    /// Only the agent itself sets it.
    #[error("set {0}: the agent itself says how it stands, of what it does")]
    BuiltIn(Category),
    /// There is no room.
    #[error("set {0}: there are {MAX_OWN} categories already; use one of them")]
    Full(Category),
}

impl LocalStatuses {
    /// What was kept.
    #[must_use]
    pub const fn new(said: BTreeMap<Category, StatusUpdate>) -> Self {
        Self(said)
    }

    /// By category.
    pub fn iter(&self) -> impl Iterator<Item = (&Category, &StatusUpdate)> {
        self.0.iter()
    }

    /// Takes in a saying; its number is found here. Numbers grow with time, so that a machine that has forgotten all of
    /// its own does not use one again.
    ///
    /// # Errors
    /// [`StatusRefusal`]; nothing is changed then.
    pub fn say(&mut self, category: Category, said: StatusUpdate) -> Result<(), StatusRefusal> {
        if is_built_in(&category) {
            return Err(StatusRefusal::BuiltIn(category));
        }
        if self.0.len() >= MAX_OWN && !self.0.contains_key(&category) {
            return Err(StatusRefusal::Full(category));
        }
        let last = self.0.values().map(|said| said.update).max().unwrap_or_default();
        let update = last.saturating_add(1).max(said.at.as_millis());
        self.0.insert(category, StatusUpdate { update, ..said });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn category(text: &str) -> Category {
        Category::parse(text).unwrap()
    }

    fn said(state: StatusState, at: u64) -> StatusUpdate {
        StatusUpdate {
            state,
            reason: String::new(),
            lifetime: None,
            at: Timestamp::from_millis(at),
            update: 0,
        }
    }

    #[test]
    fn the_last_saying_of_a_category_is_the_one_that_counts_and_each_has_its_own_number() {
        let mut statuses = LocalStatuses::default();
        statuses.say(category("backup"), said(StatusState::Running, 50)).unwrap();
        statuses.say(category("scrub"), said(StatusState::Success, 50)).unwrap();
        // The clock of the machine was set back.
        statuses.say(category("backup"), said(StatusState::Failed, 7)).unwrap();
        let all: alloc::vec::Vec<_> =
            statuses.iter().map(|(name, said)| (name.as_str(), said.state, said.update)).collect();
        assert_eq!(all, [("backup", StatusState::Failed, 52), ("scrub", StatusState::Success, 51)]);
    }

    #[test]
    fn what_the_agent_says_itself_and_more_than_there_is_room_for_is_refused() {
        let mut statuses = LocalStatuses::default();
        for name in BUILT_IN {
            let refusal = statuses.say(category(name), said(StatusState::Success, 1)).unwrap_err();
            assert_eq!(refusal, StatusRefusal::BuiltIn(category(name)));
        }
        for number in 0..MAX_OWN {
            statuses.say(category(&alloc::format!("c{number}")), said(StatusState::Success, 1)).unwrap();
        }
        assert!(matches!(
            statuses.say(category("one-more"), said(StatusState::Success, 1)),
            Err(StatusRefusal::Full(_))
        ));
        statuses.say(category("c0"), said(StatusState::Failed, 1)).unwrap();
    }
}
