//! Route strings, which are defined only here. `{…}` are path parameters.

mod fill;
mod percent;

pub use fill::fill;
pub use percent::encode;

/// Header by which a node makes a request of a job that it runs: `RUN/INDEX`. The request has the rights of that job, and no others.
pub const ACTING_JOB: &str = "bellwether-job";
/// Header by which a node acts for a logical node that it hosts, with that one's name.
pub const LOGICAL_NODE: &str = "bellwether-logical-node";
/// Query parameter with the consistency of a read: `local`, the default, answers what the server knows; `linearizable` answers
/// everything that was committed before the request.
pub const CONSISTENCY: &str = "consistency";
/// Header of an answer that may be out of date: the time, in milliseconds, since the server last knew that it has everything that
/// was committed. Absent while it knows.
pub const AGE_MS: &str = "bellwether-age-ms";
/// Header of an answer while no change is accepted: what the store or the audit log does not take, with the reason. Absent otherwise.
pub const STORE_TROUBLE: &str = "bellwether-store-trouble";
/// Header of an answer while the store of the answering server takes no changes: the time, in milliseconds, since then. Whether a node is
/// up could not be recorded meanwhile. Absent otherwise.
pub const UNRECORDED_MS: &str = "bellwether-unrecorded-ms";
/// Header with the name of the answering server, of an answer that has one of those before.
pub const ANSWERED_BY: &str = "bellwether-server";

/// Liveness: the process answers.
pub const HEALTHZ: &str = "/healthz";
/// Readiness: the records are loaded and the store answers.
pub const READYZ: &str = "/readyz";
/// Metrics in the text format of Prometheus.
pub const METRICS: &str = "/metrics";
/// OpenAPI description of the API.
pub const OPENAPI: &str = "/openapi.json";
/// Joins a machine: exchanges a join token and a certificate signing request for a certificate.
pub const JOIN: &str = "/v1/join";
/// Renews the certificate of a node, by that node.
pub const RENEW: &str = "/v1/namespaces/{ns}/nodes/{node}/certificate";
/// Identity of the caller.
pub const WHOAMI: &str = "/v1/whoami";
/// Whether the caller may do something.
pub const ACCESS_REVIEW: &str = "/v1/access-review";
/// The audit log of the answering server; blocking with `?after=&wait=`.
pub const AUDIT: &str = "/v1/audit";
/// Roles, built-in ones included.
pub const ROLES: &str = "/v1/roles";
/// One role.
pub const ROLE: &str = "/v1/roles/{role}";
/// API tokens.
pub const TOKENS: &str = "/v1/tokens";
/// One API token.
pub const TOKEN: &str = "/v1/tokens/{token}";
/// Join tokens.
pub const JOIN_TOKENS: &str = "/v1/join-tokens";
/// One join token, by the first characters of its hash.
pub const JOIN_TOKEN: &str = "/v1/join-tokens/{token}";

