//! The fields of rollouts and their targets.

use bellwether_core::words::filter::field::{FieldSpec, FieldTable, FieldType};

/// The fields of rollouts.
pub static ROLLOUTS: FieldTable = FieldTable {
    plural: "rollouts",
    fields: &[
        FieldSpec::recorded("number", FieldType::Number, "number of the rollout").at("/number"),
        FieldSpec::recorded("version", FieldType::Text, "version that it rolls out").at("/version"),
        FieldSpec::recorded("from", FieldType::Text, "version before").at("/from"),
        FieldSpec::recorded("kind", FieldType::Text, "kind of the request").at("/kind").word(),
        FieldSpec::recorded("by", FieldType::Text, "who requested it").at("/by"),
        FieldSpec::recorded("reason", FieldType::Text, "reason that was given").at("/reason"),
        FieldSpec::changing("state", FieldType::Text, "state, such as `in_progress` or `failed`")
            .at("/status/state")
            .word(),
        FieldSpec::changing("direction", FieldType::Text, "whether it rolls out or back")
            .at("/direction")
            .word(),
        FieldSpec::changing("judgement", FieldType::Text, "verdict on its version").at("/judgement").word(),
        FieldSpec::changing("undone", FieldType::Flag, "whether somebody undid it").at("/undone"),
        FieldSpec::changing("ended", FieldType::Flag, "whether it has ended").at("/ended_ms"),
        FieldSpec::recorded("started", FieldType::Number, "time of its start, in milliseconds since 1970")
            .at("/started_ms"),
        FieldSpec::changing("age", FieldType::Duration, "time since its start").at("/started_ms"),
        FieldSpec::changing("ended_age", FieldType::Duration, "time since its end").at("/ended_ms"),
    ],
    slim: &["number", "version", "state", "by"],
};

/// The fields of targets.
pub static TARGETS: FieldTable = FieldTable {
    plural: "targets",
    fields: &[
        FieldSpec::changing("name", FieldType::Text, "name of the target").at("/name"),
        FieldSpec::changing("phase", FieldType::Text, "phase, such as `soaking` or `failed`")
            .at("/phase")
            .word(),
        FieldSpec::changing("assigned", FieldType::Text, "version that is assigned").at("/assigned"),
        FieldSpec::changing("running", FieldType::Text, "version that runs").at("/running"),
        FieldSpec::changing("rollout", FieldType::Number, "number of the rollout that assigned it")
            .at("/rollout"),
        FieldSpec::changing("presence", FieldType::Text, "`up`, `suspect`, `unreachable` or `never`")
            .at("/presence"),
        FieldSpec::changing("reason", FieldType::Text, "why it is in its phase").at("/reason"),
        FieldSpec::changing("age", FieldType::Duration, "time in its phase").at("/since_ms"),
        FieldSpec::changing("assigned_age", FieldType::Duration, "time since the assignment")
            .at("/assigned_at_ms"),
    ],
    slim: &["name", "phase", "assigned", "running"],
};
