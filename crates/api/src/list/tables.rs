//! The fields of everything that is listed, except nodes. The first field of each table names the thing.

mod clusters;
mod rollouts;
mod workflows;

use bellwether_core::words::filter::field::{FieldSpec, FieldTable, FieldType};

pub use self::clusters::{CLUSTER_MEMBERS, CLUSTERS, ENSEMBLES};
pub use self::rollouts::{ROLLOUTS, TARGETS};
pub use self::workflows::{JOBS, REACTIONS, RUNS, SCHEDULES, STAGES, TASKS, WORKFLOWS};

/// The fields of entities.
pub static ENTITIES: FieldTable = FieldTable {
    plural: "entities",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the entity").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("kind", FieldType::Text, "`version`, `profile` or `action`").at("/kind"),
        FieldSpec::recorded("selector", FieldType::Text, "selector of its nodes, as a text").at("/selector"),
        FieldSpec::recorded("profile", FieldType::Text, "profile whose revisions it rolls out")
            .at("/profile"),
        FieldSpec::recorded("action", FieldType::Text, "action that it runs").at("/action"),
        FieldSpec::recorded("owner", FieldType::Text, "owner").at("/owner"),
        FieldSpec::recorded("external", FieldType::Flag, "whether controllers report its targets")
            .at("/external"),
        FieldSpec::recorded("held", FieldType::Flag, "whether somebody holds it").at("/hold"),
        FieldSpec::recorded("requested", FieldType::Text, "requested version").at("/requested/version"),
        FieldSpec::recorded("requested_by", FieldType::Text, "who requested it").at("/requested/by"),
        FieldSpec::recorded("requested_age", FieldType::Duration, "time since the request")
            .at("/requested/at_ms"),
    ],
    slim: &["name", "kind", "selector", "requested"],
};

/// The fields of services.
pub static SERVICES: FieldTable = FieldTable {
    plural: "services",
    fields: &[
        FieldSpec::changing("name", FieldType::Text, "name of the service").at("/name"),
        FieldSpec::changing("addressable", FieldType::Number, "number of instances that can be addressed")
            .at("/addressable"),
        FieldSpec::changing("functional", FieldType::Number, "number of healthy instances").at("/functional"),
        FieldSpec::changing("tag", FieldType::Names, "tags of its instances").at("/tags"),
    ],
    slim: &["name", "addressable", "functional"],
};

/// The fields of events.
pub static EVENTS: FieldTable = FieldTable {
    plural: "events",
    fields: &[
        FieldSpec::recorded("seq", FieldType::Number, "number of the event").at("/seq"),
        FieldSpec::recorded("kind", FieldType::Text, "kind, such as `rollout.started`").at("/kind"),
        FieldSpec::recorded("actor", FieldType::Text, "who caused it").at("/actor"),
        FieldSpec::recorded("subject", FieldType::Text, "what it is about, such as `node/web-1`")
            .at("/subject"),
        FieldSpec::recorded("before", FieldType::Text, "value before").at("/before"),
        FieldSpec::recorded("after", FieldType::Text, "value after").at("/after"),
        FieldSpec::recorded("cause", FieldType::Text, "why it happened").at("/cause"),
        FieldSpec::recorded("caused_by", FieldType::Number, "number of the event that led to it")
            .at("/caused_by"),
        FieldSpec::changing("age", FieldType::Duration, "time since it happened").at("/time_ms"),
    ],
    slim: &["seq", "kind", "subject", "cause"],
};

/// The fields of sinks of events.
pub static SINKS: FieldTable = FieldTable {
    plural: "sinks",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the sink").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("filter", FieldType::Text, "events that it has").at("/filter"),
        FieldSpec::recorded("url", FieldType::Text, "URL of its webhook").at("/webhook/url"),
        FieldSpec::recorded("path", FieldType::Text, "path of its file").at("/file/path"),
        FieldSpec::recorded("disabled", FieldType::Flag, "whether a person disabled it").at("/disabled"),
        FieldSpec::changing("delivered_to", FieldType::Number, "number of the last event that is done with")
            .at("/status/state/delivered_to"),
        FieldSpec::changing(
            "undelivered",
            FieldType::Number,
            "number of events still to be sent, at most 1,000",
        )
        .at("/status/undelivered"),
        FieldSpec::changing(
            "dead_lettered",
            FieldType::Number,
            "number of dead letters since it was created",
        )
        .at("/status/state/dead_lettered"),
        FieldSpec::changing("waits_for", FieldType::Text, "why it does not send").at("/status/waits_for"),
        FieldSpec::recorded("revision", FieldType::Number, "number of its last change").at("/revision"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "filter", "waits_for"],
};

