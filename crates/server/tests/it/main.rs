//! The server from the outside: over TLS, with tokens and certificates, on a store on disk.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops where it is wrong; clippy's own exception knows only functions marked as tests"
)]

mod access;
mod apply;
mod authentication_failures;
mod authorities;
mod backups;
mod backups_etcd;
mod bad_input;
mod classes;
mod clocks;
mod clusters;
mod consistency;
mod contract;
mod decommissions;
mod discovery;
mod durable;
mod ensemble_keys;
mod ensemble_restores;
mod ensembles;
mod etcd_members;
mod events;
mod external;
mod external_time;
mod facts;
mod features;
mod filters;
mod freezes;
mod harness;
mod hidden;
mod hidden_params;
mod hook_addresses;
mod hooked;
mod hooks;
mod job_logs;
mod large_bodies;
mod lesser_rights;
mod lists;
mod monitoring;
mod monitors;
mod namespaces;
mod node_params;
mod numbers;
mod openapi;
mod params;
mod pauses;
mod plans;
mod policies;
mod profile_writers;
mod profiles;
mod quotas;
mod reactions;
mod restores;
mod rights;
mod rollouts;
mod rounds;
mod routes;
mod runs;
mod schedules;
mod secrets;
mod server_join;
mod services;
mod several;
mod sink_secrets;
mod sinks;
mod slow_bodies;
mod statuses;
mod transfer;
mod workflows;
