//! Clusters: creating, changing and deleting them, with the live profile that their members share; and showing them.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::cluster::discovery::DiscoveryStatus;
use bellwether_api::v1::cluster::{Cluster as Shape, ClusterMember, ClusterSpec, DesiredCluster};
use bellwether_api::v1::node::PresenceState as PresenceWord;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::cluster::{Cluster, ClusterMode, manager_of};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::node::{Node, PresenceState};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::{ClusterNumber, ClusterRevision, RescanNumber};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, ClusterName, Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::cluster_roles::ClusterRole;
use bellwether_core::world::fleet::Fleet;

use super::at_revision::at_revision;
use super::profile::SharedProfile;
use super::{AT_ONCE, OpError, cause, event};
use crate::transactor::Transactor;

/// A cluster, for a change.
#[derive(Clone, Copy)]
pub struct ClusterScope<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// The cluster.
    pub name: &'a ClusterName,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
    /// The revision that it must have, 0 if it must not exist; `None` for any.
    pub only_at: Option<u64>,
}

/// Creates a cluster with its profile, or changes one; answers it, and whether it is new. The same again changes nothing.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::Moved`] when it is not at the revision that was named; [`OpError::Refused`]
/// when its profile cannot be shared.
pub async fn set(
    transactor: &Transactor,
    scope: ClusterScope<'_>,
    spec: &ClusterSpec,
) -> Result<(Shape, bool), OpError> {
    let ClusterScope { namespace, name, actor, only_at } = scope;
    let desired = spec.desired(name.as_str())?;
    transactor
        .compare(namespace, actor, &Key::Cluster(name.clone()).into(), |world, fleet, now| {
            let before = fleet.clusters.get(name).map(|kept| &*kept.value);
            at_revision(
                "cluster",
                name.as_str(),
                before.map(|before| (before.revision.get(), &before.annotation.by)),
                only_at,
            )?;
            let (cluster, event_kind) = match before {
                Some(before) => (changed(before, &desired)?, "cluster.changed"),
                None => {
                    (fresh(fleet, name, &desired, Annotation::of(actor.clone(), now))?, "cluster.created")
                }
            };
            if before == Some(&cluster) {
                return Ok((None, (view(fleet, before.unwrap_or(&cluster)), false)));
            }
            let revision =
                before.map_or(ClusterRevision::ZERO, |before| before.revision).next_in(fleet.epoch);
            let annotation = Annotation { by: actor.clone(), reason: desired.reason.clone(), at: now };
            let cluster = Cluster { revision, annotation, ..cluster };
            let mut changeset = shared(transactor, (world, fleet), scope, &cluster, now)?;
            let mut said = event(event_kind, format!("cluster/{name}"), cause(&desired.reason));
            said.before = before.map(describe);
            said.after = Some(describe(&cluster));
            changeset.events.insert(0, said);
            if before.is_none() {
                changeset.writes.push(Write::put(Record::Node(manager(fleet, &cluster, now)?)));
            }
            if cluster.discovery.is_none() {
                changeset.writes.extend(forget_list(fleet, name));
            }
            changeset.writes.push(Write::put(Record::Cluster(cluster.clone())));
            Ok((Some(changeset), (after(world, (namespace, fleet), &cluster), before.is_none())))
        })
        .await
}

/// Deletes a cluster: its roles end, and its members no longer read its profile, which stays. The nodes stay as they are.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Moved`] when it is not at the revision that was named.
pub async fn delete(transactor: &Transactor, scope: ClusterScope<'_>) -> Result<(), OpError> {
    let ClusterScope { namespace, name, actor, only_at } = scope;
    let key = Key::Cluster(name.clone());
    while transactor
        .compare(namespace, actor, &key.clone().into(), |_, fleet, _| {
            let before = fleet.clusters.get(name).map(|kept| &*kept.value);
            at_revision(
                "cluster",
                name.as_str(),
                before.map(|before| (before.revision.get(), &before.annotation.by)),
                only_at,
            )?;
            let before = before.ok_or_else(|| OpError::NotFound(format!("cluster {name}")))?;
            let mut runs = forget_runs(fleet, before)?;
            if runs.len() > AT_ONCE {
                // More than fits in one commit: the oldest first.
                runs.truncate(AT_ONCE);
                let changeset = Changeset { writes: runs, events: vec![] };
                return Ok::<_, OpError>((Some(changeset.guarded_by([key.clone()])), true));
            }
            let said = format!("its members stay; profile {} stays", before.profile);
            let mut deleted = event("cluster.deleted", format!("cluster/{name}"), said);
            deleted.before = Some(describe(before));
            let mut writes = vec![Write::delete(Key::Cluster(name.clone()))];
            writes.extend(runs);
            writes.extend(forget_manager(fleet, &before.manager));
            writes.extend(forget_list(fleet, name));
            Ok((Some(Changeset { writes, events: vec![deleted] }.into()), false))
        })
        .await?
    {}
    Ok(())
}

