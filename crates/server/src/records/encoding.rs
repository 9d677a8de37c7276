//! Encoding of records: the wire form in an envelope with the name of its schema.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_api::v1::annotation::Annotation;
use bellwether_api::v1::cluster::discovery::StoredClusterDiscovery;
use bellwether_api::v1::cluster::stored::{StoredCluster, StoredClusterRoles};
use bellwether_api::v1::cluster::stored_view::StoredClusterView;
use bellwether_api::v1::ensemble::members::StoredEnsembleMembers;
use bellwether_api::v1::hook_answers::HookAnswers;
use bellwether_api::v1::node_params::StoredNodeParams;
use bellwether_api::v1::not_runnable::NotRunnable;
use bellwether_api::v1::registrations::{KnownService, ServiceRegistrations as Registrations};
use bellwether_api::v1::workflow::StoredDefinition;
use bellwether_core::records::key::global::{GlobalKey, GlobalRecord};
use bellwether_core::records::key::{AnyRecord, Key, Record};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Out<'a, T> {
    schema: &'a str,
    record: T,
}

#[derive(Deserialize)]
struct In<T> {
    record: T,
}

/// Parsed first, since the rest of a newer schema may not parse.
#[derive(Deserialize)]
struct Schema {
    schema: String,
}

/// Encodes a record of either scope.
///
/// # Errors
/// [`ShapeError`] when it has no JSON form.
pub fn write_any(record: &AnyRecord) -> Result<Bytes, ShapeError> {
    match record {
        AnyRecord::Namespaced(record) => write(record),
        AnyRecord::Global(record) => write_global(record),
    }
}

/// Encodes a record of a namespace.
///
/// # Errors
/// [`ShapeError`] when it has no JSON form.
pub fn write(record: &Record) -> Result<Bytes, ShapeError> {
    let schema = schema(&record.key());
    match record {
        Record::Node(node) => put(schema, v1::node::Node::from(node)),
        Record::NodeParams(params) => put(schema, StoredNodeParams::try_from(params)?),
        Record::Probes(probes) => put(schema, v1::probes::NodeProbes::from(probes)),
        Record::NodeMembers(members) => put(schema, v1::ensemble::reports::NodeMembers::from(members)),
        Record::Facts(facts) => put(schema, v1::facts::NodeFacts::from(facts)),
        Record::Presence(_, presence) => put(schema, v1::node::Presence::from(presence)),
        Record::Expected(_, by) => put(schema, Annotation::from(by)),
        Record::Report(report) => put(schema, v1::report::Report::from(report)),
        Record::Registrations(registrations) => put(schema, Registrations::from(registrations)),
        Record::WaitCycles(wait_cycles) => put(schema, v1::wait_cycle::WaitCycles::from(wait_cycles)),
        Record::Service(service) => put(schema, KnownService::from(service)),
        Record::Order(_, order) => put(schema, v1::order::Order::from(order)),
        Record::Log(log) => put(schema, v1::log::NodeLog::from(log)),
        Record::Entity(entity) => put(schema, v1::entity::Entity::from(entity)),
        Record::Progress(_, progress) => put(schema, v1::progress::Progress::from(progress)),
        Record::Rollout(_, rollout) => put(schema, v1::rollout::Rollout::from(rollout)),
        Record::Target(_, _, state) => put(schema, v1::target::TargetState::from(state)),
        Record::ExternalTarget(_, _, external) => put(schema, v1::external::ExternalTarget::from(external)),
        Record::Controllers(_, controllers) => put(schema, v1::external::Controllers::from(controllers)),
        Record::Profile(profile) => put(schema, v1::profile::Profile::from(profile)),
        Record::ProfileRevision(profile_revision) => {
            put(schema, v1::profile::StoredProfileRevision::try_from(profile_revision)?)
        }
        Record::HookAnswers(_, answers) => put(schema, HookAnswers::from(answers)),
        Record::Cluster(cluster) => put(schema, StoredCluster::from(cluster)),
        Record::ClusterRoles(roles) => put(schema, StoredClusterRoles::from(roles)),
        Record::ClusterView(view) => put(schema, StoredClusterView::from(view)),
        Record::ClusterDiscovery(known) => put(schema, StoredClusterDiscovery::from(known)),
        Record::Ensemble(ensemble) => put(schema, v1::ensemble::Ensemble::from(ensemble)),
        Record::EnsembleMembers(members) => put(schema, StoredEnsembleMembers::from(members)),
        Record::Schedule(schedule) => put(schema, v1::schedule::Schedule::from(schedule)),
        Record::Reaction(reaction) => put(schema, v1::reaction::Reaction::from(reaction)),
        Record::Sink(sink) => put(schema, v1::sink::Sink::from(sink)),
        Record::SinkState(state) => put(schema, v1::sink::state::SinkState::from(state)),
        Record::Filter(filter) => put(schema, v1::filter::Filter::from(filter)),
        Record::Freeze(freeze) => put(schema, v1::freeze::Freeze::from(freeze)),
        Record::Definition(definition) => put(schema, StoredDefinition::try_from(definition)?),
        Record::Run(run) => put(schema, v1::run::StoredRun::try_from(run)?),
        Record::Jobs(jobs) => put(schema, v1::job::StoredJobs::from(jobs)),
        Record::TaskList(list) => put(schema, v1::task_list::StoredTaskList::try_from(list)?),
        Record::NotRunnable(mark) => put(schema, NotRunnable::from(mark)),
        Record::Param(param) => put(schema, v1::param::StoredParam::try_from(param)?),
        Record::Pause(pause) => put(schema, v1::pause::Pause::from(pause)),
        Record::Secret(secret) => put(schema, v1::secret::StoredSecret::from(secret)),
        Record::Slot(slot) => put(schema, v1::slot::Slot::from(slot)),
        Record::Event(event) => put(schema, v1::event::Event::from(event)),
    }
}

