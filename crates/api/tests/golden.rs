//! Golden samples: one per shape that is kept or sent. Each must be read for ever, and be written back as it was read.
//!
//! A sample that no longer parses is a breaking change: add a `v2` beside `v1` instead.

use std::path::Path;

use bellwether_api::problem::Problem;
use bellwether_api::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the sample into the shape, through `there` and back, and compares.
#[expect(clippy::unwrap_used, reason = "a sample that does not parse has failed the test")]
fn holds<S: DeserializeOwned + Serialize>(name: &str, there_and_back: impl Fn(S) -> S) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    let sample: Value = serde_json::from_str(&text).unwrap();
    let shape: S = serde_json::from_value(sample.clone()).unwrap();
    let written = serde_json::to_value(there_and_back(shape)).unwrap();
    assert_eq!(written, sample, "{name} is no longer written as it was read");
}

/// Through the domain's own type and back.
macro_rules! round_trip {
    ($($name:literal: $shape:ty => $domain:ty;)*) => {
        #[test]
        fn every_kept_shape_survives_its_domain_type() {
            $(holds::<$shape>($name, |shape| {
                let domain = <$domain>::try_from(shape).expect("the sample is valid");
                (&domain).into()
            });)*
        }
    };
}

round_trip! {
    "node": v1::node::Node => bellwether_core::records::node::Node;
    "node_of_some_services": v1::node::Node => bellwether_core::records::node::Node;
    "node_of_no_service": v1::node::Node => bellwether_core::records::node::Node;
    "node_probes": v1::probes::NodeProbes => bellwether_core::records::probes::NodeProbes;
    "node_facts": v1::facts::NodeFacts => bellwether_core::records::facts::NodeFacts;
    "node_rescanned": v1::node::Node => bellwether_core::records::node::Node;
    "order_with_failed_runs": v1::order::Order => bellwether_core::records::order::Order;
    "order_with_services": v1::order::Order => bellwether_core::records::order::Order;
    "order_with_rescan": v1::order::Order => bellwether_core::records::order::Order;
    "node_drained": v1::node::Node => bellwether_core::records::node::Node;
    "node_draining": v1::node::Node => bellwether_core::records::node::Node;
    "presence": v1::node::Presence => bellwether_core::records::node::Presence;
    "report_of_every_status": v1::report::Report => bellwether_core::records::report::Report;
    "annotation": v1::annotation::Annotation => bellwether_core::records::annotation::Annotation;
    "node_log": v1::log::NodeLog => bellwether_core::records::log::NodeLog;
    "report": v1::report::Report => bellwether_core::records::report::Report;
    "cluster": v1::cluster::stored::StoredCluster => bellwether_core::records::cluster::Cluster;
    "cluster_of_a_list": v1::cluster::stored::StoredCluster => bellwether_core::records::cluster::Cluster;
    "cluster_discovery": v1::cluster::discovery::StoredClusterDiscovery => bellwether_core::records::discovery::ClusterDiscovery;
    "cluster_roles_of_decommissioned_host": v1::cluster::stored::StoredClusterRoles => bellwether_core::records::cluster::ClusterRoles;
    "cluster_view": v1::cluster::stored_view::StoredClusterView => bellwether_core::records::cluster_view::ClusterView;
    "cluster_roles": v1::cluster::stored::StoredClusterRoles => bellwether_core::records::cluster::ClusterRoles;
    "order": v1::order::Order => bellwether_core::records::order::Order;
    "entity": v1::entity::Entity => bellwether_core::records::entity::Entity;
    "entity_of_every_field": v1::entity::Entity => bellwether_core::records::entity::Entity;
    "entity_of_profile": v1::entity::Entity => bellwether_core::records::entity::Entity;
    "entity_of_action": v1::entity::Entity => bellwether_core::records::entity::Entity;
    "entity_of_workflow": v1::entity::Entity => bellwether_core::records::entity::Entity;
    "entity_external": v1::entity::Entity => bellwether_core::records::entity::Entity;
    "external": v1::external::ExternalTarget => bellwether_core::records::external::ExternalTarget;
    "controllers": v1::external::Controllers => bellwether_core::records::external::Controllers;
    "wait_cycles": v1::wait_cycle::WaitCycles => bellwether_core::records::wait_cycle::WaitCycles;
    "registrations": v1::registrations::ServiceRegistrations => bellwether_core::records::registrations::ServiceRegistrations;
    "known_service": v1::registrations::KnownService => bellwether_core::records::registrations::KnownService;
    "order_of_every_method": v1::order::Order => bellwether_core::records::order::Order;
    "profile": v1::profile::Profile => bellwether_core::records::profile::Profile;
    "profile_live": v1::profile::Profile => bellwether_core::records::profile::Profile;
    "profile_deleted": v1::profile::Profile => bellwether_core::records::profile::Profile;
    "progress": v1::progress::Progress => bellwether_core::records::progress::Progress;
    "rollout": v1::rollout::Rollout => bellwether_core::records::rollout::Rollout;
    "rollout_in_stages": v1::rollout::Rollout => bellwether_core::records::rollout::Rollout;
    "hook_answers": v1::hook_answers::HookAnswers => bellwether_core::records::hook_answers::HookAnswers;
    "target": v1::target::TargetState => bellwether_core::records::target::TargetState;
    "target_running": v1::target::TargetState => bellwether_core::records::target::TargetState;
    "target_silent": v1::target::TargetState => bellwether_core::records::target::TargetState;
    "target_overdue": v1::target::TargetState => bellwether_core::records::target::TargetState;
    "event": v1::event::Event => bellwether_core::records::event::Event;
    "event_with_its_cause": v1::event::Event => bellwether_core::records::event::Event;
        "ensemble": v1::ensemble::Ensemble => bellwether_core::records::ensemble::Ensemble;
        "ensemble_members": v1::ensemble::members::StoredEnsembleMembers => bellwether_core::records::ensemble_members::EnsembleMembers;
        "schedule": v1::schedule::Schedule => bellwether_core::records::schedule::Schedule;
        "reaction": v1::reaction::Reaction => bellwether_core::records::reaction::Reaction;
        "sink": v1::sink::Sink => bellwether_core::records::sink::Sink;
        "sink_of_file": v1::sink::Sink => bellwether_core::records::sink::Sink;
        "sink_state": v1::sink::state::SinkState => bellwether_core::records::sink_state::SinkState;
        "filter": v1::filter::Filter => bellwether_core::records::filter::SavedFilter;
    "freeze": v1::freeze::Freeze => bellwether_core::records::freeze::Freeze;
    "presence_held": v1::node::Presence => bellwether_core::records::node::Presence;
    "server": v1::server::Server => bellwether_core::records::server::Server;
    "leader": v1::server::Leader => bellwether_core::records::server::Leader;
    "pause": v1::pause::Pause => bellwether_core::records::pause::NodePause;
    "slot_fenced": v1::slot::Slot => bellwether_core::records::slot::Slot;
    "slot": v1::slot::Slot => bellwether_core::records::slot::Slot;
    "token": v1::access::StoredToken => bellwether_core::records::token::Token;
    "token_limited": v1::access::StoredToken => bellwether_core::records::token::Token;
    "stored_authorities": v1::authorities::StoredAuthorities => bellwether_core::records::authorities::Authorities;
    "node_of_an_authority": v1::node::Node => bellwether_core::records::node::Node;
    "join_token_of_an_authority": v1::access::StoredJoinToken => bellwether_core::records::token::JoinToken;
    "role": v1::role::StoredRole => bellwether_core::access::Role;
    "stored_secret": v1::secret::StoredSecret => bellwether_core::records::secret::Secret;
    "stored_secret_of_provider": v1::secret::StoredSecret => bellwether_core::records::secret::Secret;
    "join_token": v1::access::StoredJoinToken => bellwether_core::records::token::JoinToken;
    "join_token_of_server": v1::access::StoredJoinToken => bellwether_core::records::token::JoinToken;
    "join_token_with_labels": v1::access::StoredJoinToken => bellwether_core::records::token::JoinToken;
}