/// The clusters of a namespace, by name.
pub fn list(fleet: &Fleet) -> impl Iterator<Item = Shape> {
    fleet.clusters.values().map(|kept| view(fleet, &kept.value))
}

/// A cluster with its leaders and the number of its members; `None` if there is none of this name.
#[must_use]
pub fn get(fleet: &Fleet, name: &ClusterName) -> Option<Shape> {
    fleet.clusters.get(name).map(|kept| view(fleet, &kept.value))
}

/// The members of a cluster, by name, its manager, and those that are listed and no nodes.
#[must_use]
pub fn members(fleet: &Fleet, name: &ClusterName) -> Vec<ClusterMember> {
    let manager = fleet.clusters.get(name).map(|kept| &kept.value.manager);
    let all = fleet.membership.members(name).chain(manager);
    let mut members: Vec<ClusterMember> = all.map(|node| member(fleet, name, node)).collect();
    members.extend(unknown(fleet, name));
    members.sort_by(|one, other| one.node.cmp(&other.node));
    members
}

/// Members that are listed and no nodes.
fn unknown(fleet: &Fleet, cluster: &ClusterName) -> Vec<ClusterMember> {
    let known = fleet.cluster_discoveries.get(cluster).map(|kept| &*kept.value);
    let hosts = known.into_iter().flat_map(|known| fleet.unknown_members(known));
    let unknown = hosts.map(|host| ClusterMember {
        node: host.to_owned(),
        role: "unknown".to_owned(),
        slot: None,
        fence: None,
        host: None,
        presence: PresenceWord::from(PresenceState::Never).as_str().to_owned(),
    });
    unknown.collect()
}

fn member(fleet: &Fleet, cluster: &ClusterName, node: &NodeName) -> ClusterMember {
    let presence = fleet.presences.get(node).map_or(PresenceState::Never, |kept| kept.value.contact);
    let role = fleet.role_in(cluster, node);
    let (slot, fence) = match &role {
        ClusterRole::Leader(slot, holder) => (Some(*slot), Some(holder.fence.get())),
        ClusterRole::Manager(host) => (None, host.map(|host| host.fence.get())),
        ClusterRole::Worker => (None, None),
    };
    let host = fleet.host_of(node).map(|host| host.node.to_string());
    ClusterMember {
        node: node.to_string(),
        role: role.as_str().to_owned(),
        slot,
        fence,
        host,
        presence: PresenceWord::from(presence).as_str().to_owned(),
    }
}

fn view(fleet: &Fleet, cluster: &Cluster) -> Shape {
    let sizes = (fleet.membership.size(&cluster.name), fleet.membership.claimed(&cluster.name).count());
    let known = fleet.cluster_discoveries.get(&cluster.name).map(|kept| &*kept.value);
    let unknown = known.map_or(0, |known| fleet.unknown_members(known).count());
    let discovery = cluster.discovery.as_ref().map(|of| DiscoveryStatus::of(of, known, unknown));
    Shape { discovery, ..Shape::of(cluster, fleet.roles_of(&cluster.name), sizes) }
}

/// A cluster as it is once it is written: its members are those that match it then.
fn after(world: &World, (namespace, fleet): (&Namespace, &Fleet), cluster: &Cluster) -> Shape {
    let mut world = world.clone();
    let revision = world.revision;
    world.put(namespace, Record::Cluster(cluster.clone()), revision);
    view(world.fleets.get(namespace).unwrap_or(fleet), cluster)
}

fn describe(cluster: &Cluster) -> String {
    let Cluster { filter, leaders, prefer, grace, profile, workflow, mode, discovery, .. } = cluster;
    let discovery = discovery.as_ref();
    let discovery =
        discovery.map(|of| format!(", list {} every {}", of.source, of.interval)).unwrap_or_default();
    let mode = match mode {
        ClusterMode::Active => String::new(),
        ClusterMode::Observe | ClusterMode::Disabled => format!(", mode {}", mode.as_str()),
    };
    let prefer = prefer.as_ref().map(|order| format!(", prefer {order}")).unwrap_or_default();
    let workflow = workflow.as_ref().map(|workflow| format!(", workflow {workflow}")).unwrap_or_default();
    format!(
        "filter {filter}{discovery}, leaders {leaders}{prefer}, replace after {grace}, profile {profile}{workflow}{mode}"
    )
}

fn fresh(
    fleet: &Fleet,
    name: &ClusterName,
    desired: &DesiredCluster,
    annotation: Annotation,
) -> Result<Cluster, OpError> {
    let last = fleet.clusters.values().map(|kept| kept.value.number).max();
    let too_long =
        || ShapeError::at("name", "at most 55 characters, since its manager is the node NAME-manager");
    Ok(Cluster {
        name: name.clone(),
        manager: manager_of(name).ok_or_else(too_long)?,
        number: last.unwrap_or(ClusterNumber::ZERO).next(),
        revision: ClusterRevision::ZERO,
        filter: desired.filter.clone(),
        discovery: desired.discovery.clone(),
        leaders: desired.leaders,
        prefer: desired.prefer.clone(),
        grace: desired.grace,
        profile: desired.profile.clone(),
        workflow: desired.workflow.clone(),
        mode: desired.mode,
        labels: Labels::default(),
        annotation,
    })
}

