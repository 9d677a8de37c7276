//! Route strings: the only place they are written. `{…}` are path parameters.

/// The parameter by which a read says how new its answer must be: `local`, what the server knows, which is the default, or
/// `linearizable`, with everything committed before the request came.
pub const CONSISTENCY: &str = "consistency";

/// Liveness: the process answers.
pub const HEALTHZ: &str = "/healthz";
/// Readiness: the world is loaded and the store answers.
pub const READYZ: &str = "/readyz";
/// Prometheus metrics.
pub const METRICS: &str = "/metrics";
/// The API, described by itself.
pub const OPENAPI: &str = "/openapi.json";
/// Trade a join token and a certificate request for a certificate.
pub const JOIN: &str = "/v1/join";
/// Renew one's own certificate.
pub const RENEW: &str = "/v1/namespaces/{ns}/nodes/{node}/certificate";
/// Who am I.
pub const WHOAMI: &str = "/v1/whoami";
/// Tokens of people and programs.
pub const TOKENS: &str = "/v1/tokens";
/// One token.
pub const TOKEN: &str = "/v1/tokens/{token}";
/// Join tokens.
pub const JOIN_TOKENS: &str = "/v1/join-tokens";
/// One join token, by the first characters of its hash.
pub const JOIN_TOKEN: &str = "/v1/join-tokens/{token}";