#[test]
fn every_state_of_a_rollout_survives_its_domain_type() {
    holds::<Vec<v1::rollout::RolloutStatus>>("rollout_states", |shapes| {
        let there = |shape| {
            bellwether_core::records::rollout::RolloutState::try_from(shape).expect("the sample is valid")
        };
        shapes.into_iter().map(there).map(|state| v1::rollout::RolloutStatus::from(&state)).collect()
    });
}

#[test]
fn a_declared_param_survives_its_domain_type() {
    holds::<v1::param::StoredParam>("param", |shape| {
        let domain =
            bellwether_core::records::param::ParamDeclaration::try_from(shape).expect("the sample is valid");
        v1::param::StoredParam::try_from(&domain).expect("what is kept is JSON")
    });
}

#[test]
fn a_definition_a_run_and_its_jobs_survive_their_domain_types() {
    holds::<v1::workflow::StoredDefinition>("definition", |shape| {
        let domain =
            bellwether_core::records::definition::Definition::try_from(shape).expect("the sample is valid");
        v1::workflow::StoredDefinition::try_from(&domain).expect("what is kept is JSON")
    });
    for name in ["run", "run_with_features"] {
        holds::<v1::run::StoredRun>(name, |shape| {
            let domain = bellwether_core::records::run::Run::try_from(shape).expect("the sample is valid");
            v1::run::StoredRun::try_from(&domain).expect("what is kept is JSON")
        });
    }
    for name in ["jobs", "jobs_with_outputs", "jobs_with_skipped"] {
        holds::<v1::job::StoredJobs>(name, |shape| {
            let domain =
                bellwether_core::records::job::NodeJobs::try_from(shape).expect("the sample is valid");
            v1::job::StoredJobs::from(&domain)
        });
    }
    holds::<v1::task_list::StoredTaskList>("task_list", |shape| {
        let domain =
            bellwether_core::records::task_list::TaskList::try_from(shape).expect("the sample is valid");
        v1::task_list::StoredTaskList::try_from(&domain).expect("what is kept is JSON")
    });
    holds::<v1::not_runnable::NotRunnable>("not_runnable", |shape| {
        let domain = bellwether_core::records::not_runnable::NotRunnable::try_from(shape)
            .expect("the sample is valid");
        v1::not_runnable::NotRunnable::from(&domain)
    });
}