/// The fields of freezes.
pub static FREEZES: FieldTable = FieldTable {
    plural: "freezes",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the freeze").at("/freeze/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/freeze/labels")
            .keyed(),
        FieldSpec::recorded("entity", FieldType::Text, "entity that it covers").at("/freeze/entity"),
        FieldSpec::recorded("targets", FieldType::Text, "selector of the targets that it covers, as a text")
            .at("/freeze/targets"),
        FieldSpec::recorded("kind", FieldType::Text, "what it prevents").at("/freeze/kind"),
        FieldSpec::recorded("by", FieldType::Text, "who set it").at("/freeze/by"),
        FieldSpec::recorded("reason", FieldType::Text, "reason that was given").at("/freeze/reason"),
        FieldSpec::recorded("global", FieldType::Flag, "whether it covers every namespace").at("/global"),
        FieldSpec::changing("expired", FieldType::Flag, "whether it has ended by itself").at("/expired"),
        FieldSpec::changing("age", FieldType::Duration, "time since it was set").at("/freeze/at_ms"),
    ],
    slim: &["name", "kind", "entity", "targets", "by"],
};

/// The fields of pauses.
pub static PAUSES: FieldTable = FieldTable {
    plural: "pauses",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the pause").at("/pause/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/pause/labels")
            .keyed(),
        FieldSpec::recorded("nodes", FieldType::Text, "selector of the nodes that it covers, as a text")
            .at("/pause/nodes"),
        FieldSpec::recorded("by", FieldType::Text, "who set it").at("/pause/annotation/by"),
        FieldSpec::recorded("reason", FieldType::Text, "reason that was given")
            .at("/pause/annotation/reason"),
        FieldSpec::changing("held", FieldType::Number, "number of nodes that it covers now").at("/held"),
        FieldSpec::changing("age", FieldType::Duration, "time since it was set")
            .at("/pause/annotation/at_ms"),
    ],
    slim: &["name", "nodes", "held", "by"],
};

/// The fields of slots.
pub static SLOTS: FieldTable = FieldTable {
    plural: "slots",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the slot").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("capacity", FieldType::Number, "most holders at once").at("/capacity"),
        FieldSpec::recorded("configured", FieldType::Flag, "whether somebody set its capacity and lease")
            .at("/configured"),
        FieldSpec::changing("holder", FieldType::Names, "names of its holders").at("/holders"),
    ],
    slim: &["name", "capacity", "holder"],
};

/// The fields of profiles.
pub static PROFILES: FieldTable = FieldTable {
    plural: "profiles",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the profile").at("/name"),
        FieldSpec::recorded("label", FieldType::Label, "label of this key; a bare name means the label too")
            .at("/labels")
            .keyed(),
        FieldSpec::recorded("revision", FieldType::Number, "number of the newest revision").at("/revision"),
        FieldSpec::recorded("by", FieldType::Text, "who wrote it").at("/by"),
        FieldSpec::recorded("reason", FieldType::Text, "reason that was given").at("/reason"),
        FieldSpec::changing("age", FieldType::Duration, "time since it was written").at("/at_ms"),
    ],
    slim: &["name", "revision", "by"],
};

/// The fields of namespaces.
pub static NAMESPACES: FieldTable = FieldTable {
    plural: "namespaces",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the namespace").at("/name"),
        FieldSpec::changing("nodes", FieldType::Number, "number of nodes").at("/nodes"),
        FieldSpec::changing("expected", FieldType::Number, "number of nodes that are expected")
            .at("/expected"),
        FieldSpec::changing("entities", FieldType::Number, "number of entities").at("/entities"),
        FieldSpec::changing("profiles", FieldType::Number, "number of profiles").at("/profiles"),
        FieldSpec::changing("freezes", FieldType::Number, "number of freezes").at("/freezes"),
        FieldSpec::changing("pauses", FieldType::Number, "number of pauses").at("/pauses"),
        FieldSpec::changing("slots", FieldType::Number, "number of slots").at("/slots"),
        FieldSpec::changing("filters", FieldType::Number, "number of saved filters").at("/filters"),
        FieldSpec::changing("clusters", FieldType::Number, "number of clusters").at("/clusters"),
        FieldSpec::changing("schedules", FieldType::Number, "number of schedules").at("/schedules"),
        FieldSpec::changing("reactions", FieldType::Number, "number of reactions").at("/reactions"),
        FieldSpec::changing("sinks", FieldType::Number, "number of sinks of events").at("/sinks"),
        FieldSpec::changing("params", FieldType::Number, "number of declared params").at("/params"),
        FieldSpec::changing("secrets", FieldType::Number, "number of secrets").at("/secrets"),
        FieldSpec::changing("definitions", FieldType::Number, "number of tasks, stages and workflows")
            .at("/definitions"),
    ],
    slim: &["name", "nodes", "entities"],
};

