//! The fields of tasks, stages and workflows.

use bellwether_core::words::filter::field::{FieldSpec, FieldTable, FieldType};

/// The fields of tasks.
pub static TASKS: FieldTable = FieldTable {
    plural: "tasks",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the task").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("digest", FieldType::Text, "SHA-256 of its content").at("/digest"),
        FieldSpec::recorded("used_by", FieldType::Names, "stages that name it").at("/used_by"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "digest"],
};

/// The fields of stages.
pub static STAGES: FieldTable = FieldTable {
    plural: "stages",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the stage").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("digest", FieldType::Text, "SHA-256 of its content").at("/digest"),
        FieldSpec::recorded("task", FieldType::Names, "its tasks").at("/spec/tasks"),
        FieldSpec::recorded("used_by", FieldType::Names, "workflows that name it").at("/used_by"),
        FieldSpec::recorded("missing", FieldType::Names, "what it names and does not exist").at("/missing"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "digest"],
};

/// The fields of workflows.
pub static WORKFLOWS: FieldTable = FieldTable {
    plural: "workflows",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the workflow").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("digest", FieldType::Text, "SHA-256 of its content").at("/digest"),
        FieldSpec::recorded("stage", FieldType::Names, "its stages").at("/spec/stages"),
        FieldSpec::recorded("task", FieldType::Names, "tasks of its stages").at("/tasks"),
        FieldSpec::recorded("missing", FieldType::Names, "what it or its stages name and does not exist")
            .at("/missing"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "digest"],
};

/// The fields of reactions.
pub static REACTIONS: FieldTable = FieldTable {
    plural: "reactions",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the reaction").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("on", FieldType::Text, "conditions that it is about").at("/on"),
        FieldSpec::recorded("workflow", FieldType::Text, "workflow that it runs").at("/workflow"),
        FieldSpec::recorded("nodes", FieldType::Text, "nodes that run it").at("/nodes"),
        FieldSpec::recorded("suspended", FieldType::Flag, "whether it starts nothing").at("/suspended"),
        FieldSpec::recorded("revision", FieldType::Number, "number of its last change").at("/revision"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "on", "workflow"],
};

/// The fields of schedules of workflows.
pub static SCHEDULES: FieldTable = FieldTable {
    plural: "schedules",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the schedule").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("workflow", FieldType::Text, "workflow that it runs").at("/workflow"),
        FieldSpec::recorded("filter", FieldType::Text, "nodes that run it").at("/filter"),
        FieldSpec::recorded("cron", FieldType::Text, "when it is due").at("/cron"),
        FieldSpec::recorded("time_zone", FieldType::Text, "time zone by whose clocks it is due")
            .at("/time_zone"),
        FieldSpec::recorded("suspended", FieldType::Flag, "whether due times pass without a run")
            .at("/suspended"),
        FieldSpec::changing("result", FieldType::Text, "`started`, `skipped` or `failed`, the last time")
            .at("/last/result"),
        FieldSpec::changing("run", FieldType::Text, "run that it started last").at("/last_run"),
        FieldSpec::recorded("revision", FieldType::Number, "number of its last change").at("/revision"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "workflow", "cron"],
};

/// The fields of runs of workflows.
pub static RUNS: FieldTable = FieldTable {
    plural: "runs",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the run").at("/name"),
        FieldSpec::recorded("workflow", FieldType::Text, "its workflow").at("/workflow"),
        FieldSpec::recorded("digest", FieldType::Text, "SHA-256 of the workflow then").at("/digest"),
        FieldSpec::recorded("nodes", FieldType::Number, "number of nodes that were chosen").at("/nodes"),
        FieldSpec::changing("state", FieldType::Text, "state, such as `in_progress` or `failed`")
            .at("/state")
            .word(),
        FieldSpec::changing("succeeded", FieldType::Number, "number of nodes that completed it")
            .at("/succeeded"),
        FieldSpec::changing("failed", FieldType::Number, "number of nodes on which it failed").at("/failed"),
        FieldSpec::recorded("by", FieldType::Text, "who started it").at("/by"),
        FieldSpec::recorded("reason", FieldType::Text, "reason that was given").at("/reason"),
        FieldSpec::recorded("rollback", FieldType::Text, "workflow that undoes it").at("/rollback"),
        FieldSpec::recorded("undoes", FieldType::Text, "run that it undoes").at("/undoes"),
        FieldSpec::changing("undone_by", FieldType::Text, "run that undoes it").at("/undone_by"),
        FieldSpec::changing("undo_state", FieldType::Text, "state of that run").at("/undo_state").word(),
        FieldSpec::recorded("started", FieldType::Number, "time of its start, in milliseconds since 1970")
            .at("/at_ms"),
        FieldSpec::changing("age", FieldType::Duration, "time since its start").at("/at_ms"),
    ],
    slim: &["name", "workflow", "state"],
};

/// The fields of jobs.
pub static JOBS: FieldTable = FieldTable {
    plural: "jobs",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the job, as `RUN/NODE/INDEX`").at("/name"),
        FieldSpec::recorded("run", FieldType::Text, "its run").at("/run"),
        FieldSpec::recorded("node", FieldType::Text, "its node").at("/node"),
        FieldSpec::recorded("index", FieldType::Number, "index of its task in the run, from 0").at("/index"),
        FieldSpec::recorded("stage", FieldType::Text, "its stage").at("/stage"),
        FieldSpec::recorded("task", FieldType::Text, "its task").at("/task"),
        FieldSpec::recorded("digest", FieldType::Text, "SHA-256 of the task").at("/digest"),
        FieldSpec::changing("state", FieldType::Text, "state, such as `running` or `failed`")
            .at("/state")
            .word(),
        FieldSpec::changing("exit", FieldType::Text, "how the task said that the run goes on").at("/exit"),
        FieldSpec::changing("exit_code", FieldType::Number, "exit code of its last script").at("/exit_code"),
        FieldSpec::changing("attempts", FieldType::Number, "times that it was begun").at("/attempts"),
        FieldSpec::changing(
            "started",
            FieldType::Number,
            "time at which it was last begun, in milliseconds since 1970",
        )
        .at("/started_ms"),
        FieldSpec::changing("age", FieldType::Duration, "time since it was last begun").at("/started_ms"),
        FieldSpec::changing("ended_age", FieldType::Duration, "time since it last ended").at("/ended_ms"),
    ],
    slim: &["name", "task", "state"],
};
