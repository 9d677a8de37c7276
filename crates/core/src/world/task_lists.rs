//! The tasks of runs, node by node.

use alloc::string::String;

use super::fleet::Fleet;
use crate::records::run::{Run, RunTask};
use crate::records::task_list::TaskList;
use crate::records::versioned::Versioned;
use crate::words::name::{EntityName, NodeName};

impl Fleet {
    /// The tasks of a run on a node: those of the run, unless people changed them there.
    #[must_use]
    pub fn tasks_of<'a>(&'a self, run: &'a Run, node: &NodeName) -> &'a [RunTask] {
        self.task_list(&run.name, node).map_or(&run.tasks, |list| &list.tasks)
    }

    /// The task list of a run that people changed on a node; `None` if they did not.
    #[must_use]
    pub fn task_list(&self, run: &EntityName, node: &NodeName) -> Option<&TaskList> {
        self.task_lists.get(&(run.clone(), node.clone())).map(|kept| &*kept.value)
    }

    /// The contents, by digest, in which the tasks of a run on a node are: first those of the run, as JSON.
    pub fn contents_of<'a>(&'a self, run: &'a Run, node: &NodeName) -> impl Iterator<Item = &'a String> {
        let changed = self.task_list(&run.name, node).map(|list| &list.contents);
        core::iter::once(&run.contents).chain(changed)
    }

    /// The task lists of a run that people changed, by node.
    pub fn lists_of<'a>(&'a self, run: &'a EntityName) -> impl Iterator<Item = &'a Versioned<TaskList>> {
        let from = self.task_lists.range((run.clone(), NodeName::first())..);
        from.take_while(move |((of, _), _)| of == run).map(|(_, kept)| kept)
    }
}
