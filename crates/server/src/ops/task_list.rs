//! Task lists of runs on nodes: what a node runs, and changing what it has not begun.

use std::collections::BTreeMap;

use bellwether_api::shape::{ShapeError, read, reason};
use bellwether_api::v1::task_list::{ListedTask, TaskList as Shape, TaskListEdit};
use bellwether_api::v1::workflow::{StageSpec, TaskSpec};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::definition::DefinitionId;
use bellwether_core::records::job::NodeJobs;
use bellwether_core::records::key::{AnyKey, Key, Record};
use bellwether_core::records::run::{MAX_RUN_BYTES, Run, RunTask};
use bellwether_core::records::target::AssignmentOutcome;
use bellwether_core::records::task_list::{ListEdit, TaskList, edited};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::feature::Feature;
use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName, StageName, TargetName, TaskName};
use bellwether_core::world::fleet::Fleet;
use serde_json::Value;

use super::definition::content_of;
use super::run::needs;
use super::{OpError, cause, event};
use crate::transactor::Transactor;

/// Most tasks that one change names.
const MAX_NAMES: usize = 256;

/// The tasks of a run on a node.
///
/// # Errors
/// [`OpError::NotFound`].
pub fn get(fleet: &Fleet, (name, node): (&EntityName, &NodeName)) -> Result<Shape, OpError> {
    let run = run_on(fleet, (name, node))?;
    Ok(shape(fleet, (run, node), fleet.tasks_of(run, node)))
}

/// Changes the tasks of a run that a node has not begun; answers the list.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when the run is over there, when a task was begun, or
/// when a definition is missing.
pub async fn edit(
    transactor: &Transactor,
    (namespace, actor): (&Namespace, &Actor),
    (name, node): (&EntityName, &NodeName),
    request: &TaskListEdit,
) -> Result<Shape, OpError> {
    let why = reason(&request.reason)?;
    checked(request)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let run = run_on(fleet, (name, node))?;
            let refused = |reason: String, hint: String| OpError::Refused {
                reason: format!("change the tasks of run {name} on node {node}: {reason}"),
                hint: Some(hint),
            };
            if let Some((reason, hint)) = is_over(fleet, (run, node)) {
                return Err(refused(reason, hint));
            }
            let list = fleet.tasks_of(run, node);
            let begun = begun(fleet, (name, node));
            let mut drafted = Draft::new(fleet, (run, node))?;
            let edit = drafted.read(request, list, begun)?;
            let see = || format!("see: bellwether job tasks list {node} --run {name}");
            if let Some((reason, hint)) = drafted.unknown(&edit)? {
                return Err(refused(reason, hint));
            }
            let tasks = edited(list, begun, &edit).map_err(|reason| refused(reason.to_string(), see()))?;
            let Some(tasks) = tasks else { return Ok((None, shape(fleet, (run, node), list))) };
            let shape = shape(fleet, (run, node), &tasks);
            let mut changed = event("run.tasks_changed", format!("entity/{name}"), cause(&why));
            (changed.before, changed.after) = (Some(line(list, begun)), Some(line(&tasks, begun)));
            changed.cause = format!("on node {node}: {}", changed.cause);
            let annotation = Annotation { by: actor.clone(), reason: why.clone(), at: now };
            let (list, guards) = drafted.finished(tasks, annotation)?;
            let writes = vec![Write::put(Record::TaskList(list))];
            Ok((Some(Changeset { writes, events: vec![changed] }.guarded_by(guards)), shape))
        })
        .await
}

fn checked(request: &TaskListEdit) -> Result<(), ShapeError> {
    match (request.add.len(), request.remove.len()) {
        (0, 0) => Err(ShapeError::at("add", "neither tasks to add nor tasks to remove are named")),
        (1.., 1..) => Err(ShapeError::at("remove", "not together with add; change the list twice")),
        (0, 1..) if request.at.is_some() => Err(ShapeError::at("at", "only with add")),
        (added, removed) if added.max(removed) > MAX_NAMES => {
            let field = if added > 0 { "add" } else { "remove" };
            Err(ShapeError::at(field, format!("more than {MAX_NAMES} tasks")))
        }
        (_, _) => Ok(()),
    }
}

