//! Routes of tasks, stages and workflows.

use bellwether_api::paths;
use bellwether_api::v1::job::Job;
use bellwether_api::v1::job_log::{JobLog, LogChunk};
use bellwether_api::v1::node::Reason;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::reaction::test::{ReactionTest, TestReaction};
use bellwether_api::v1::reaction::{Reaction, ReactionSpec};
use bellwether_api::v1::run::{NewRun, Run, UndoRun};
use bellwether_api::v1::schedule::{Schedule, ScheduleSpec};
use bellwether_api::v1::task_list::{NextJob, TaskList, TaskListEdit};
use bellwether_api::v1::workflow::{Stage, StageSpec, Task, TaskSpec, Workflow, WorkflowSpec};
use bellwether_core::access::{ObjectKind, RequiredAccess, Right};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Post, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::{
    definitions, job_logs, jobs, reactions as reaction_handlers, runs as handlers,
    schedules as schedule_handlers,
};

/// Tasks.
pub(super) fn tasks(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Task);
    let (update, delete) =
        (RequiredAccess::update(ObjectKind::Task), RequiredAccess::delete(ObjectKind::Task));
    routes
        .add::<Empty, Page<Task>, _, _>(
            route(Get, paths::TASKS, get(), "List tasks").list(),
            definitions::tasks,
        )
        .add::<Empty, Task, _, _>(route(Get, paths::TASK, get(), "Get a task"), definitions::task)
        .add::<TaskSpec, Task, _, _>(
            route(Put, paths::TASK, update, "Create a task, or replace one").creates(),
            definitions::put_task,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::TASK, delete, "Delete a task"),
            definitions::delete_task,
        )
}

/// Stages.
pub(super) fn stages(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Stage);
    let (update, delete) =
        (RequiredAccess::update(ObjectKind::Stage), RequiredAccess::delete(ObjectKind::Stage));
    routes
        .add::<Empty, Page<Stage>, _, _>(
            route(Get, paths::STAGES, get(), "List stages of workflows").list(),
            definitions::stages,
        )
        .add::<Empty, Stage, _, _>(route(Get, paths::STAGE, get(), "Get a stage"), definitions::stage)
        .add::<StageSpec, Stage, _, _>(
            route(Put, paths::STAGE, update, "Create a stage, or replace one").creates(),
            definitions::put_stage,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::STAGE, delete, "Delete a stage"),
            definitions::delete_stage,
        )
}

/// Workflows.
pub(super) fn workflows(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Workflow);
    let (update, delete) =
        (RequiredAccess::update(ObjectKind::Workflow), RequiredAccess::delete(ObjectKind::Workflow));
    routes
        .add::<Empty, Page<Workflow>, _, _>(
            route(Get, paths::WORKFLOWS, get(), "List workflows").list(),
            definitions::workflows,
        )
        .add::<Empty, Workflow, _, _>(
            route(Get, paths::WORKFLOW, get(), "Get a workflow"),
            definitions::workflow,
        )
        .add::<WorkflowSpec, Workflow, _, _>(
            route(Put, paths::WORKFLOW, update, "Create a workflow, or replace one").creates(),
            definitions::put_workflow,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::WORKFLOW, delete, "Delete a workflow"),
            definitions::delete_workflow,
        )
}

/// Schedules of workflows.
pub(super) fn schedules(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Schedule);
    let (update, delete) =
        (RequiredAccess::update(ObjectKind::Schedule), RequiredAccess::delete(ObjectKind::Schedule));
    routes
        .add::<Empty, Page<Schedule>, _, _>(
            route(Get, paths::SCHEDULES, get(), "List schedules of workflows").list(),
            schedule_handlers::list,
        )
        .add::<Empty, Schedule, _, _>(
            route(Get, paths::SCHEDULE, get(), "Get a schedule, with what became of its last due time"),
            schedule_handlers::get,
        )
        .add::<ScheduleSpec, Schedule, _, _>(
            route(
                Put,
                paths::SCHEDULE,
                update,
                "Create a schedule, or change it; also needs the rights update run and get node",
            )
            .creates()
            .conditional(),
            schedule_handlers::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::SCHEDULE, delete, "Delete a schedule; its runs go on").conditional(),
            schedule_handlers::delete,
        )
}