/// What time it is for the control plane.
pub const TIME: &str = "/v1/time";
/// The control plane: its servers and who leads.
pub const SERVERS: &str = "/v1/servers";
/// One screen about a namespace.
pub const STATUS: &str = "/v1/namespaces/{ns}/status";
/// All nodes.
pub const NODES: &str = "/v1/namespaces/{ns}/nodes";
/// One node.
pub const NODE: &str = "/v1/namespaces/{ns}/nodes/{node}";
/// A node's labels.
pub const NODE_LABELS: &str = "/v1/namespaces/{ns}/nodes/{node}/labels";
/// Pause a node.
pub const NODE_PAUSE: &str = "/v1/namespaces/{ns}/nodes/{node}/pause";
/// Resume a node.
pub const NODE_RESUME: &str = "/v1/namespaces/{ns}/nodes/{node}/resume";
/// A node that is expected to join.
pub const NODE_EXPECTED: &str = "/v1/namespaces/{ns}/nodes/{node}/expected";
/// Nodes that are expected, and joined ones that are silent.
pub const SILENT_NODES: &str = "/v1/namespaces/{ns}/silent-nodes";
/// Tell a node nothing new.
pub const NODE_CORDON: &str = "/v1/namespaces/{ns}/nodes/{node}/cordon";
/// Tell a node nothing new, and let what it offers serve nobody else.
pub const NODE_DRAIN: &str = "/v1/namespaces/{ns}/nodes/{node}/drain";
/// End a cordon or a draining.
pub const NODE_UNCORDON: &str = "/v1/namespaces/{ns}/nodes/{node}/uncordon";
/// Decommission a node.
pub const NODE_DECOMMISSION: &str = "/v1/namespaces/{ns}/nodes/{node}/decommission";
/// What a node says it saw.
pub const NODE_REPORT: &str = "/v1/namespaces/{ns}/nodes/{node}/report";
/// What a node offers.
pub const NODE_REGISTRATIONS: &str = "/v1/namespaces/{ns}/nodes/{node}/registrations";
/// All services; blocking with `?index=&wait=`.
pub const SERVICES: &str = "/v1/namespaces/{ns}/services";
/// One service with its instances; blocking with `?index=&wait=`.
pub const SERVICE: &str = "/v1/namespaces/{ns}/services/{service}";
/// The targets of a service, as Prometheus' HTTP discovery asks for them.
pub const HTTP_SD: &str = "/v1/namespaces/{ns}/http-sd";
/// What only so many may do at once.
pub const SLOTS: &str = "/v1/namespaces/{ns}/slots";
/// One slot; blocking with `?index=&wait=`.
pub const SLOT: &str = "/v1/namespaces/{ns}/slots/{slot}";
/// Take a slot, or hold it longer.
pub const SLOT_ACQUIRE: &str = "/v1/namespaces/{ns}/slots/{slot}/acquire";
/// Hold a slot longer, as that very holding.
pub const SLOT_RENEW: &str = "/v1/namespaces/{ns}/slots/{slot}/renew";
/// Give a slot back.
pub const SLOT_RELEASE: &str = "/v1/namespaces/{ns}/slots/{slot}/release";
/// Take a slot from its holder.
pub const SLOT_FORCE_RELEASE: &str = "/v1/namespaces/{ns}/slots/{slot}/force-release";
/// The FleetLock protocol, over slot `reboot` of namespace `default`: take one's turn.
pub const PRE_REBOOT: &str = "/v1/pre-reboot";
/// The FleetLock protocol, over slot `reboot` of namespace `default`: it is done.
pub const STEADY_STATE: &str = "/v1/steady-state";
/// The FleetLock protocol, over a slot: take one's turn.
pub const SLOT_PRE_REBOOT: &str = "/v1/namespaces/{ns}/slots/{slot}/v1/pre-reboot";
/// The FleetLock protocol, over a slot: it is done.
pub const SLOT_STEADY_STATE: &str = "/v1/namespaces/{ns}/slots/{slot}/v1/steady-state";
/// A node's hanging request for its order.
pub const NODE_ORDER: &str = "/v1/namespaces/{ns}/nodes/{node}/order";
/// Set one status of a node.
pub const NODE_STATUS: &str = "/v1/namespaces/{ns}/nodes/{node}/statuses/{category}";
/// What failed across a namespace, and what is silent.
pub const FAILURES: &str = "/v1/namespaces/{ns}/failures";
/// The kept logs of a node's failing runs.
pub const NODE_LOGS: &str = "/v1/namespaces/{ns}/nodes/{node}/logs";
/// The kept log of a node's last failing run of a category and entity.
pub const NODE_LOG: &str = "/v1/namespaces/{ns}/nodes/{node}/logs/{category}/{entity}";
/// On the agent's own socket, like everything below `/v1/agent/`: what this machine's agent is about.
pub const AGENT_STATUS: &str = "/v1/agent/status";
/// On the agent's own socket: one status of this machine.
pub const AGENT_STATUSES: &str = "/v1/agent/statuses/{category}";
/// On the agent's own socket: the services of this machine; PUT registers one.
pub const AGENT_SERVICES: &str = "/v1/agent/services";
/// On the agent's own socket: one service of this machine, by its id.
pub const AGENT_SERVICE: &str = "/v1/agent/services/{id}";
/// On the agent's own socket: how a service does, for its only check with a ttl.
pub const AGENT_TTL_UPDATE: &str = "/v1/agent/services/{id}/ttl";
/// On the agent's own socket: how a service does, for one check.
pub const AGENT_CHECK_TTL_UPDATE: &str = "/v1/agent/services/{id}/checks/{check}/ttl";
/// On the agent's own socket: its copy of the catalogue, whole.
pub const AGENT_CATALOGUE: &str = "/v1/agent/catalogue";
/// On the agent's own port, like what follows: the targets of a service, for Prometheus' HTTP discovery.
pub const AGENT_HTTP_SD: &str = "/v1/http-sd";
/// In Consul's form: names of all services with their tags.
pub const CONSUL_SERVICES: &str = "/v1/catalog/services";
/// In Consul's form: where a service is.
pub const CONSUL_SERVICE: &str = "/v1/catalog/service/{service}";
/// In Consul's form: all nodes.
pub const CONSUL_NODES: &str = "/v1/catalog/nodes";
/// In Consul's form: a node and what it offers.
pub const CONSUL_NODE: &str = "/v1/catalog/node/{node}";
/// In Consul's form: the one datacentre there is.
pub const CONSUL_DATACENTRES: &str = "/v1/catalog/datacenters";
/// In Consul's form: where a service is, and how it does.
pub const CONSUL_HEALTH_SERVICE: &str = "/v1/health/service/{service}";
/// In Consul's form: how a node does, and what it offers.
pub const CONSUL_HEALTH_NODE: &str = "/v1/health/node/{node}";
/// In Consul's form: who this agent is.
pub const CONSUL_SELF: &str = "/v1/agent/self";
/// In Consul's form: who answers for the catalogue.
pub const CONSUL_LEADER: &str = "/v1/status/leader";
/// All entities.
pub const ENTITIES: &str = "/v1/namespaces/{ns}/entities";
/// One entity.
pub const ENTITY: &str = "/v1/namespaces/{ns}/entities/{entity}";
/// An entity's targets and their states.
pub const TARGETS: &str = "/v1/namespaces/{ns}/entities/{entity}/targets";
/// What a controller saw of an entity's external targets; answers what each is to run.
pub const ORCHESTRATE: &str = "/v1/namespaces/{ns}/entities/{entity}/orchestrate";
/// What a controller saw of an entity's external targets; answers nothing.
pub const REPORTS: &str = "/v1/namespaces/{ns}/entities/{entity}/reports";
/// An entity's rollouts, newest first; POST starts one.
pub const ROLLOUTS: &str = "/v1/namespaces/{ns}/entities/{entity}/rollouts";
/// One rollout of an entity.
pub const ROLLOUT: &str = "/v1/namespaces/{ns}/entities/{entity}/rollouts/{number}";
/// The rollout that runs, or the last one; blocking with `?index=&wait=`.
pub const ROLLOUT_CURRENT: &str = "/v1/namespaces/{ns}/entities/{entity}/rollout";
/// What a rollout of an entity would bring.
pub const PLAN: &str = "/v1/namespaces/{ns}/entities/{entity}/plan";
/// Something done to the current rollout: pause, resume, approve, abort, undo, retry.
pub const ROLLOUT_OPERATION: &str = "/v1/namespaces/{ns}/entities/{entity}/rollout/{operation}";
/// All freezes of a namespace, and those that hold in every one.
pub const FREEZES: &str = "/v1/namespaces/{ns}/freezes";
/// One freeze of a namespace.
pub const FREEZE: &str = "/v1/namespaces/{ns}/freezes/{freeze}";
/// All freezes that hold in every namespace.
pub const GLOBAL_FREEZES: &str = "/v1/freezes";
/// One freeze that holds in every namespace.
pub const GLOBAL_FREEZE: &str = "/v1/freezes/{freeze}";
/// Documents are applied in one transaction: created, changed, pruned.
pub const APPLY: &str = "/v1/namespaces/{ns}/apply";
/// Every object that can be applied, as documents.
pub const DOCUMENTS: &str = "/v1/namespaces/{ns}/documents";
/// All pauses of nodes that a selector picks.
pub const PAUSES: &str = "/v1/namespaces/{ns}/pauses";
/// One of them.
pub const PAUSE: &str = "/v1/namespaces/{ns}/pauses/{pause}";
/// All profiles.
pub const PROFILES: &str = "/v1/namespaces/{ns}/profiles";
/// One profile.
pub const PROFILE: &str = "/v1/namespaces/{ns}/profiles/{profile}";
/// A profile's revisions, newest first.
pub const PROFILE_REVISIONS: &str = "/v1/namespaces/{ns}/profiles/{profile}/revisions";
/// One revision of a profile, with its params.
pub const PROFILE_REVISION: &str = "/v1/namespaces/{ns}/profiles/{profile}/revisions/{number}";
/// Events; `?after=&wait=&limit=`.
pub const EVENTS: &str = "/v1/namespaces/{ns}/events";
/// Events as server-sent events, resumable with `?after=` or `Last-Event-ID`.
pub const EVENTS_STREAM: &str = "/v1/namespaces/{ns}/events/stream";
/// Why something waits: `node/NAME`, `entity/NAME`, `service/NAME`, `target/ENTITY/NAME`, `slot/NAME`.
pub const WHY: &str = "/v1/namespaces/{ns}/why/{*subject}";

/// Whether a path is one of the FleetLock protocol.
#[must_use]
pub fn is_fleet_lock(path: &str) -> bool {
    path.ends_with(PRE_REBOOT) || path.ends_with(STEADY_STATE)
}

/// A route with its parameters filled in, in order. Values are percent-encoded.
#[must_use]
pub fn fill(route: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let parts = route.split('/').map(|part| {
        if !part.starts_with('{') {
            return part.to_owned();
        }
        let value = values.next().copied().unwrap_or_default();
        if part.starts_with("{*") {
            value.split('/').map(encode).collect::<Vec<_>>().join("/")
        } else {
            encode(value)
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Percent-encodes everything but unreserved characters (RFC 3986).
#[must_use]
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_filled_in_order_and_encoded() {
        assert_eq!(
            fill(NODE_STATUS, &["default", "web-1", "a b"]),
            "/v1/namespaces/default/nodes/web-1/statuses/a%20b"
        );
        assert_eq!(fill(WHY, &["default", "node/w%"]), "/v1/namespaces/default/why/node/w%25");
    }
}