#[test]
fn the_params_of_a_node_survive_their_domain_type() {
    holds::<v1::node_params::StoredNodeParams>("node_params", |shape| {
        let domain =
            bellwether_core::records::node_params::NodeParams::try_from(shape).expect("the sample is valid");
        v1::node_params::StoredNodeParams::try_from(&domain).expect("what is kept is JSON")
    });
}

#[test]
fn a_profiles_revision_survives_its_domain_type() {
    holds::<v1::profile::StoredProfileRevision>("profile_revision", |shape| {
        let domain =
            bellwether_core::records::profile::ProfileRevision::try_from(shape).expect("the sample is valid");
        v1::profile::StoredProfileRevision::try_from(&domain).expect("what is kept is JSON")
    });
}

#[test]
fn every_shape_of_sinks_and_reactions_is_written_as_it_is_read() {
    holds::<v1::reaction::test::TestReaction>("reaction_test", |shape| shape);
    holds::<v1::reaction::test::ReactionTest>("reaction_tested", |shape| shape);
    holds::<v1::sink::SinkSpec>("sink_spec", |shape| shape);
    holds::<v1::sink::EnableSink>("sink_enabled", |shape| shape);
    holds::<v1::sink::ReplayEvents>("sink_replay", |shape| shape);
    holds::<v1::sink::SinkTest>("sink_test", |shape| shape);
    holds::<v1::cloud_event::CloudEvent>("cloud_event", |shape| shape);
    holds::<v1::cloud_event::CloudEvent>("cloud_event_with_its_cause", |shape| shape);
    holds::<v1::event::EventChain>("event_chain", |shape| shape);
}

#[test]
fn every_shape_of_ensembles_is_written_as_it_is_read() {
    holds::<v1::ensemble::EnsembleSpec>("ensemble_spec", |shape| shape);
    holds::<v1::ensemble::EnsembleSpec>("ensemble_spec_adopting", |shape| shape);
    holds::<v1::ensemble::adoption::RemoveForeignMember>("ensemble_remove_foreign_member", |shape| shape);
    holds::<v1::ensemble::Ensemble>("ensemble_view", |shape| shape);
    holds::<v1::ensemble::PlanEnsemble>("ensemble_plan", |shape| shape);
    holds::<v1::ensemble::PlanEnsemble>("ensemble_plan_of_deletion", |shape| shape);
    holds::<v1::ensemble::PlanEnsemble>("ensemble_plan_of_size", |shape| shape);
    holds::<v1::ensemble::PlanEnsemble>("ensemble_plan_of_replacement", |shape| shape);
    holds::<v1::ensemble::ScaleEnsemble>("ensemble_scale", |shape| shape);
    holds::<v1::ensemble::requests::ReplaceMember>("ensemble_replace", |shape| shape);
    holds::<v1::ensemble::requests::RollMembers>("ensemble_restart", |shape| shape);
    holds::<v1::ensemble::snapshots::TakeSnapshot>("ensemble_snapshot", |shape| shape);
}

