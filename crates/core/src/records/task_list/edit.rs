//! Changing a task list: later tasks only, and saying the same twice changes nothing.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::run::{MAX_TASKS, RunTask};

/// A change of a task list. Tasks that a node executes or has executed stay as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListEdit {
    /// Has these tasks follow one another at a place.
    Add {
        /// Number of later tasks before them: 0 makes them the next ones. `None` for the end of the list.
        at: Option<usize>,
        /// The tasks, in order.
        tasks: Vec<RunTask>,
    },
    /// Removes these tasks, each as `TASK` or `STAGE/TASK`: they must follow in this order among the later ones, though others
    /// may be between them. Of a task that is there several times, one is removed for each time that it is named.
    Remove(Vec<String>),
}

/// Why a task list is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListRefusal {
    /// The place is behind the end.
    #[error("position {at} is behind the end: {later} tasks follow")]
    BehindTheEnd {
        /// The place.
        at: usize,
        /// Number of later tasks.
        later: usize,
    },
    /// A task to remove is not a later one, at this place.
    #[error("{task} is not among the tasks that follow{after}: {later}")]
    NotLater {
        /// The task as it was named.
        task: String,
        /// The task that was to be removed before it; empty for the first one.
        after: String,
        /// The later tasks, as one line.
        later: String,
    },
    /// The node executes the task, or has executed it.
    #[error("{task} was begun already, and stays in the list")]
    Begun {
        /// The task as it was named.
        task: String,
    },
    /// The list would be too long.
    #[error("the list would have {0} tasks; at most {MAX_TASKS} are allowed")]
    TooLong(usize),
}

/// The list after an edit, of which the first `begun` tasks are executed or being executed; `None` if that is what it says already.
///
/// # Errors
/// [`ListRefusal`].
pub fn edited(list: &[RunTask], begun: usize, edit: &ListEdit) -> Result<Option<Vec<RunTask>>, ListRefusal> {
    let (fixed, later) = list.split_at(begun.min(list.len()));
    let later = match edit {
        ListEdit::Add { at, tasks } => added(later, *at, tasks)?,
        ListEdit::Remove(names) => removed(fixed, later, names)?,
    };
    let Some(later) = later else { return Ok(None) };
    let list: Vec<RunTask> = fixed.iter().cloned().chain(later).collect();
    if list.len() > MAX_TASKS {
        return Err(ListRefusal::TooLong(list.len()));
    }
    Ok(Some(list))
}

fn added(
    later: &[RunTask],
    at: Option<usize>,
    tasks: &[RunTask],
) -> Result<Option<Vec<RunTask>>, ListRefusal> {
    let at = match at {
        Some(at) if at > later.len() => return Err(ListRefusal::BehindTheEnd { at, later: later.len() }),
        // At the end they may stand already.
        None if later.ends_with(tasks) => return Ok(None),
        Some(at) => at,
        None => later.len(),
    };
    let (before, after) = later.split_at(at);
    if after.starts_with(tasks) {
        return Ok(None);
    }
    Ok(Some(before.iter().chain(tasks).chain(after).cloned().collect()))
}

fn removed(
    fixed: &[RunTask],
    later: &[RunTask],
    names: &[String],
) -> Result<Option<Vec<RunTask>>, ListRefusal> {
    let is_there = |name: &String| later.iter().any(|task| task.is_named(name));
    if !names.iter().any(is_there) {
        // Said again after it was done, unless what it names was never to be removed.
        let begun = names.iter().find(|name| fixed.iter().any(|task| task.is_named(name)));
        return begun.map_or(Ok(None), |task| Err(ListRefusal::Begun { task: task.clone() }));
    }
    let mut left = Vec::with_capacity(later.len());
    let mut wanted = names.iter().peekable();
    for task in later {
        if wanted.next_if(|name| task.is_named(name)).is_none() {
            left.push(task.clone());
        }
    }
    let Some(missing) = wanted.next() else { return Ok(Some(left)) };
    let index = names.iter().position(|name| core::ptr::eq(name, missing)).unwrap_or_default();
    let before = index.checked_sub(1).and_then(|index| names.get(index));
    let line: Vec<String> = later.iter().map(ToString::to_string).collect();
    Err(ListRefusal::NotLater {
        task: missing.clone(),
        after: before.map_or_else(String::new, |before| format!(" {before}")),
        later: line.join(", "),
    })
}

#[cfg(test)]
mod tests;
