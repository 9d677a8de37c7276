//! Routes of nodes: for people, and for their agents.

use bellwether_api::paths;
use bellwether_api::v1::access::{Joined, Renew};
use bellwether_api::v1::ensemble::certificates::{MemberCertificateRequest, MemberCertificates};
use bellwether_api::v1::ensemble::keys::{MemberKeys, MemberKeysRequest, OsdKeys, OsdKeysRequest};
use bellwether_api::v1::ensemble::passwords::{MemberPasswords, MemberPasswordsRequest};
use bellwether_api::v1::ensemble::reports::NodeMembers;
use bellwether_api::v1::facts::{NodeFacts, RequestedRescan};
use bellwether_api::v1::failure::Failures;
use bellwether_api::v1::log::{NewLog, NodeLog};
use bellwether_api::v1::node::{AllowedServices, DrainRequest, LabelChange, NodeView, Reason, SilentNode};
use bellwether_api::v1::node_params::{ExplainedParam, NodeParams, NodeProfiles};
use bellwether_api::v1::not_runnable::Runnable;
use bellwether_api::v1::order::OrderPoll;
use bellwether_api::v1::overview::Overview;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::pause::Resumed;
use bellwether_api::v1::probes::NodeProbes;
use bellwether_api::v1::process_log::ProcessLog;
use bellwether_api::v1::profile::{ParamsPatch, ParamsSpec};
use bellwether_api::v1::registrations::ServiceRegistrations;
use bellwether_api::v1::report::Report;
use bellwether_api::v1::status::Status;
use bellwether_core::access::{ObjectKind, RequiredAccess, Right};
use utoipa::openapi::path::HttpMethod::{Delete, Get, Patch, Post, Put};

use super::super::routes::{Empty, Routes, route};
use super::super::{
    access, expected, failures, logs, node_params, nodes, overview, process_logs, reports, services, sync,
};

/// Params of nodes.
pub(super) fn params(routes: Routes) -> Routes {
    routes
        .add::<Empty, NodeParams, _, _>(
            route(Get, paths::NODE_PARAMS, RequiredAccess::get(ObjectKind::Node), "Get the params of a node"),
            node_params::get,
        )
        .add::<ParamsPatch, NodeParams, _, _>(
            route(
                Patch,
                paths::NODE_PARAMS,
                RequiredAccess::Right(Right::update_field(ObjectKind::Node, "/params").partial()),
                "Change single params of a node",
            )
            .patches()
            .query(&["reason"])
            .conditional(),
            node_params::patch,
        )
        .add::<ParamsSpec, NodeParams, _, _>(
            route(
                Put,
                paths::NODE_PARAMS,
                RequiredAccess::update_field(ObjectKind::Node, "/params"),
                "Set all params of a node",
            )
            .conditional(),
            node_params::put,
        )
        .add::<Empty, Page<ExplainedParam>, _, _>(
            route(
                Get,
                paths::NODE_PARAMS_EXPLAINED,
                RequiredAccess::get(ObjectKind::Node),
                "Explain where the params of a node come from",
            )
            .query(&["key", "entity"]),
            node_params::explain,
        )
        .add::<NodeProfiles, NodeParams, _, _>(
            route(
                Put,
                paths::NODE_PROFILES,
                RequiredAccess::update_field(ObjectKind::Node, "/profiles"),
                "Set the profiles that a node reads",
            )
            .conditional(),
            node_params::put_profiles,
        )
}

/// Facts and data stores of nodes.
pub(super) fn facts(routes: Routes) -> Routes {
    routes
        .add::<Empty, RequestedRescan, _, _>(
            route(
                Post,
                paths::NODE_RESCAN,
                RequiredAccess::update_field(ObjectKind::Node, "/rescan"),
                "Request a rescan of a node's facts; the agent does it with its next order",
            ),
            nodes::rescan,
        )
        .add::<NodeFacts, Empty, _, _>(
            route(Put, paths::NODE_FACTS, RequiredAccess::OwnNode, "Report the facts of a node"),
            nodes::put_facts,
        )
        .add::<NodeProbes, Empty, _, _>(
            route(Put, paths::NODE_PROBES, RequiredAccess::OwnNode, "Report the data stores of a node"),
            nodes::put_probes,
        )
}

