//! Which object the path of a request is about.

use bellwether_api::paths;
use bellwether_core::access::{ObjectKind, RequiredAccess};

/// The namespace of the FleetLock protocol's paths that name none.
pub(super) const FLEET_LOCK_NAMESPACE: &str = "default";

/// The name and the namespace of the object that a path is about.
pub(super) fn object(
    need: RequiredAccess,
    path: &str,
    param: impl Fn(&str) -> Option<String>,
) -> (Option<String>, Option<String>) {
    let key = need.right().map(|right| match right.kind {
        ObjectKind::Audit => "audit",
        ObjectKind::Entity | ObjectKind::Rollout => "entity",
        ObjectKind::Cluster => "cluster",
        ObjectKind::Ensemble => "ensemble",
        ObjectKind::Filter => "filter",
        ObjectKind::Freeze | ObjectKind::GlobalFreeze => "freeze",
        ObjectKind::JoinToken | ObjectKind::Token => "token",
        ObjectKind::Namespace => "ns",
        ObjectKind::Node => "node",
        ObjectKind::Param => "param",
        ObjectKind::Pause => "pause",
        ObjectKind::Profile => "profile",
        ObjectKind::Role => "role",
        ObjectKind::Run => "run",
        ObjectKind::Schedule => "schedule",
        ObjectKind::Reaction => "reaction",
        ObjectKind::Secret => "secret",
        ObjectKind::Sink => "sink",
        ObjectKind::Server => "server",
        ObjectKind::Service => "service",
        ObjectKind::Slot => "slot",
        ObjectKind::Stage => "stage",
        ObjectKind::Task => "task",
        ObjectKind::Workflow => "workflow",
    });
    let name = key.and_then(&param);
    match path {
        paths::PRE_REBOOT | paths::STEADY_STATE => (name, Some(FLEET_LOCK_NAMESPACE.to_owned())),
        _ => (name, param("ns")),
    }
}