/// Reactions to conditions.
pub(super) fn reactions(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Reaction);
    let (update, delete) =
        (RequiredAccess::update(ObjectKind::Reaction), RequiredAccess::delete(ObjectKind::Reaction));
    routes
        .add::<Empty, Page<Reaction>, _, _>(
            route(Get, paths::REACTIONS, get(), "List reactions to conditions").list(),
            reaction_handlers::list,
        )
        .add::<Empty, Reaction, _, _>(
            route(
                Get,
                paths::REACTION,
                get(),
                "Get a reaction, with the conditions that are true now and how it stands to each",
            ),
            reaction_handlers::get,
        )
        .add::<ReactionSpec, Reaction, _, _>(
            route(
                Put,
                paths::REACTION,
                update,
                "Create a reaction, or change it; also needs the rights update run and get node",
            )
            .creates()
            .conditional(),
            reaction_handlers::put,
        )
        .add::<TestReaction, ReactionTest, _, _>(
            route(
                Post,
                paths::REACTION_TEST,
                get(),
                "Ask what a reaction would do if a condition were true; nothing is started",
            ),
            reaction_handlers::test,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::REACTION, delete, "Delete a reaction; its runs go on").conditional(),
            reaction_handlers::delete,
        )
}

/// Runs of workflows.
pub(super) fn runs(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Run);
    routes
        .add::<Empty, Page<Run>, _, _>(
            route(Get, paths::RUNS, get(), "List runs of workflows").list().query(&["node"]),
            handlers::list,
        )
        .add::<NewRun, Run, _, _>(
            route(
                Post,
                paths::RUNS,
                RequiredAccess::Right(Right::update(ObjectKind::Run).partial()),
                "Run a workflow",
            ),
            handlers::start,
        )
        .add::<Empty, Run, _, _>(route(Get, paths::RUN, get(), "Get a run of a workflow"), handlers::get)
        .add::<UndoRun, Run, _, _>(
            route(
                Post,
                paths::RUN_UNDO,
                RequiredAccess::Right(Right::update(ObjectKind::Run).partial()),
                "Undo a run: abort it if it is in progress, and run what its workflow names for that where it began",
            ),
            handlers::undo,
        )
        .add::<Empty, NextJob, _, _>(
            route(
                Post,
                paths::JOB_INPUTS,
                RequiredAccess::OwnNode,
                "Begin a task of a run, and get what the node needs to run it",
            ),
            handlers::take,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::RUN, RequiredAccess::delete(ObjectKind::Run), "Delete a run that has ended"),
            handlers::delete,
        )
}

/// Jobs of runs. Reading them is a right on their run.
pub(super) fn jobs(routes: Routes) -> Routes {
    let get = || RequiredAccess::get(ObjectKind::Run);
    routes
        .add::<Empty, Page<Job>, _, _>(route(Get, paths::JOBS, get(), "List jobs of runs").list(), jobs::list)
        .add::<Empty, Job, _, _>(
            route(Get, paths::JOB, get(), "Get a job: a task of a run on a node"),
            jobs::get,
        )
        .add::<Reason, Empty, _, _>(
            route(
                Post,
                paths::JOB_RETRY,
                RequiredAccess::update(ObjectKind::Run),
                "Begin the task of a run again that failed on a node",
            )
            .optional_body(),
            jobs::retry,
        )
        .add::<Empty, TaskList, _, _>(
            route(Get, paths::TASK_LIST, get(), "Get the tasks of a run on a node"),
            jobs::tasks,
        )
        .add::<TaskListEdit, TaskList, _, _>(
            route(
                Post,
                paths::TASK_LIST,
                RequiredAccess::update(ObjectKind::Run),
                "Add tasks to a run on a node, or remove some that it has not begun",
            ),
            jobs::edit_tasks,
        )
}

/// Logs of jobs. Reading one is a right on its run and its node.
pub(super) fn job_logs(routes: Routes) -> Routes {
    routes
        .add::<Empty, JobLog, _, _>(
            route(
                Get,
                paths::JOB_LOG,
                RequiredAccess::get(ObjectKind::Run),
                "Read the log of a job from its node; needs the right to get the node too",
            )
            .query(&["offset", "wait"])
            .asks_node(),
            job_logs::read,
        )
        .add::<LogChunk, Empty, _, _>(
            route(
                Post,
                paths::NODE_JOB_LOGS,
                RequiredAccess::OwnNode,
                "Send a part of the log of a job that a reader waits for",
            ),
            job_logs::put,
        )
}