/// The members of ensembles that nodes have.
pub(super) fn members(routes: Routes) -> Routes {
    routes
        .add::<NodeMembers, Empty, _, _>(
            route(
                Put,
                paths::NODE_MEMBERS,
                RequiredAccess::OwnNode,
                "Report the members of ensembles that a node has",
            ),
            nodes::put_members,
        )
        .add::<MemberCertificateRequest, MemberCertificates, _, _>(
            route(
                Post,
                paths::MEMBER_CERTIFICATE,
                RequiredAccess::OwnNode,
                "Issue the certificates of the member that a node has of an ensemble",
            ),
            nodes::certify_member,
        )
        .add::<MemberKeysRequest, MemberKeys, _, _>(
            route(
                Post,
                paths::MEMBER_KEYS,
                RequiredAccess::OwnNode,
                "Get the keys of the member that a node has of an ensemble",
            ),
            nodes::member_keys,
        )
        .add::<MemberPasswordsRequest, MemberPasswords, _, _>(
            route(
                Post,
                paths::MEMBER_PASSWORDS,
                RequiredAccess::OwnNode,
                "Get what the member that a node has of an ensemble needs to know its clients and the other members",
            ),
            nodes::member_passwords,
        )
        .add::<OsdKeysRequest, OsdKeys, _, _>(
            route(
                Post,
                paths::OSD_KEYS,
                RequiredAccess::OwnNode,
                "Get the keys of an OSD that a node has of an ensemble",
            ),
            nodes::osd_keys,
        )
}

/// Nodes, for people.
pub(super) fn nodes(routes: Routes) -> Routes {
    routes
        .add::<Empty, Overview, _, _>(
            route(Get, paths::STATUS, RequiredAccess::Right(Right::get(ObjectKind::Node).of_all()), "Summarize a namespace"),
            overview::get,
        )
        .add::<Empty, Page<NodeView>, _, _>(
            route(Get, paths::NODES, RequiredAccess::get(ObjectKind::Node), "List nodes").list().query(&["decommissioned"]),
            nodes::list,
        )
        .add::<Empty, NodeView, _, _>(
            route(Get, paths::NODE, RequiredAccess::OwnNodeOr(Right::get(ObjectKind::Node)), "Get a node"),
            nodes::get,
        )
        .add::<LabelChange, Empty, _, _>(
            route(Patch, paths::NODE_LABELS, RequiredAccess::Right(Right::update_field(ObjectKind::Node, "/labels").partial()), "Change labels"),
            nodes::label,
        )
        .add::<AllowedServices, Empty, _, _>(
            route(Put, paths::NODE_SERVICES, RequiredAccess::update_field(ObjectKind::Node, "/services"), "Set which services a node may register"),
            nodes::allow_services,
        )
        .add::<Reason, Empty, _, _>(
            route(Post, paths::NODE_PAUSE, RequiredAccess::update_field(ObjectKind::Node, "/pause"), "Pause a node").optional_body(),
            nodes::pause,
        )
        .add::<Empty, Resumed, _, _>(
            route(
                Post,
                paths::NODE_RESUME,
                RequiredAccess::update_field(ObjectKind::Node, "/pause"),
                "Resume a node; answers which pauses still cover it",
            ),
            nodes::resume,
        )
        .add::<Reason, Empty, _, _>(
            route(
                Post,
                paths::NODE_CORDON,
                RequiredAccess::update_field(ObjectKind::Node, "/cordon"),
                "Cordon a node: it is assigned nothing new",
            )
            .optional_body(),
            nodes::cordon,
        )
        .add::<DrainRequest, Empty, _, _>(
            route(
                Post,
                paths::NODE_DRAIN,
                RequiredAccess::update_field(ObjectKind::Node, "/drain"),
                "Drain a node: it is assigned nothing new, and leaves service discovery once its budget allows it",
            )
            .optional_body(),
            nodes::drain,
        )
        .add::<Empty, Empty, _, _>(
            route(Post, paths::NODE_UNCORDON, RequiredAccess::update_field(ObjectKind::Node, "/cordon"), "Uncordon a node"),
            nodes::uncordon,
        )
}

/// Nodes that begin runs of workflows, or none.
pub(super) fn runnable(routes: Routes) -> Routes {
    routes.add::<Runnable, Empty, _, _>(
        route(
            Post,
            paths::NODE_RUNNABLE,
            RequiredAccess::update_field(ObjectKind::Node, "/runnable"),
            "Say whether a node begins runs of workflows",
        )
        .optional_body(),
        nodes::runnable,
    )
}