/// Clock of the answering server.
pub const TIME: &str = "/v1/time";
/// The control plane: its servers and the leader.
pub const SERVERS: &str = "/v1/servers";
/// The leader hands the leadership over and stays a server.
pub const STEP_DOWN: &str = "/v1/servers/step-down";
/// Join tokens for servers.
pub const SERVER_TOKENS: &str = "/v1/servers/join-tokens";
/// Joins a machine as a server: exchanges a join token for the keys of the installation.
pub const SERVER_JOIN: &str = "/v1/servers/join";
/// A backup of all records.
pub const BACKUP: &str = "/v1/backup";
/// The certificate authorities, and what is behind.
pub const AUTHORITIES: &str = "/v1/authorities";
/// What clients of the control plane trust.
pub const TRUST_BUNDLE: &str = "/v1/authorities/bundle";
/// Makes the next authority.
pub const ROTATE_AUTHORITY: &str = "/v1/authorities/rotate";
/// Brings the next authority into use.
pub const ACTIVATE_AUTHORITY: &str = "/v1/authorities/activate";
/// Ends the trust in the previous authority.
pub const RETIRE_AUTHORITY: &str = "/v1/authorities/retire";
/// Drops the next authority.
pub const CANCEL_AUTHORITY: &str = "/v1/authorities/cancel";
/// Summary of a namespace.
pub const STATUS: &str = "/v1/namespaces/{ns}/status";
/// All nodes.
pub const NODES: &str = "/v1/namespaces/{ns}/nodes";
/// One node.
pub const NODE: &str = "/v1/namespaces/{ns}/nodes/{node}";
/// A node's labels.
pub const NODE_LABELS: &str = "/v1/namespaces/{ns}/nodes/{node}/labels";
/// The services that a node may register.
pub const NODE_SERVICES: &str = "/v1/namespaces/{ns}/nodes/{node}/services";
/// A node's own params.
pub const NODE_PARAMS: &str = "/v1/namespaces/{ns}/nodes/{node}/params";
/// The value of each param of a node, and where it comes from.
pub const NODE_PARAMS_EXPLAINED: &str = "/v1/namespaces/{ns}/nodes/{node}/params/explained";
/// The profiles that a node reads.
pub const NODE_PROFILES: &str = "/v1/namespaces/{ns}/nodes/{node}/profiles";
/// Pauses a node.
pub const NODE_PAUSE: &str = "/v1/namespaces/{ns}/nodes/{node}/pause";
/// Ends a node's own pause.
pub const NODE_RESUME: &str = "/v1/namespaces/{ns}/nodes/{node}/resume";
/// The expectation that a node joins.
pub const NODE_EXPECTED: &str = "/v1/namespaces/{ns}/nodes/{node}/expected";
/// Expected nodes that have not joined, and joined nodes that do not report.
pub const SILENT_NODES: &str = "/v1/namespaces/{ns}/silent-nodes";
/// Cordons a node: it is assigned no new versions.
pub const NODE_CORDON: &str = "/v1/namespaces/{ns}/nodes/{node}/cordon";
/// Drains a node: it is assigned no new versions, and its services are not returned to other nodes.
pub const NODE_DRAIN: &str = "/v1/namespaces/{ns}/nodes/{node}/drain";
/// Ends the cordon or drain of a node.
pub const NODE_UNCORDON: &str = "/v1/namespaces/{ns}/nodes/{node}/uncordon";
/// Says whether a node begins runs of workflows.
pub const NODE_RUNNABLE: &str = "/v1/namespaces/{ns}/nodes/{node}/runnable";
/// Decommissions a node.
pub const NODE_DECOMMISSION: &str = "/v1/namespaces/{ns}/nodes/{node}/decommission";
/// Report of a node, by that node.
pub const NODE_REPORT: &str = "/v1/namespaces/{ns}/nodes/{node}/report";
/// Facts of a node, by that node.
pub const NODE_FACTS: &str = "/v1/namespaces/{ns}/nodes/{node}/facts";
/// Data stores of a node, by that node.
pub const NODE_PROBES: &str = "/v1/namespaces/{ns}/nodes/{node}/probes";
/// The members that a node has of ensembles.
pub const NODE_MEMBERS: &str = "/v1/namespaces/{ns}/nodes/{node}/members";
/// The certificates of the member that a node has of an ensemble.
pub const MEMBER_CERTIFICATE: &str = "/v1/namespaces/{ns}/nodes/{node}/members/{ensemble}/certificate";
/// The keys of the member that a node has of an ensemble.
pub const MEMBER_KEYS: &str = "/v1/namespaces/{ns}/nodes/{node}/members/{ensemble}/keys";
/// What the member that a node has of an ensemble needs to know its clients and the other members.
pub const MEMBER_PASSWORDS: &str = "/v1/namespaces/{ns}/nodes/{node}/members/{ensemble}/passwords";
/// The keys of an OSD that a node has of an ensemble.
pub const OSD_KEYS: &str = "/v1/namespaces/{ns}/nodes/{node}/osds/{ensemble}/keys";
/// Requests a rescan of a node's facts.
pub const NODE_RESCAN: &str = "/v1/namespaces/{ns}/nodes/{node}/rescan";
/// Service registrations of a node, by that node.
pub const NODE_REGISTRATIONS: &str = "/v1/namespaces/{ns}/nodes/{node}/registrations";
/// All services; blocking with `?index=&wait=`.
pub const SERVICES: &str = "/v1/namespaces/{ns}/services";
/// One service with its instances; blocking with `?index=&wait=`.
pub const SERVICE: &str = "/v1/namespaces/{ns}/services/{service}";
/// The instances of a service in the format of Prometheus' HTTP service discovery.
pub const HTTP_SD: &str = "/v1/namespaces/{ns}/http-sd";
/// Slots: semaphores with a limited number of holders.
pub const SLOTS: &str = "/v1/namespaces/{ns}/slots";
/// One slot; blocking with `?index=&wait=`.
pub const SLOT: &str = "/v1/namespaces/{ns}/slots/{slot}";
/// Acquires a slot, or renews the lease of its present holder.
pub const SLOT_ACQUIRE: &str = "/v1/namespaces/{ns}/slots/{slot}/acquire";
/// Renews the lease of one acquisition.
pub const SLOT_RENEW: &str = "/v1/namespaces/{ns}/slots/{slot}/renew";
/// Releases one acquisition.
pub const SLOT_RELEASE: &str = "/v1/namespaces/{ns}/slots/{slot}/release";
/// Releases a slot on behalf of its holder.
pub const SLOT_FORCE_RELEASE: &str = "/v1/namespaces/{ns}/slots/{slot}/force-release";
/// FleetLock protocol on slot `reboot` of namespace `default`: acquires the slot.
pub const PRE_REBOOT: &str = "/v1/pre-reboot";
/// FleetLock protocol on slot `reboot` of namespace `default`: releases the slot.
pub const STEADY_STATE: &str = "/v1/steady-state";
/// FleetLock protocol on any slot: acquires the slot.
pub const SLOT_PRE_REBOOT: &str = "/v1/namespaces/{ns}/slots/{slot}/v1/pre-reboot";
/// FleetLock protocol on any slot: releases the slot.
pub const SLOT_STEADY_STATE: &str = "/v1/namespaces/{ns}/slots/{slot}/v1/steady-state";
/// Long poll of a node for its order.
pub const NODE_ORDER: &str = "/v1/namespaces/{ns}/nodes/{node}/order";
/// Sets one status of a node.
pub const NODE_STATUS: &str = "/v1/namespaces/{ns}/nodes/{node}/statuses/{category}";
/// Failed and outdated statuses of a namespace, and its unreachable nodes.
pub const FAILURES: &str = "/v1/namespaces/{ns}/failures";
/// Stored logs of a node's failed runs.
pub const NODE_LOGS: &str = "/v1/namespaces/{ns}/nodes/{node}/logs";
/// The output of what a node has of an ensemble, as the node has it; blocking with `?offset=&wait=`.
pub const MEMBER_LOG: &str = "/v1/namespaces/{ns}/nodes/{node}/members/{ensemble}/logs";
/// The output of the process of an entity, as its node has it; blocking with `?offset=&wait=`.
pub const PROCESS_LOG: &str = "/v1/namespaces/{ns}/nodes/{node}/processes/{entity}/logs";
/// Stored log of a node's last failed run of one category and entity.
pub const NODE_LOG: &str = "/v1/namespaces/{ns}/nodes/{node}/logs/{category}/{entity}";
/// On the agent's socket, like all paths below `/v1/agent/`: state of the agent.
pub const AGENT_STATUS: &str = "/v1/agent/status";
/// The configuration of this node's agent, read again.
pub const AGENT_RELOAD: &str = "/v1/agent/reload";
/// On the agent's socket: one status of this machine.
pub const AGENT_STATUSES: &str = "/v1/agent/statuses/{category}";
/// On the agent's socket: the services of this machine; PUT registers one.
pub const AGENT_SERVICES: &str = "/v1/agent/services";
/// On the agent's socket: one service of this machine, by its ID.
pub const AGENT_SERVICE: &str = "/v1/agent/services/{id}";
/// On the agent's socket: sets the status of a service's only check with `ttl`.
pub const AGENT_TTL_UPDATE: &str = "/v1/agent/services/{id}/ttl";
/// On the agent's socket: sets the status of one check with `ttl`.
pub const AGENT_CHECK_TTL_UPDATE: &str = "/v1/agent/services/{id}/checks/{check}/ttl";
/// On the agent's socket: the agent's whole copy of the catalogue.
pub const AGENT_CATALOGUE: &str = "/v1/agent/catalogue";
/// On the agent's port, like the paths below: the instances of a service for Prometheus' HTTP service
/// discovery.
pub const AGENT_HTTP_SD: &str = "/v1/http-sd";
/// In Consul's form: names and tags of all services.
pub const CONSUL_SERVICES: &str = "/v1/catalog/services";
/// In Consul's form: instances of a service.
pub const CONSUL_SERVICE: &str = "/v1/catalog/service/{service}";
/// In Consul's form: all nodes.
pub const CONSUL_NODES: &str = "/v1/catalog/nodes";
/// In Consul's form: a node and its service instances.
pub const CONSUL_NODE: &str = "/v1/catalog/node/{node}";
/// In Consul's form: the only datacentre.
pub const CONSUL_DATACENTRES: &str = "/v1/catalog/datacenters";
/// In Consul's form: instances of a service and their checks.
pub const CONSUL_HEALTH_SERVICE: &str = "/v1/health/service/{service}";
/// In Consul's form: checks of a node and its service instances.
pub const CONSUL_HEALTH_NODE: &str = "/v1/health/node/{node}";
/// In Consul's form: name and datacentre of this agent.
pub const CONSUL_SELF: &str = "/v1/agent/self";
/// In Consul's form: address of the server that this agent is connected to; empty without a connection.
pub const CONSUL_LEADER: &str = "/v1/status/leader";
/// All entities.
pub const ENTITIES: &str = "/v1/namespaces/{ns}/entities";
/// One entity.
pub const ENTITY: &str = "/v1/namespaces/{ns}/entities/{entity}";
/// Targets of an entity and their states.
pub const TARGETS: &str = "/v1/namespaces/{ns}/entities/{entity}/targets";
/// Reports external targets of an entity; answers the version that each is assigned.
pub const ORCHESTRATE: &str = "/v1/namespaces/{ns}/entities/{entity}/orchestrate";
/// Reports external targets of an entity; the answer is empty.
pub const REPORTS: &str = "/v1/namespaces/{ns}/entities/{entity}/reports";
/// Rollouts of an entity, newest first; POST requests one.
pub const ROLLOUTS: &str = "/v1/namespaces/{ns}/entities/{entity}/rollouts";
/// One rollout of an entity.
pub const ROLLOUT: &str = "/v1/namespaces/{ns}/entities/{entity}/rollouts/{number}";
/// The rollout in progress, or the last one; blocking with `?index=&wait=`.
pub const ROLLOUT_CURRENT: &str = "/v1/namespaces/{ns}/entities/{entity}/rollout";
/// Simulates a rollout of an entity.
pub const PLAN: &str = "/v1/namespaces/{ns}/entities/{entity}/plan";
/// Operation on the current rollout: `pause`, `resume`, `approve`, `abort`, `undo` or `retry`.
pub const ROLLOUT_OPERATION: &str = "/v1/namespaces/{ns}/entities/{entity}/rollout/{operation}";
/// Freezes of a namespace, and those of all namespaces.
pub const FREEZES: &str = "/v1/namespaces/{ns}/freezes";
/// One freeze of a namespace.
pub const FREEZE: &str = "/v1/namespaces/{ns}/freezes/{freeze}";
/// Freezes of all namespaces.
pub const GLOBAL_FREEZES: &str = "/v1/freezes";
/// One freeze of all namespaces.
pub const GLOBAL_FREEZE: &str = "/v1/freezes/{freeze}";
/// Applies documents.
pub const APPLY: &str = "/v1/namespaces/{ns}/apply";
/// Every object that can be applied, as documents.
pub const DOCUMENTS: &str = "/v1/namespaces/{ns}/documents";
/// All namespaces.
pub const NAMESPACES: &str = "/v1/namespaces";
/// One namespace.
pub const NAMESPACE: &str = "/v1/namespaces/{ns}";
/// Pauses of the nodes that match a selector.
pub const PAUSES: &str = "/v1/namespaces/{ns}/pauses";
/// One pause.
pub const PAUSE: &str = "/v1/namespaces/{ns}/pauses/{pause}";
/// Tasks.
pub const TASKS: &str = "/v1/namespaces/{ns}/tasks";
/// One task.
pub const TASK: &str = "/v1/namespaces/{ns}/tasks/{task}";
/// Stages of workflows.
pub const STAGES: &str = "/v1/namespaces/{ns}/stages";
/// One stage.
pub const STAGE: &str = "/v1/namespaces/{ns}/stages/{stage}";
/// Workflows.
pub const WORKFLOWS: &str = "/v1/namespaces/{ns}/workflows";
/// One workflow.
pub const WORKFLOW: &str = "/v1/namespaces/{ns}/workflows/{workflow}";
/// Runs of workflows.
pub const RUNS: &str = "/v1/namespaces/{ns}/runs";
/// One run of a workflow.
pub const RUN: &str = "/v1/namespaces/{ns}/runs/{run}";
/// Undoes a run.
pub const RUN_UNDO: &str = "/v1/namespaces/{ns}/runs/{run}/undo";
/// Jobs of runs.
pub const JOBS: &str = "/v1/namespaces/{ns}/jobs";
/// One job: a task of a run on a node.
pub const JOB: &str = "/v1/namespaces/{ns}/jobs/{run}/{node}/{number}";
/// Begins the task of a run again that failed on a node.
pub const JOB_RETRY: &str = "/v1/namespaces/{ns}/jobs/{run}/{node}/retry";
/// The tasks of a run on one node.
pub const TASK_LIST: &str = "/v1/namespaces/{ns}/jobs/{run}/{node}/tasks";
/// The log of a job, as its node has it; blocking with `?offset=&wait=`.
pub const JOB_LOG: &str = "/v1/namespaces/{ns}/jobs/{run}/{node}/{number}/logs";
/// Parts of logs of jobs that a server asked for, by the node that has them.
pub const NODE_JOB_LOGS: &str = "/v1/namespaces/{ns}/nodes/{node}/job-logs";
/// What a node needs to run one task of a run, by its index.
pub const JOB_INPUTS: &str = "/v1/namespaces/{ns}/nodes/{node}/runs/{run}/tasks/{number}";
/// Clusters.
pub const CLUSTERS: &str = "/v1/namespaces/{ns}/clusters";
/// One cluster.
pub const CLUSTER: &str = "/v1/namespaces/{ns}/clusters/{cluster}";
/// That members of a cluster are gone which its list does not have any more.
pub const CLUSTER_MEMBERS_ACCEPTED: &str = "/v1/namespaces/{ns}/clusters/{cluster}/members/accepted";
/// The members of a cluster.
pub const CLUSTER_MEMBERS: &str = "/v1/namespaces/{ns}/clusters/{cluster}/members";
/// The data stores of a cluster.
pub const CLUSTER_VIEW: &str = "/v1/namespaces/{ns}/clusters/{cluster}/view";
/// The data stores of a cluster, as they were after one event.
pub const CLUSTER_VIEW_AT: &str = "/v1/namespaces/{ns}/clusters/{cluster}/view/{number}";
/// Runs of workflows on a cluster: on its members, or on its manager.
pub const CLUSTER_RUNS: &str = "/v1/namespaces/{ns}/clusters/{cluster}/runs";
/// Waiting until the workflows of a cluster's members are complete.
pub const CLUSTER_WAIT: &str = "/v1/namespaces/{ns}/clusters/{cluster}/wait";
/// Ensembles.
pub const ENSEMBLES: &str = "/v1/namespaces/{ns}/ensembles";
/// One ensemble.
pub const ENSEMBLE: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}";
/// What would happen to the members of an ensemble.
pub const ENSEMBLE_PLAN: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/plan";
/// The number of members of an ensemble.
pub const ENSEMBLE_SCALE: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/scale";
/// The primary of an ensemble.
pub const ENSEMBLE_FAILOVER: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/failover";
/// The replacement of a member of an ensemble.
pub const ENSEMBLE_REPLACE: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/replace";
/// The restart of the members of an ensemble.
pub const ENSEMBLE_RESTART: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/restart";
/// The defragmentation of the members of an ensemble.
pub const ENSEMBLE_DEFRAGMENT: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/defragment";
/// The end of the hold of an ensemble after a restore.
pub const ENSEMBLE_RESUME: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/resume";
/// The removal of an OSD of an ensemble.
pub const ENSEMBLE_REMOVE_OSD: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/remove-osd";
/// The replacement of an OSD of an ensemble.
pub const ENSEMBLE_REPLACE_OSD: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/replace-osd";
/// The removal of a member of the store of an ensemble that is not of the ensemble.
pub const ENSEMBLE_REMOVE_FOREIGN_MEMBER: &str =
    "/v1/namespaces/{ns}/ensembles/{ensemble}/remove-foreign-member";