/// The fields of tokens.
pub static TOKENS: FieldTable = FieldTable {
    plural: "tokens",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the token").at("/name"),
        FieldSpec::recorded("role", FieldType::Names, "roles").at("/roles"),
        FieldSpec::recorded("only_in", FieldType::Text, "namespaces that it is limited to").at("/only_in"),
        FieldSpec::changing("age", FieldType::Duration, "time since it was created").at("/created_at_ms"),
        FieldSpec::recorded("expires", FieldType::Flag, "whether it expires by itself").at("/expires_at_ms"),
    ],
    slim: &["name", "role"],
};

/// The fields of entries of the audit log.
pub static AUDIT: FieldTable = FieldTable {
    plural: "audit entries",
    fields: &[
        FieldSpec::recorded("id", FieldType::Number, "number of the entry").at("/id"),
        FieldSpec::changing("age", FieldType::Duration, "time since the request").at("/time_ms"),
        FieldSpec::recorded("server", FieldType::Text, "server that received it").at("/server"),
        FieldSpec::recorded("actor", FieldType::Text, "who asked").at("/actor"),
        FieldSpec::recorded("role", FieldType::Names, "roles of the token").at("/roles"),
        FieldSpec::recorded("address", FieldType::Text, "address and port of the client").at("/address"),
        FieldSpec::recorded("method", FieldType::Text, "method of the request").at("/method"),
        FieldSpec::recorded("path", FieldType::Text, "path of the request").at("/path"),
        FieldSpec::recorded("right", FieldType::Text, "right that it needs").at("/right"),
        FieldSpec::recorded("outcome", FieldType::Text, "`allowed` or `denied`").at("/outcome"),
        FieldSpec::recorded("status", FieldType::Number, "status code of the answer").at("/status"),
    ],
    slim: &["id", "actor", "right", "outcome", "status"],
};

/// The fields of declared params.
pub static PARAMS: FieldTable = FieldTable {
    plural: "params",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "key of the param").at("/key"),
        FieldSpec::recorded("schema", FieldType::Any, "JSON Schema of its values").at("/schema"),
        FieldSpec::recorded("default", FieldType::Any, "default").at("/default"),
        FieldSpec::recorded("by", FieldType::Text, "who declared it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "default"],
};

/// The fields of saved filters.
pub static FILTERS: FieldTable = FieldTable {
    plural: "filters",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the filter").at("/name"),
        FieldSpec::recorded("of", FieldType::Text, "list that it is of, such as `nodes`").at("/of"),
        FieldSpec::recorded("filter", FieldType::Text, "the filter itself").at("/filter"),
        FieldSpec::recorded("revision", FieldType::Number, "number of its last change").at("/revision"),
        FieldSpec::recorded("description", FieldType::Text, "what it is for").at("/description"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "of", "filter"],
};

/// The fields of secrets.
pub static SECRETS: FieldTable = FieldTable {
    plural: "secrets",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the secret").at("/name"),
        FieldSpec::recorded("revision", FieldType::Number, "number of its last change").at("/revision"),
        FieldSpec::recorded("provider", FieldType::Text, "provider that has its value").at("/provider"),
        FieldSpec::recorded("description", FieldType::Text, "what it is for").at("/description"),
        FieldSpec::recorded("by", FieldType::Text, "who changed it last").at("/by"),
        FieldSpec::changing("age", FieldType::Duration, "time since then").at("/at_ms"),
    ],
    slim: &["name", "revision"],
};