/// Nodes that come and go.
pub(super) fn expected(routes: Routes) -> Routes {
    routes
        .add::<Reason, Empty, _, _>(
            route(
                Put,
                paths::NODE_EXPECTED,
                RequiredAccess::update_field(ObjectKind::Node, "/expected"),
                "Expect a node to join",
            )
            .optional_body(),
            expected::put,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::NODE_EXPECTED,
                RequiredAccess::update_field(ObjectKind::Node, "/expected"),
                "Stop expecting a node",
            ),
            expected::delete,
        )
        .add::<Empty, Page<SilentNode>, _, _>(
            route(
                Get,
                paths::SILENT_NODES,
                RequiredAccess::get(ObjectKind::Node),
                "List nodes that are expected, silent or unreachable",
            )
            .list(),
            expected::unaccounted,
        )
        .add::<Reason, Empty, _, _>(
            route(
                Post,
                paths::NODE_DECOMMISSION,
                RequiredAccess::delete(ObjectKind::Node),
                "Decommission a node",
            )
            .optional_body(),
            nodes::decommission,
        )
}

/// Statuses of nodes, and the logs of what failed.
pub(super) fn statuses(routes: Routes) -> Routes {
    routes
        .add::<Status, Empty, _, _>(
            route(
                Put,
                paths::NODE_STATUS,
                RequiredAccess::OwnNodeOr(Right::update_field(ObjectKind::Node, "/statuses")),
                "Set a status of a node",
            ),
            nodes::set_status,
        )
        .add::<Empty, Empty, _, _>(
            route(
                Delete,
                paths::NODE_STATUS,
                RequiredAccess::OwnNodeOr(Right::update_field(ObjectKind::Node, "/statuses")),
                "Delete a status of a node",
            ),
            nodes::delete_status,
        )
        .add::<Empty, Failures, _, _>(
            route(
                Get,
                paths::FAILURES,
                RequiredAccess::get(ObjectKind::Node),
                "List failed and silent statuses, failing services and parts of ensembles, and unreachable nodes",
            ),
            failures::list,
        )
        .add::<Empty, Page<NodeLog>, _, _>(
            route(
                Get,
                paths::NODE_LOGS,
                RequiredAccess::OwnNodeOr(Right::get(ObjectKind::Node)),
                "List the logs of failed runs of a node",
            ),
            logs::list,
        )
        .add::<Empty, NodeLog, _, _>(
            route(
                Get,
                paths::NODE_LOG,
                RequiredAccess::OwnNodeOr(Right::get(ObjectKind::Node)),
                "Get the log of a failed run",
            ),
            logs::get,
        )
}

/// What processes on nodes write.
pub(super) fn output(routes: Routes) -> Routes {
    routes
        .add::<Empty, ProcessLog, _, _>(
            route(
                Get,
                paths::PROCESS_LOG,
                RequiredAccess::get(ObjectKind::Node),
                "Read the output of the process of an entity from its node",
            )
            .query(&["offset", "wait"])
            .asks_node(),
            process_logs::read,
        )
        .add::<Empty, ProcessLog, _, _>(
            route(
                Get,
                paths::MEMBER_LOG,
                RequiredAccess::get(ObjectKind::Node),
                "Read the output of the member, the OSD or the manager that a node has of an ensemble, from its node",
            )
            .query(&["offset", "wait", "osd", "manager"])
            .asks_node(),
            process_logs::read_member,
        )
}

/// Calls of a node's agent.
pub(super) fn agents(routes: Routes) -> Routes {
    routes
        .add::<Report, Empty, _, _>(
            route(Put, paths::NODE_REPORT, RequiredAccess::OwnNode, "Report the state of a node"),
            reports::put,
        )
        .add::<Empty, OrderPoll, _, _>(
            route(Get, paths::NODE_ORDER, RequiredAccess::OwnNode, "Wait for a newer order (long poll)")
                .query(&sync::QUERY),
            sync::sync,
        )
        .add::<Renew, Joined, _, _>(
            route(Post, paths::RENEW, RequiredAccess::OwnNode, "Renew a node's certificate"),
            access::renew,
        )
        .add::<NewLog, Empty, _, _>(
            route(Put, paths::NODE_LOG, RequiredAccess::OwnNode, "Store the log of a failed run"),
            logs::put,
        )
        .add::<ServiceRegistrations, Empty, _, _>(
            route(Put, paths::NODE_REGISTRATIONS, RequiredAccess::OwnNode, "Register the services of a node"),
            services::registration,
        )
}