/// The logical node that is the manager of a new cluster. No certificate is its own: the agent of another node acts for it.
fn manager(fleet: &Fleet, cluster: &Cluster, now: Timestamp) -> Result<Node, OpError> {
    let name = &cluster.manager;
    if fleet.nodes.contains_key(name) || fleet.expected.contains_key(name) {
        let reason =
            format!("create cluster {}: there is a node {name}, and its manager has that name", cluster.name);
        return Err(OpError::Refused {
            reason,
            hint: Some("choose another name for the cluster".to_owned()),
        });
    }
    Ok(Node {
        name: name.clone(),
        labels: Labels::default(),
        joined_at: now,
        key_fingerprint: String::new(),
        next_key_fingerprint: None,
        trust: None,
        pause: None,
        cordon: None,
        decommissioned: None,
        rescan: RescanNumber::ZERO,
        logical: Some(cluster.name.clone()),
        services: Vec::new(),
    })
}

/// The runs of the manager of a cluster that is deleted: a manager of the same name that is created later has nothing to do with
/// them.
fn forget_runs(fleet: &Fleet, cluster: &Cluster) -> Result<Vec<Write>, OpError> {
    let runs = fleet.entities_of_node.get(&cluster.manager).filter(|name| fleet.runs.contains_key(name));
    let mut writes = Vec::new();
    for run in runs {
        if fleet.is_run_in_progress(run) {
            let reason = format!("delete cluster {}: run {run} of its manager is in progress", cluster.name);
            let hint = Some(format!("abort it first: bellwether rollout abort {run}"));
            return Err(OpError::Refused { reason, hint });
        }
        writes.extend([Write::delete(Key::Run(run.clone())), Write::delete(Key::Entity(run.clone()))]);
    }
    Ok(writes)
}

/// What is stored of the list of a cluster's members, which has none any more.
fn forget_list(fleet: &Fleet, name: &ClusterName) -> Option<Write> {
    fleet.cluster_discoveries.get(name).map(|_| Write::delete(Key::ClusterDiscovery(name.clone())))
}

/// What is stored of the manager of a cluster that is deleted.
fn forget_manager(fleet: &Fleet, manager: &NodeName) -> Vec<Write> {
    let name = || manager.clone();
    let kept = [
        (fleet.presences.contains_key(manager), Key::Presence(name())),
        (fleet.reports.contains_key(manager), Key::Report(name())),
        (fleet.orders.contains_key(manager), Key::Order(name())),
        (fleet.node_params.contains_key(manager), Key::NodeParams(name())),
        (fleet.facts.contains_key(manager), Key::Facts(name())),
        (fleet.registrations.contains_key(manager), Key::Registrations(name())),
        (fleet.not_runnable.contains_key(manager), Key::NotRunnable(name())),
        (fleet.nodes.contains_key(manager), Key::Node(name())),
    ];
    let logs = fleet.logs_of(manager).map(|kept| {
        Key::Log(kept.value.node.clone(), kept.value.category.clone(), kept.value.entity.clone())
    });
    let kept = kept.into_iter().filter(|(is_there, _)| *is_there).map(|(_, key)| key);
    kept.chain(logs).map(Write::delete).collect()
}

fn changed(before: &Cluster, desired: &DesiredCluster) -> Result<Cluster, OpError> {
    if before.profile != desired.profile {
        let reason = format!(
            "{}; cluster {} has profile {}, which cannot be changed: delete the cluster and create it again",
            desired.profile, before.name, before.profile
        );
        return Err(ShapeError::at("profile", reason).into());
    }
    Ok(Cluster {
        filter: desired.filter.clone(),
        discovery: desired.discovery.clone(),
        leaders: desired.leaders,
        prefer: desired.prefer.clone(),
        grace: desired.grace,
        workflow: desired.workflow.clone(),
        mode: desired.mode,
        ..before.clone()
    })
}

/// What makes the profile of a cluster one that its members can share: it exists, is live, and names itself.
fn shared(
    transactor: &Transactor,
    place: (&World, &Fleet),
    scope: ClusterScope<'_>,
    cluster: &Cluster,
    now: Timestamp,
) -> Result<Changeset, OpError> {
    let (_, fleet) = place;
    let others = fleet.clusters.values().map(|kept| &kept.value);
    let same = others.filter(|other| other.name != cluster.name && other.profile == cluster.profile);
    if let Some(other) = same.map(|other| &other.name).next() {
        let reason = format!("{}; it is shared by the members of cluster {other}", cluster.profile);
        return Err(ShapeError::at("profile", reason).into());
    }
    let shared = SharedProfile {
        namespace: scope.namespace,
        profile: &cluster.profile,
        actor: scope.actor,
        cluster: scope.name,
        is_new: !fleet.clusters.contains_key(scope.name),
    };
    shared.changeset(place, transactor.keyring(), now)
}
