//! Statuses that users set on a machine: one state per category, by the last update.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::records::status::{BUILT_IN, MAX_CATEGORIES, StatusState, is_built_in};
use crate::words::name::Category;
use crate::words::time::{Span, Timestamp};

/// Most categories set by users: the built-in ones count separately.
pub const MAX_OWN: usize = MAX_CATEGORIES - BUILT_IN.len();

/// Every category that was set here and not deleted, with its last update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalStatuses(BTreeMap<Category, StatusUpdate>);

/// One update of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The state.
    pub state: StatusState,
    /// The reason, in one line; may be empty.
    pub reason: String,
    /// How long it is valid without a further update; `None` for ever.
    pub lifetime: Option<Span>,
    /// Time of the update, by this machine's clock: used only to compute its age.
    pub at: Timestamp,
    /// Its number; no other update of this machine has it.
    pub update: u64,
}

/// Why an update is refused. The text follows "cannot ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatusRefusal {
    /// The agent sets this category itself.
    #[error("set {0}: only the agent itself sets this category")]
    BuiltIn(Category),
    /// The machine has [`MAX_OWN`] categories already.
    #[error("set {0}: there are {MAX_OWN} categories already; reuse one of them")]
    Full(Category),
    /// No program of this machine has set the category.
    #[error("delete the status {0}: no program of this machine has set it")]
    Unknown(Category),
}

impl LocalStatuses {
    /// The stored statuses.
    #[must_use]
    pub const fn new(said: BTreeMap<Category, StatusUpdate>) -> Self {
        Self(said)
    }

    /// All statuses, by category.
    pub fn iter(&self) -> impl Iterator<Item = (&Category, &StatusUpdate)> {
        self.0.iter()
    }

    /// Applies an update and assigns its number. Numbers grow with time, so that a machine that lost its
    /// statuses does not use a number again.
    ///
    /// # Errors
    /// [`StatusRefusal`]; the statuses are unchanged then.
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

    /// Deletes the status of a category.
    ///
    /// # Errors
    /// [`StatusRefusal`]; the statuses are unchanged then.
    pub fn delete(&mut self, category: &Category) -> Result<(), StatusRefusal> {
        if is_built_in(category) {
            return Err(StatusRefusal::BuiltIn(category.clone()));
        }
        match self.0.remove(category) {
            Some(_) => Ok(()),
            None => Err(StatusRefusal::Unknown(category.clone())),
        }
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