/// The run of this name, if the node is one of its targets.
fn run_on<'a>(fleet: &'a Fleet, (name, node): (&EntityName, &NodeName)) -> Result<&'a Run, OpError> {
    let run = fleet.runs.get(name).ok_or_else(|| OpError::NotFound(format!("run {name}")))?;
    let is_target = fleet.entities_of_node.get(node).any(|of| of == name);
    is_target.then_some(&*run.value).ok_or_else(|| OpError::NotFound(format!("node {node} of run {name}")))
}

/// Why nothing follows any more on the node, with the next step; `None` if something may.
fn is_over(fleet: &Fleet, (run, node): (&Run, &NodeName)) -> Option<(String, String)> {
    let another = format!("start another run there: bellwether workflow run WORKFLOW -l 'name = \"{node}\"'");
    let jobs = jobs_of(fleet, (&run.name, node));
    let board = fleet.boards.get(&run.name)?;
    let target = board.target(&TargetName::from(node));
    let outcome = target.and_then(|target| target.state).map(|state| &state.outcome);
    let succeeded = matches!(outcome, Some(AssignmentOutcome::Succeeded { .. }));
    if succeeded || jobs.is_some_and(|jobs| jobs.closed) {
        return Some(("every task is complete there".to_owned(), another));
    }
    if board.rollout().is_none() {
        return Some(("the run has ended".to_owned(), another));
    }
    let report = fleet.reports.get(node).map(|kept| &kept.value);
    let knows = report.is_some_and(|report| report.features.has(Feature::TaskLists));
    let upgrade = "upgrade the agent, or wait until it has reported".to_owned();
    (!knows).then(|| ("its agent does not ask for changes of the list".to_owned(), upgrade))
}

fn jobs_of<'a>(fleet: &'a Fleet, (run, node): (&EntityName, &NodeName)) -> Option<&'a NodeJobs> {
    fleet.jobs.get(&(run.clone(), node.clone())).map(|kept| &*kept.value)
}

fn begun(fleet: &Fleet, of: (&EntityName, &NodeName)) -> usize {
    jobs_of(fleet, of).map_or(0, NodeJobs::begun)
}

fn shape(fleet: &Fleet, (run, node): (&Run, &NodeName), tasks: &[RunTask]) -> Shape {
    let jobs = jobs_of(fleet, (&run.name, node));
    let state = |index: usize| {
        let job = jobs?.jobs.iter().find(|job| usize::try_from(job.index) == Ok(index))?;
        Some(job.state.into())
    };
    let listed = |(index, task): (usize, &RunTask)| ListedTask {
        stage: task.stage.to_string(),
        task: task.task.to_string(),
        digest: task.digest.clone(),
        state: state(index),
    };
    Shape {
        run: run.name.to_string(),
        node: node.to_string(),
        tasks: tasks.iter().enumerate().map(listed).collect(),
        begun: u32::try_from(jobs.map_or(0, NodeJobs::begun)).unwrap_or(u32::MAX),
        changed: *tasks != *run.tasks,
    }
}

/// The tasks that can be changed, as one line.
fn line(tasks: &[RunTask], begun: usize) -> String {
    let later: Vec<String> = tasks.iter().skip(begun).map(ToString::to_string).collect();
    if later.is_empty() { "no tasks follow".to_owned() } else { later.join(", ") }
}

/// A changed task list as it comes about, and the records that it is made from.
struct Draft<'a> {
    fleet: &'a Fleet,
    run: &'a Run,
    node: &'a NodeName,
    /// The contents that the run does not have, by digest.
    contents: BTreeMap<String, Value>,
    guards: Vec<AnyKey>,
}

impl<'a> Draft<'a> {
    fn new(fleet: &'a Fleet, (run, node): (&'a Run, &'a NodeName)) -> Result<Self, OpError> {
        let before = fleet.task_list(&run.name, node).map(|list| serde_json::from_str(&list.contents));
        let contents =
            before.transpose().map_err(|error| ShapeError::at("contents", error))?.unwrap_or_default();
        let (name, target) = (run.name.clone(), TargetName::from(node));
        let guards = [
            Key::Jobs(name.clone(), node.clone()),
            Key::TaskList(name.clone(), node.clone()),
            Key::Target(name.clone(), target),
            Key::Progress(name.clone()),
            Key::Run(name),
        ];
        Ok(Self { fleet, run, node, contents, guards: guards.map(Into::into).to_vec() })
    }