/// Encodes a record of no namespace.
///
/// # Errors
/// [`ShapeError`] when it has no JSON form.
pub fn write_global(record: &GlobalRecord) -> Result<Bytes, ShapeError> {
    let schema = global_schema(&record.key());
    match record {
        GlobalRecord::Freeze(freeze) => put(schema, v1::freeze::Freeze::from(freeze)),
        GlobalRecord::Server(server) => put(schema, v1::server::Server::from(server)),
        GlobalRecord::Leader(leader) => put(schema, v1::server::Leader::from(leader)),
        GlobalRecord::Token(token) => put(schema, v1::access::StoredToken::from(token)),
        GlobalRecord::JoinToken(token) => put(schema, v1::access::StoredJoinToken::from(token)),
        GlobalRecord::Role(role) => put(schema, v1::role::StoredRole::from(role)),
        GlobalRecord::Authorities(all) => put(schema, v1::authorities::StoredAuthorities::from(all)),
    }
}

/// Decodes the record of a namespace under `key`.
///
/// # Errors
/// [`ShapeError`] naming the field, or the schema when a newer release wrote it.
#[expect(clippy::too_many_lines, reason = "one line for each record")]
pub fn read(key: &Key, bytes: &[u8]) -> Result<Record, ShapeError> {
    let schema = schema(key);
    Ok(match key {
        Key::Node(_) => Record::Node(get::<v1::node::Node>(schema, bytes)?.try_into()?),
        Key::Probes(_) => Record::Probes(get::<v1::probes::NodeProbes>(schema, bytes)?.try_into()?),
        Key::NodeMembers(_) => {
            Record::NodeMembers(get::<v1::ensemble::reports::NodeMembers>(schema, bytes)?.try_into()?)
        }
        Key::Facts(_) => Record::Facts(get::<v1::facts::NodeFacts>(schema, bytes)?.try_into()?),
        Key::Presence(name) => {
            Record::Presence(name.clone(), get::<v1::node::Presence>(schema, bytes)?.try_into()?)
        }
        Key::Expected(name) => Record::Expected(name.clone(), get::<Annotation>(schema, bytes)?.try_into()?),
        Key::Report(_) => Record::Report(get::<v1::report::Report>(schema, bytes)?.try_into()?),
        Key::Registrations(_) => Record::Registrations(get::<Registrations>(schema, bytes)?.try_into()?),
        Key::WaitCycles => Record::WaitCycles(get::<v1::wait_cycle::WaitCycles>(schema, bytes)?.try_into()?),
        Key::Service(_) => Record::Service(get::<KnownService>(schema, bytes)?.try_into()?),
        Key::Order(name) => Record::Order(name.clone(), get::<v1::order::Order>(schema, bytes)?.try_into()?),
        Key::Log(_, _, _) => Record::Log(get::<v1::log::NodeLog>(schema, bytes)?.try_into()?),
        Key::Entity(_) => Record::Entity(get::<v1::entity::Entity>(schema, bytes)?.try_into()?),
        Key::Progress(name) => {
            Record::Progress(name.clone(), get::<v1::progress::Progress>(schema, bytes)?.try_into()?)
        }
        Key::Rollout(name, _) => {
            Record::Rollout(name.clone(), get::<v1::rollout::Rollout>(schema, bytes)?.try_into()?)
        }
        Key::Target(entity, target) => {
            let state = get::<v1::target::TargetState>(schema, bytes)?.try_into()?;
            Record::Target(entity.clone(), target.clone(), state)
        }
        Key::ExternalTarget(entity, target) => {
            let external = get::<v1::external::ExternalTarget>(schema, bytes)?.try_into()?;
            Record::ExternalTarget(entity.clone(), target.clone(), external)
        }
        Key::Controllers(entity) => {
            let controllers = get::<v1::external::Controllers>(schema, bytes)?.try_into()?;
            Record::Controllers(entity.clone(), controllers)
        }
        Key::NodeParams(_) => Record::NodeParams(get::<StoredNodeParams>(schema, bytes)?.try_into()?),
        Key::Profile(_) => Record::Profile(get::<v1::profile::Profile>(schema, bytes)?.try_into()?),
        Key::ProfileRevision(_, _) => {
            Record::ProfileRevision(get::<v1::profile::StoredProfileRevision>(schema, bytes)?.try_into()?)
        }
        Key::HookAnswers(name) => {
            Record::HookAnswers(name.clone(), get::<HookAnswers>(schema, bytes)?.try_into()?)
        }
        Key::Cluster(_) => Record::Cluster(get::<StoredCluster>(schema, bytes)?.try_into()?),
        Key::ClusterRoles(_) => Record::ClusterRoles(get::<StoredClusterRoles>(schema, bytes)?.try_into()?),
        Key::ClusterView(_) => Record::ClusterView(get::<StoredClusterView>(schema, bytes)?.try_into()?),
        Key::ClusterDiscovery(_) => {
            Record::ClusterDiscovery(get::<StoredClusterDiscovery>(schema, bytes)?.try_into()?)
        }
        Key::Ensemble(_) => Record::Ensemble(get::<v1::ensemble::Ensemble>(schema, bytes)?.try_into()?),
        Key::EnsembleMembers(_) => {
            Record::EnsembleMembers(get::<StoredEnsembleMembers>(schema, bytes)?.try_into()?)
        }
        Key::Schedule(_) => Record::Schedule(get::<v1::schedule::Schedule>(schema, bytes)?.try_into()?),
        Key::Reaction(_) => Record::Reaction(get::<v1::reaction::Reaction>(schema, bytes)?.try_into()?),
        Key::Sink(_) => Record::Sink(get::<v1::sink::Sink>(schema, bytes)?.try_into()?),
        Key::SinkState(_) => Record::SinkState(get::<v1::sink::state::SinkState>(schema, bytes)?.try_into()?),
        Key::Filter(_) => Record::Filter(get::<v1::filter::Filter>(schema, bytes)?.try_into()?),
        Key::Freeze(_) => Record::Freeze(get::<v1::freeze::Freeze>(schema, bytes)?.try_into()?),
        Key::Definition(_) => Record::Definition(get::<StoredDefinition>(schema, bytes)?.try_into()?),
        Key::Run(_) => Record::Run(get::<v1::run::StoredRun>(schema, bytes)?.try_into()?),
        Key::Jobs(_, _) => Record::Jobs(get::<v1::job::StoredJobs>(schema, bytes)?.try_into()?),
        Key::TaskList(_, _) => {
            Record::TaskList(get::<v1::task_list::StoredTaskList>(schema, bytes)?.try_into()?)
        }
        Key::NotRunnable(_) => Record::NotRunnable(get::<NotRunnable>(schema, bytes)?.try_into()?),
        Key::Param(_) => Record::Param(get::<v1::param::StoredParam>(schema, bytes)?.try_into()?),
        Key::Pause(_) => Record::Pause(get::<v1::pause::Pause>(schema, bytes)?.try_into()?),
        Key::Secret(_) => Record::Secret(get::<v1::secret::StoredSecret>(schema, bytes)?.try_into()?),
        Key::Slot(_) => Record::Slot(get::<v1::slot::Slot>(schema, bytes)?.try_into()?),
        Key::Event(_) => Record::Event(get::<v1::event::Event>(schema, bytes)?.try_into()?),
    })
}

