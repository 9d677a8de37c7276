//! The fields of nodes.

use super::field::{FieldSpec, FieldTable, FieldType};

/// The fields of nodes. A bare name that is none of them is a label.
pub static NODES: FieldTable = FieldTable {
    plural: "nodes",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the node"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; `role` alone means `label.role`")
            .keyed(),
        FieldSpec::recorded(
            "fact",
            FieldType::Any,
            "fact of this name that the agent reported; `fact.disks.size_gib` are the sizes of all disks",
        )
        .keyed(),
        FieldSpec::recorded("param", FieldType::Any, "the node's own param of this key, or one that its cluster gives by roles, such as `cluster/leader`").keyed(),
        FieldSpec::recorded("profile", FieldType::Names, "profiles that the node reads"),
        FieldSpec::changing("cluster", FieldType::Text, "cluster that the node is a member of, or the manager"),
        FieldSpec::changing("version", FieldType::Text, "version of this entity that the node runs").keyed(),
        FieldSpec::changing(
            "assigned",
            FieldType::Text,
            "version of this entity that is assigned to the node",
        )
        .keyed(),
        FieldSpec::changing(
            "status",
            FieldType::Text,
            "state of the status of this category, such as `failed`",
        )
        .keyed(),
        FieldSpec::changing("service", FieldType::Names, "services that have an instance on the node"),
        FieldSpec::changing("agent_version", FieldType::Text, "version of the agent"),
        FieldSpec::changing("presence", FieldType::Text, "`up`, `suspect`, `unreachable` or `never`"),
        FieldSpec::changing(
            "logical",
            FieldType::Flag,
            "whether it is the manager of a cluster, and no machine",
        ),
        FieldSpec::changing("cordoned", FieldType::Flag, "whether the node is cordoned"),
        FieldSpec::changing("drained", FieldType::Flag, "whether the node is drained"),
        FieldSpec::changing(
            "paused",
            FieldType::Flag,
            "whether the node is paused, by itself or by a pause of nodes",
        ),
        FieldSpec::changing("runnable", FieldType::Flag, "whether the node begins runs of workflows"),
        FieldSpec::changing("decommissioned", FieldType::Flag, "whether the node is decommissioned"),
        FieldSpec::changing("age", FieldType::Duration, "time since the node joined"),
        FieldSpec::changing(
            "last_report",
            FieldType::Duration,
            "time since the last report that changed anything",
        ),
    ],
    slim: &["name", "presence", "cordoned", "paused", "agent_version"],
};