    /// The edit of a request, in which added tasks have their content as it is now.
    fn read(&mut self, request: &TaskListEdit, list: &[RunTask], begun: usize) -> Result<ListEdit, OpError> {
        if request.add.is_empty() {
            return Ok(ListEdit::Remove(request.remove.clone()));
        }
        let at = request.at.map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        let place = at.map_or(list.len(), |at| begun.saturating_add(at)).min(list.len());
        let (before, after) = list.split_at(place);
        let mut neighbour = before.last().or(after.first()).cloned();
        let mut tasks = Vec::with_capacity(request.add.len());
        for name in &request.add {
            let task = self.task(name, neighbour.as_ref())?;
            neighbour = Some(task.clone());
            tasks.push(task);
        }
        Ok(ListEdit::Add { at, tasks })
    }

    /// Why the node's agent would not run a task that is added as it was written, with the next step; `None` if it would.
    fn unknown(&self, edit: &ListEdit) -> Result<Option<(String, String)>, OpError> {
        let ListEdit::Add { tasks, .. } = edit else { return Ok(None) };
        let features = self.fleet.reports.get(self.node).map(|kept| &kept.value.features);
        for task in tasks {
            let Some(content) = self.contents.get(&task.digest) else { continue };
            let spec: TaskSpec =
                serde_json::from_value(content.clone()).map_err(|error| ShapeError::at("contents", error))?;
            let lacks =
                needs(&spec).into_iter().find(|feature| !features.is_some_and(|all| all.has(*feature)));
            if let Some(feature) = lacks {
                let reason = format!("its agent does not know {feature}, which task {} needs", task.task);
                return Ok(Some((reason, "upgrade the agent".to_owned())));
            }
        }
        Ok(None)
    }

    /// A task by its name, of the stage that is named with it or that of its neighbour.
    fn task(&mut self, name: &str, neighbour: Option<&RunTask>) -> Result<RunTask, OpError> {
        let (stage, task) = match name.split_once('/') {
            Some((stage, task)) => (Some(read::<StageName>("add", stage)?), task),
            None => (None, name),
        };
        let task: TaskName = read("add", task)?;
        let (stage, profiles) = match (stage, neighbour) {
            (Some(stage), Some(neighbour)) if stage == neighbour.stage => (stage, neighbour.profiles.clone()),
            (Some(stage), _) => {
                let id = DefinitionId::Stage(stage.clone());
                let spec: StageSpec =
                    content_of(self.fleet, &id)?.ok_or_else(|| OpError::NotFound(id.to_string()))?;
                self.guards.push(Key::Definition(id).into());
                let profiles = spec.profiles.iter().map(|profile| read("profiles", profile));
                (stage, profiles.collect::<Result<Vec<_>, ShapeError>>()?)
            }
            (None, Some(neighbour)) => (neighbour.stage.clone(), neighbour.profiles.clone()),
            (None, None) => {
                return Err(ShapeError::at("add", "the list is empty; name the stage: STAGE/TASK").into());
            }
        };
        let id = DefinitionId::Task(task.clone());
        let content: Value = content_of(self.fleet, &id)?.ok_or_else(|| OpError::NotFound(id.to_string()))?;
        let digest =
            self.fleet.definitions.get(&id).map(|kept| kept.value.digest.clone()).unwrap_or_default();
        self.guards.push(Key::Definition(id).into());
        let idempotent = super::run::is_idempotent(&content);
        self.contents.insert(digest.clone(), content);
        Ok(RunTask { stage, task, digest, profiles, idempotent })
    }

    /// The record of the list with these tasks.
    fn finished(
        mut self,
        tasks: Vec<RunTask>,
        annotation: Annotation,
    ) -> Result<(TaskList, Vec<AnyKey>), OpError> {
        self.contents.retain(|digest, _| {
            tasks.iter().any(|task| task.digest == *digest)
                && !self.run.tasks.iter().any(|task| task.digest == *digest)
        });
        let contents = serde_json::to_string(&self.contents).map_err(|error| ShapeError::at("add", error))?;
        if contents.len() > MAX_RUN_BYTES {
            let reason =
                format!("the tasks have {} bytes; at most {MAX_RUN_BYTES} are allowed", contents.len());
            return Err(ShapeError::at("add", reason).into());
        }
        self.guards.sort_unstable();
        self.guards.dedup();
        let (run, node) = (self.run.name.clone(), self.node.clone());
        Ok((TaskList { run, node, tasks, contents, annotation }, self.guards))
    }
}