/// Decodes the record of no namespace under `key`.
///
/// # Errors
/// [`ShapeError`] naming the field, or the schema when a newer release wrote it.
pub fn read_global(key: &GlobalKey, bytes: &[u8]) -> Result<GlobalRecord, ShapeError> {
    let schema = global_schema(key);
    Ok(match key {
        GlobalKey::Freeze(_) => GlobalRecord::Freeze(get::<v1::freeze::Freeze>(schema, bytes)?.try_into()?),
        GlobalKey::Server(_) => GlobalRecord::Server(get::<v1::server::Server>(schema, bytes)?.try_into()?),
        GlobalKey::Leader => GlobalRecord::Leader(get::<v1::server::Leader>(schema, bytes)?.try_into()?),
        GlobalKey::Token(_) => {
            GlobalRecord::Token(get::<v1::access::StoredToken>(schema, bytes)?.try_into()?)
        }
        GlobalKey::JoinToken(_) => {
            GlobalRecord::JoinToken(get::<v1::access::StoredJoinToken>(schema, bytes)?.try_into()?)
        }
        GlobalKey::Role(_) => GlobalRecord::Role(get::<v1::role::StoredRole>(schema, bytes)?.try_into()?),
        GlobalKey::Authorities => {
            GlobalRecord::Authorities(get::<v1::authorities::StoredAuthorities>(schema, bytes)?.try_into()?)
        }
    })
}

