//! Stories: the program as a user has it, real processes, real services.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it is wrong; clippy's own exception knows only functions marked as tests"
)]

mod apply;
mod apply_lines;
mod backup;
mod bed;
mod commands;
mod demo;
mod export;
mod filtered_events;
mod fleet;
mod fleet_verbs;
mod freezes;
mod guide;
mod laws;
mod linear;
mod output;
mod place;
mod server_join;
mod services;
mod shapes;
mod simulate;

mod profiles;
mod redis_client;
mod standstill;
mod story_authority;
mod story_boots;
mod story_by_hand;
mod story_ceph;
mod story_chained_replicas;
mod story_clocks;
mod story_clusters;
mod story_conditions;
mod story_cut_off;
mod story_databases;
mod story_descriptors;
mod story_doctor;
mod story_ensemble_adopted;
mod story_ensemble_foundation;
mod story_ensemble_replaced;
mod story_ensemble_restarted;
mod story_ensemble_restored;
mod story_ensemble_snapshots;
mod story_ensembles;
mod story_exec_probes;
mod story_facts;
mod story_files;
mod story_founded_anew;
mod story_guard;
mod story_handover;
mod story_haproxy;
mod story_hosts;
mod story_independent;
mod story_job_logs;
mod story_jobs;
mod story_limits;
mod story_live_params;
mod story_lock_guard;
mod story_lock_race;
mod story_lock_servers;
mod story_locks;
mod story_nginx;
mod story_osd;
mod story_outage;
mod story_outputs;
mod story_outside_managers;
mod story_probes;
mod story_process_logs;
mod story_profile;
mod story_puppet;
mod story_race;
mod story_reactions;
mod story_redis_by_hand;
mod story_redis_cut_off;
mod story_redis_ensemble;
mod story_redis_full;
mod story_redis_passwords;
mod story_redis_power;
mod story_redis_replaced;
mod story_redis_restarted;
mod story_reload;
mod story_restart;
mod story_restore;
mod story_roles;
mod story_schedules;
mod story_secrets;
mod story_sentinel;
mod story_servers;
mod story_set_back;
mod story_sinks;
mod story_slots;
mod story_stale;
mod story_store;
mod story_systemd;
mod story_task_lists;
mod story_templates;
mod story_undo;
mod story_workflows;
mod strange_input;
mod written;