#[test]
fn every_sent_shape_of_authorities_is_written_as_it_is_read() {
    holds::<v1::order::OrderPoll>("order_poll_with_authorities", |shape| shape);
    holds::<v1::authorities::Authorities>("authorities", |shape| shape);
    holds::<v1::authorities::ChangeAuthorities>("change_authorities", |shape| shape);
    holds::<v1::authorities::TrustBundle>("trust_bundle", |shape| shape);
}

#[test]
fn every_sent_shape_is_written_as_it_is_read() {
    holds::<Problem>("problem", |shape| shape);
    holds::<v1::secret::Secret>("secret", |shape| shape);
    holds::<v1::schedule::ScheduleSpec>("schedule_spec", |shape| shape);
    holds::<v1::reaction::ReactionSpec>("reaction_spec", |shape| shape);
    holds::<v1::filter::FilterSpec>("filter_spec", |shape| shape);
    holds::<v1::secret::SecretSpec>("secret_spec", |shape| shape);
    holds::<v1::secret::RevealedSecret>("revealed_secret", |shape| shape);
    holds::<v1::secret::NodeSecrets>("node_secrets", |shape| shape);
    holds::<v1::secret::SecretKeys>("secret_keys", |shape| shape);
    holds::<v1::facts::RequestedRescan>("requested_rescan", |shape| shape);
    holds::<v1::apply::ApplyRequest>("apply_request", |shape| shape);
    holds::<v1::apply::Applied>("applied", |shape| shape);
    holds::<v1::node::SilentNode>("silent_node", |shape| shape);
    holds::<v1::log::NewLog>("new_log", |shape| shape);
    holds::<v1::local::NewStatus>("local_new_status", |shape| shape);
    holds::<v1::failure::Failures>("failures", |shape| shape);
    holds::<v1::order::OrderPoll>("order_poll", |shape| shape);
    holds::<v1::order::OrderPoll>("order_poll_with_servers", |shape| shape);
    holds::<v1::order::OrderPoll>("order_poll_with_params", |shape| shape);
    holds::<v1::access::Join>("join", |shape| shape);
    holds::<v1::rollout::NewRollout>("new_rollout", |shape| shape);
    holds::<v1::rollout::NewRollout>("new_rollout_of_the_newest", |shape| shape);
    holds::<v1::rollout::StartedRollout>("started", |shape| shape);
    holds::<v1::entity::EntitySpec>("entity_spec", |shape| shape);
    holds::<v1::entity::EntitySpec>("entity_spec_of_profile", |shape| shape);
    holds::<v1::entity::EntitySpec>("entity_spec_external", |shape| shape);
    holds::<v1::external::TargetReports>("reports", |shape| shape);
    holds::<v1::external::ExpectedVersions>("orchestrated", |shape| shape);
    holds::<v1::http_sd::TargetGroup>("target_group", |shape| shape);
    holds::<v1::service::ServiceView>("service_view", |shape| shape);
    holds::<v1::service::ServiceSummary>("service_summary", |shape| shape);
    holds::<v1::service::CatalogueUpdate>("catalogue_update", |shape| shape);
    holds::<v1::rollout::RolloutOperation>("act", |shape| shape);
    holds::<v1::freeze::FreezeSpec>("freeze_spec", |shape| shape);
    holds::<v1::freeze::FreezeView>("freeze_view", |shape| shape);
    holds::<v1::server::ServerTime>("time", |shape| shape);
    holds::<v1::server::ControlPlane>("control_plane", |shape| shape);
    holds::<v1::server::StoreStatus>("store_with_warnings", |shape| shape);
    holds::<v1::slot::SlotSpec>("slot_spec", |shape| shape);
    holds::<v1::slot::ForceRelease>("slot_force", |shape| shape);
    holds::<v1::slot::SlotView>("slot_view", |shape| shape);
    holds::<v1::slot::AcquireSlot>("slot_acquire", |shape| shape);
    holds::<v1::slot::RenewSlot>("slot_renew", |shape| shape);
    holds::<v1::slot::ReleaseSlot>("slot_release", |shape| shape);
    holds::<v1::slot::SlotGrant>("slot_grant", |shape| shape);
    holds::<v1::pause::PauseSpec>("pause_spec", |shape| shape);
    holds::<v1::pause::PauseView>("pause_view", |shape| shape);
    holds::<v1::pause::Resumed>("resumed", |shape| shape);
    holds::<v1::slot::FleetLock>("fleet_lock", |shape| shape);
    holds::<v1::slot::FleetLockError>("fleet_lock_error", |shape| shape);
    holds::<v1::profile::ParamsPatch>("profile_patch", |shape| shape);
    holds::<v1::profile::ParamsSpec>("profile_spec", |shape| shape);
    holds::<v1::target::TargetView>("target_view", |shape| shape);
    holds::<v1::rollout::RolloutView>("rollout_view", |shape| shape);
    holds::<v1::overview::Overview>("overview", |shape| shape);
    holds::<v1::overview::Overview>("overview_with_store", |shape| shape);
    holds::<v1::why::Why>("why", |shape| shape);
}

