//! The fields of clusters and of their members.

use bellwether_core::words::filter::field::{FieldSpec, FieldTable, FieldType};

/// The fields of clusters.
pub static CLUSTERS: FieldTable = FieldTable {
    plural: "clusters",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the cluster").at("/name"),
        FieldSpec::recorded("filter", FieldType::Text, "which nodes are its members").at("/filter"),
        FieldSpec::recorded("leaders", FieldType::Number, "number of leaders that it is to have")
            .at("/leaders"),
        FieldSpec::recorded("profile", FieldType::Text, "profile that its members share").at("/profile"),
        FieldSpec::recorded("manager_workflow", FieldType::Text, "workflow of its manager")
            .at("/manager_workflow"),
        FieldSpec::recorded(
            "mode",
            FieldType::Text,
            "what is done about its data stores: `active`, `observe`, `disabled`",
        )
        .at("/mode"),
        FieldSpec::changing("members", FieldType::Number, "number of its members").at("/members"),
        FieldSpec::changing("leader", FieldType::Names, "its present leaders").at("/leading"),
        FieldSpec::recorded("revision", FieldType::Number, "number of its last change").at("/revision"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "members", "profile"],
};

/// The fields of the members of a cluster.
pub static CLUSTER_MEMBERS: FieldTable = FieldTable {
    plural: "members",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the node").at("/node"),
        FieldSpec::changing("role", FieldType::Text, "`leader`, `worker` or `manager`").at("/role"),
        FieldSpec::changing("slot", FieldType::Number, "slot of a leader, from 0").at("/slot"),
        FieldSpec::changing("fence", FieldType::Number, "fencing number of the role").at("/fence"),
        FieldSpec::changing("presence", FieldType::Text, "`up`, `suspect`, `unreachable` or `never`")
            .at("/presence"),
    ],
    slim: &["name", "role"],
};

/// The fields of ensembles.
pub static ENSEMBLES: FieldTable = FieldTable {
    plural: "ensembles",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the ensemble").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("filter", FieldType::Text, "nodes that may have members").at("/filter"),
        FieldSpec::recorded("spread", FieldType::Text, "label by whose values members are spread")
            .at("/spread"),
        FieldSpec::recorded("mode", FieldType::Text, "`unmanaged`; none if it is managed").at("/mode"),
        FieldSpec::changing("wanted", FieldType::Number, "number of members that there are to be")
            .at("/status/wanted"),
        FieldSpec::changing("voting", FieldType::Number, "number of members that vote").at("/status/voting"),
        FieldSpec::changing("working", FieldType::Number, "number of members that vote and serve")
            .at("/status/working"),
        FieldSpec::changing(
            "complete",
            FieldType::Flag,
            "whether so many members vote, and no others are left",
        )
        .at("/status/is_complete"),
        FieldSpec::recorded("revision", FieldType::Number, "number of its last change").at("/revision"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "filter", "wanted", "voting"],
};