const fn global_schema(key: &GlobalKey) -> &'static str {
    match key {
        GlobalKey::Freeze(_) => "freeze.v1",
        GlobalKey::Server(_) => "server.v1",
        GlobalKey::Leader => "leader.v1",
        GlobalKey::Token(_) => "token.v1",
        GlobalKey::JoinToken(_) => "join-token.v1",
        GlobalKey::Role(_) => "role.v1",
        GlobalKey::Authorities => "authorities.v1",
    }
}

const fn schema(key: &Key) -> &'static str {
    match key {
        Key::Node(_) => "node.v1",
        Key::NodeParams(_) => "node-params.v1",
        Key::Probes(_) => "probes.v1",
        Key::NodeMembers(_) => "node-members.v1",
        Key::Facts(_) => "facts.v1",
        Key::Presence(_) => "presence.v1",
        Key::Expected(_) => "expected.v1",
        Key::Report(_) => "report.v1",
        Key::Order(_) => "order.v1",
        Key::Registrations(_) => "registrations.v1",
        Key::Service(_) => "service.v1",
        Key::WaitCycles => "wait-cycles.v1",
        Key::Log(_, _, _) => "node-log.v1",
        Key::Entity(_) => "entity.v1",
        Key::Progress(_) => "progress.v1",
        Key::Rollout(_, _) => "rollout.v1",
        Key::Target(_, _) => "target.v1",
        Key::ExternalTarget(_, _) => "external.v1",
        Key::Controllers(_) => "controllers.v1",
        Key::Profile(_) => "profile.v1",
        Key::ProfileRevision(_, _) => "profile-revision.v1",
        Key::HookAnswers(_) => "hook-answers.v1",
        Key::Cluster(_) => "cluster.v1",
        Key::ClusterRoles(_) => "cluster-roles.v1",
        Key::ClusterView(_) => "cluster-view.v1",
        Key::ClusterDiscovery(_) => "cluster-discovery.v1",
        Key::Ensemble(_) => "ensemble.v1",
        Key::EnsembleMembers(_) => "ensemble-members.v1",
        Key::Schedule(_) => "schedule.v1",
        Key::Reaction(_) => "reaction.v1",
        Key::Sink(_) => "sink.v1",
        Key::SinkState(_) => "sink-state.v1",
        Key::Filter(_) => "filter.v1",
        Key::Freeze(_) => "freeze.v1",
        Key::Definition(_) => "definition.v1",
        Key::Run(_) => "run.v1",
        Key::Jobs(_, _) => "jobs.v1",
        Key::TaskList(_, _) => "task-list.v1",
        Key::NotRunnable(_) => "not-runnable.v1",
        Key::Param(_) => "param.v1",
        Key::Pause(_) => "pause.v1",
        Key::Secret(_) => "secret.v1",
        Key::Slot(_) => "slot.v1",
        Key::Event(_) => "event.v1",
    }
}

fn put<T: Serialize>(schema: &str, record: T) -> Result<Bytes, ShapeError> {
    let bytes = serde_json::to_vec(&Out { schema, record }).map_err(|error| ShapeError::at(schema, error))?;
    Ok(bytes.into())
}

fn get<T: DeserializeOwned>(schema: &str, bytes: &[u8]) -> Result<T, ShapeError> {
    let found: Schema = serde_json::from_slice(bytes).map_err(|error| ShapeError::at(schema, error))?;
    if found.schema != schema {
        let reason = format!("{:?} is not {schema:?}: another release wrote it", found.schema);
        return Err(ShapeError::at("schema", reason));
    }
    let envelope: In<T> = serde_json::from_slice(bytes).map_err(|error| ShapeError::at(schema, error))?;
    Ok(envelope.record)
}