#[test]
fn every_state_of_a_rollout_reads_back_as_itself() {
    use bellwether_core::records::rollout::RolloutState as Domain;
    let states = [
        r#"{"state":"in_progress"}"#,
        r#"{"state":"waiting","waiting":{"kind":"only_suspect"}}"#,
        r#"{"paused":{"by":"kim","kind":"person","reason":"lunch"},"state":"paused"}"#,
        r#"{"paused":{"failed":2,"kind":"too_many_failed","tolerated":1},"state":"paused"}"#,
        r#"{"paused":{"failed":2,"kind":"no_known_good","tolerated":1},"state":"paused"}"#,
        r#"{"paused":{"failing":2,"kind":"only_failing_before"},"state":"paused"}"#,
        r#"{"paused":{"kind":"too_many_unreachable","tolerated":1,"unreachable":2},"state":"paused"}"#,
        r#"{"state":"rolling_back"}"#,
        r#"{"state":"succeeded"}"#,
        r#"{"failed":1,"state":"partially_succeeded"}"#,
        r#"{"failed":2,"state":"failed"}"#,
        r#"{"state":"rolled_back"}"#,
        r#"{"failed":1,"state":"rollback_failed"}"#,
        r#"{"aborted":{"by":"kim","reason":""},"state":"aborted"}"#,
        r#"{"state":"superseded","superseded_by":7}"#,
    ];
    for text in states {
        let shape: v1::rollout::RolloutStatus = serde_json::from_str(text).expect("a known state");
        let domain = Domain::try_from(shape).expect("a valid state");
        let written =
            serde_json::to_value(v1::rollout::RolloutStatus::from(&domain)).expect("a state is JSON");
        assert_eq!(written.to_string(), text);
    }
}

#[test]
fn every_question_to_a_controller_and_its_answer_is_written_as_it_is_read() {
    holds::<v1::hook::Select>("hook_select", |shape| shape);
    holds::<v1::hook::HookSelected>("hook_selected", |shape| shape);
    holds::<v1::hook::Approve>("hook_approve", |shape| shape);
    holds::<v1::hook::HookApproved>("hook_approved", |shape| shape);
    holds::<v1::hook::Judge>("hook_judge", |shape| shape);
    holds::<v1::hook::HookJudged>("hook_judged", |shape| shape);
    holds::<v1::hook::Remove>("hook_remove", |shape| shape);
    holds::<v1::hook::HookRemoved>("hook_removed", |shape| shape);
    holds::<v1::hook::Watch>("hook_watch", |shape| shape);
    holds::<v1::hook::HookMonitored>("hook_watched", |shape| shape);
}

#[test]
fn the_policy_in_the_guide_to_hooks_is_one() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/hooks.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, rest) = text.split_once("```json\n").expect("a block of JSON");
    let (block, _) = rest.split_once("```").expect("the end of the block");
    let policy: v1::policy::Policy = serde_json::from_str(block).unwrap();
    bellwether_core::records::policy::Policy::try_from(&policy).expect("it is valid");
}

#[test]
fn a_number_with_more_digits_than_are_kept_is_read_as_the_nearest_and_again_as_the_same() {
    let read: Value = serde_json::from_str("931.11111111111111111115").unwrap();
    let again: Value = serde_json::from_str(&read.to_string()).unwrap();
    assert_eq!(again, read);
}
