//! What a machine says of itself in categories of the user's own: one state each, by the last saying.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::records::status::{BUILT_IN, MAX_CATEGORIES, State, is_built_in};
use crate::words::name::Category;
use crate::words::time::{Span, Timestamp};

/// Most categories of the user's own: the built-in ones have their place beside them.
pub const MAX_OWN: usize = MAX_CATEGORIES - BUILT_IN.len();

/// Every category that was ever said here, with its last saying.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statuses(BTreeMap<Category, Said>);

/// One saying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The state.
    pub state: State,
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
pub enum Refusal {
    /// Only the agent itself sets it.
    #[error("set {0}: the agent itself says how it stands, of what it does")]
    BuiltIn(Category),
    /// There is no room.
    #[error("set {0}: there are {MAX_OWN} categories already; use one of them")]
    Full(Category),
}

impl Statuses {
    /// What was kept.
    #[must_use]
    pub const fn new(said: BTreeMap<Category, Said>) -> Self {
        Self(said)
    }

    /// By category.
    pub fn iter(&self) -> impl Iterator<Item = (&Category, &Said)> {
        self.0.iter()
    }

    /// Takes in a saying; its number is found here. Numbers grow with time, so that a machine that has forgotten all of
    /// its own does not use one again.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is changed then.
    pub fn say(&mut self, category: Category, said: Said) -> Result<(), Refusal> {
        if is_built_in(&category) {
            return Err(Refusal::BuiltIn(category));
        }
        if self.0.len() >= MAX_OWN && !self.0.contains_key(&category) {
            return Err(Refusal::Full(category));
        }
        let last = self.0.values().map(|said| said.update).max().unwrap_or_default();
        let update = last.saturating_add(1).max(said.at.as_millis());
        self.0.insert(category, Said { update, ..said });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn category(text: &str) -> Category {
        Category::parse(text).unwrap()
    }

    fn said(state: State, at: u64) -> Said {
        Said { state, reason: String::new(), lifetime: None, at: Timestamp::from_millis(at), update: 0 }
    }

    #[test]
    fn the_last_saying_of_a_category_is_the_one_that_counts_and_each_has_its_own_number() {
        let mut statuses = Statuses::default();
        statuses.say(category("backup"), said(State::Running, 50)).unwrap();
        statuses.say(category("scrub"), said(State::Success, 50)).unwrap();
        // The clock of the machine was set back.
        statuses.say(category("backup"), said(State::Failed, 7)).unwrap();
        let all: alloc::vec::Vec<_> =
            statuses.iter().map(|(name, said)| (name.as_str(), said.state, said.update)).collect();
        assert_eq!(all, [("backup", State::Failed, 52), ("scrub", State::Success, 51)]);
    }

    #[test]
    fn what_the_agent_says_itself_and_more_than_there_is_room_for_is_refused() {
        let mut statuses = Statuses::default();
        for name in BUILT_IN {
            let refusal = statuses.say(category(name), said(State::Success, 1)).unwrap_err();
            assert_eq!(refusal, Refusal::BuiltIn(category(name)));
        }
        for number in 0..MAX_OWN {
            statuses.say(category(&alloc::format!("c{number}")), said(State::Success, 1)).unwrap();
        }
        assert!(matches!(statuses.say(category("one-more"), said(State::Success, 1)), Err(Refusal::Full(_))));
        statuses.say(category("c0"), said(State::Failed, 1)).unwrap();
    }
}