/// The fields of roles.
pub static ROLES: FieldTable = FieldTable {
    plural: "roles",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, "name of the role").at("/name"),
        FieldSpec::recorded("built_in", FieldType::Flag, "whether every installation has it").at("/built_in"),
        FieldSpec::changing("tokens", FieldType::Number, "number of tokens that have it").at("/tokens"),
    ],
    slim: &["name", "built_in"],
};

/// The fields of join tokens.
pub static JOIN_TOKENS: FieldTable = FieldTable {
    plural: "join tokens",
    fields: &[
        FieldSpec::recorded("id", FieldType::Text, "id of the join token").at("/id"),
        FieldSpec::recorded("joins_as", FieldType::Text, "`node` or `server`").at("/joins_as"),
        FieldSpec::recorded("namespace", FieldType::Text, "namespace that the node joins").at("/namespace"),
        FieldSpec::recorded("node", FieldType::Text, "name that the node must have").at("/node"),
        FieldSpec::recorded("created_by", FieldType::Text, "who created it").at("/created_by"),
        FieldSpec::changing("used", FieldType::Flag, "whether it is used up").at("/used_by"),
        FieldSpec::changing("used_by", FieldType::Text, "node that used it").at("/used_by"),
    ],
    slim: &["id", "namespace", "used"],
};

/// The fields of silent nodes.
pub static SILENT_NODES: FieldTable = FieldTable {
    plural: "silent nodes",
    fields: &[
        FieldSpec::changing("name", FieldType::Text, "name of the node").at("/node"),
        FieldSpec::changing("state", FieldType::Text, "`expected`, `never`, `suspect` or `unreachable`")
            .at("/state"),
        FieldSpec::changing("expected", FieldType::Flag, "whether it is expected and has not joined")
            .at("/expected"),
        FieldSpec::changing("age", FieldType::Duration, "time in its state").at("/since_ms"),
    ],
    slim: &["name", "state"],
};

/// Every table of this file.
pub static ALL: [&FieldTable; 29] = [
    &RUNS,
    &SCHEDULES,
    &REACTIONS,
    &JOBS,
    &TASKS,
    &STAGES,
    &WORKFLOWS,
    &CLUSTERS,
    &CLUSTER_MEMBERS,
    &ENSEMBLES,
    &FILTERS,
    &PARAMS,
    &SECRETS,
    &AUDIT,
    &ROLES,
    &ENTITIES,
    &SERVICES,
    &ROLLOUTS,
    &TARGETS,
    &EVENTS,
    &FREEZES,
    &PAUSES,
    &SLOTS,
    &PROFILES,
    &NAMESPACES,
    &TOKENS,
    &JOIN_TOKENS,
    &SILENT_NODES,
    &SINKS,
];

#[cfg(test)]
mod tests {
    use bellwether_core::words::filter::nodes::NODES;
    use bellwether_core::words::filter::{Filter, read_field};

    use super::*;

    #[test]
    fn the_guide_lists_every_field() {
        let page = include_str!("../../../../docs/guide/filters.md");
        for table in ALL.into_iter().chain([&NODES]) {
            for spec in table.fields {
                let kind = match spec.kind {
                    FieldType::Text => "text",
                    FieldType::Label => "label",
                    FieldType::Any => "JSON",
                    FieldType::Names => "names",
                    FieldType::Flag => "flag",
                    FieldType::Number => "number",
                    FieldType::Duration => "duration",
                };
                let key = if spec.is_keyed { ".KEY" } else { "" };
                let row = format!("| `{}{key}` | {kind} | {} |", spec.name, spec.doc);
                assert!(page.contains(&row), "the guide does not contain: {row}");
            }
        }
    }

    #[test]
    fn the_filters_in_the_guide_are_valid() {
        let page = include_str!("../../../../docs/guide/filters.md");
        let block = page.split("```filters\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        for filter in block.lines() {
            assert!(Filter::parse(filter, &NODES).is_ok(), "{filter}");
        }
        assert!(block.lines().count() > 5);
    }

    #[test]
    fn slim_fields_exist_and_every_field_has_a_pointer() {
        for table in ALL {
            for name in table.slim {
                assert!(read_field(name, table).is_ok(), "{} {name}", table.plural);
            }
            for spec in table.fields {
                assert!(spec.pointer.starts_with('/'), "{} {}", table.plural, spec.name);
            }
        }
    }
}