/// Snapshots of the data of an ensemble.
pub const ENSEMBLE_SNAPSHOT: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/snapshot";
/// A certificate for a client of an ensemble.
pub const ENSEMBLE_CERTIFICATE: &str = "/v1/namespaces/{ns}/ensembles/{ensemble}/certificate";
/// Reactions to conditions.
pub const REACTIONS: &str = "/v1/namespaces/{ns}/reactions";
/// One reaction.
pub const REACTION: &str = "/v1/namespaces/{ns}/reactions/{reaction}";
/// What a reaction would do about a condition.
pub const REACTION_TEST: &str = "/v1/namespaces/{ns}/reactions/{reaction}/test";
/// Sinks of events.
pub const SINKS: &str = "/v1/namespaces/{ns}/sinks";
/// One sink.
pub const SINK: &str = "/v1/namespaces/{ns}/sinks/{sink}";
/// Whether a sink sends events.
pub const SINK_ENABLED: &str = "/v1/namespaces/{ns}/sinks/{sink}/enabled";
/// Sending events again.
pub const SINK_REPLAY: &str = "/v1/namespaces/{ns}/sinks/{sink}/replay";
/// Sending a test event.
pub const SINK_TEST: &str = "/v1/namespaces/{ns}/sinks/{sink}/test";
/// Schedules of workflows.
pub const SCHEDULES: &str = "/v1/namespaces/{ns}/schedules";
/// One schedule.
pub const SCHEDULE: &str = "/v1/namespaces/{ns}/schedules/{schedule}";
/// Saved filters.
pub const FILTERS: &str = "/v1/namespaces/{ns}/filters";
/// One saved filter.
pub const FILTER: &str = "/v1/namespaces/{ns}/filters/{filter}";
/// Declared params.
pub const PARAMS: &str = "/v1/namespaces/{ns}/params";
/// One declared param.
pub const PARAM: &str = "/v1/namespaces/{ns}/params/{*param}";
/// All secrets, without their values.
pub const SECRETS: &str = "/v1/namespaces/{ns}/secrets";
/// One secret, without its value.
pub const SECRET: &str = "/v1/namespaces/{ns}/secrets/{*secret}";
/// The value of a secret.
pub const REVEALED_SECRET: &str = "/v1/namespaces/{ns}/revealed/secrets/{*secret}";
/// The secret value of a param of a profile.
pub const REVEALED_PROFILE_PARAM: &str = "/v1/namespaces/{ns}/revealed/profiles/{profile}/{*param}";
/// The secret value of a param of a node's own.
pub const REVEALED_NODE_PARAM: &str = "/v1/namespaces/{ns}/revealed/nodes/{node}/{*param}";
/// The secrets that a node may read.
pub const NODE_SECRETS: &str = "/v1/namespaces/{ns}/nodes/{node}/secrets";
/// The keys that secrets are encrypted with.
pub const SECRET_KEYS: &str = "/v1/secret-keys";
/// All profiles.
pub const PROFILES: &str = "/v1/namespaces/{ns}/profiles";
/// One profile.
pub const PROFILE: &str = "/v1/namespaces/{ns}/profiles/{profile}";
/// Whether a profile is live.
pub const PROFILE_LIVE: &str = "/v1/namespaces/{ns}/profiles/{profile}/live";
/// Revisions of a profile, newest first.
pub const PROFILE_REVISIONS: &str = "/v1/namespaces/{ns}/profiles/{profile}/revisions";
/// One revision of a profile, with its params.
pub const PROFILE_REVISION: &str = "/v1/namespaces/{ns}/profiles/{profile}/revisions/{number}";
/// Events; `?after=&wait=&limit=`.
pub const EVENTS: &str = "/v1/namespaces/{ns}/events";
/// An event with those that led to it and those that it led to.
pub const EVENT_CHAIN: &str = "/v1/namespaces/{ns}/events/{number}/chain";
/// Events as server-sent events, resumable with `?after=` or `Last-Event-ID`.
pub const EVENTS_STREAM: &str = "/v1/namespaces/{ns}/events/stream";
/// Explains the state of `node/NAME`, `entity/NAME`, `service/NAME`, `target/ENTITY/NAME` or `slot/NAME`.
pub const WHY: &str = "/v1/namespaces/{ns}/why/{*subject}";

/// Whether a path is one of the FleetLock protocol.
#[must_use]
pub fn is_fleet_lock(path: &str) -> bool {
    path.ends_with(PRE_REBOOT) || path.ends_with(STEADY_STATE)
}

#[cfg(test)]
mod tests;
