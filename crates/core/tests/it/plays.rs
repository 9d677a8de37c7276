//! Every file in `scenarios/` is a test of its name: the rows of the engine's truth table and the cases that broke others.

macro_rules! plays {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            crate::play::perform(include_str!(concat!("scenarios/", stringify!($name), ".txt")));
        })*

        #[test]
        fn every_play_is_performed() {
            let listed: Vec<_> = [$(stringify!($name)),*].map(|name| format!("{name}.txt")).into();
            assert_eq!(files(), listed);
        }
    };
}

plays! {
    a_bad_version_in_the_first_stage_touches_nobody_else
    a_bad_version_is_bad_beside_a_target_that_was_failing_before
    a_bad_version_that_pauses_never_keeps_the_next_one_waiting
    a_batch_is_dispatched_when_it_opens
    a_broken_machine_does_not_exhaust_the_progress_limit
    a_cluster_that_fell_apart_waits
    a_crash_never_leaves_more_in_flight_than_the_batch
    a_deadline_at_the_beginning_of_time
    a_domain_has_its_own_budget_of_unavailable_ones
    a_domain_nobody_carries_is_a_stated_wait
    a_domain_waits_for_the_followers_in_another
    a_failed_rollback_has_its_own_state
    a_failed_rollout_does_not_poison_the_next
    a_failing_fleet_is_mended_by_the_next_version
    a_failure_after_success_counts_until_the_version_is_good
    a_failure_in_the_soak_that_nobody_saw_counts
    a_failure_in_the_soak_that_nobody_saw_without_fail_fast
    a_failure_that_is_mended_ends_no_pause_of_a_person
    a_failure_that_is_over_is_not_shown_after_the_end
    a_freeze_by_label_holds_those_on_a_replaced_version_too
    a_freeze_by_label_skips_its_targets
    a_freeze_ends_by_itself
    a_freeze_holds_turns_and_lets_rollbacks_go_on
    a_freeze_of_another_entity_holds_nothing
    a_good_version_gets_through_when_the_stable_one_is_broken
    a_held_target_does_not_hold_up_a_rollback
    a_held_target_is_skipped_and_its_deadline_stands_still
    a_label_that_changes_moves_the_target_to_its_new_domain
    a_late_acceptance_has_its_whole_deadline
    a_late_failure_is_reported_and_never_rolled_back
    a_monitor_is_called_again_after_every_batch
    a_monitor_is_called_before_a_version_is_good
    a_monitor_that_cannot_be_reached_pauses
    a_monitor_that_fails_twice_in_a_row_takes_the_version_back
    a_new_version_during_a_rollback_waits_for_its_end
    a_new_version_during_the_first_batch_turns_it_round
    a_new_version_is_refused_when_the_policy_says_refuse
    a_new_version_replaces_the_one_under_way
    a_new_version_waits_when_the_policy_says_finish
    a_pause_does_not_eat_the_deadline
    a_pause_ends_when_what_failed_is_tried_again_and_succeeds
    a_person_ends_a_rollout_without_evidence
    a_person_lets_silent_targets_pass
    a_policy_changed_on_the_way_applies_from_the_next_pass
    a_quorum_of_voters_stays_up
    a_report_after_an_outage_counts_at_once
    a_report_from_before_it_left_is_old_news
    a_request_that_crossed_with_the_bad_news_disturbs_nothing
    a_request_that_crossed_with_the_bad_news_is_refused
    a_restart_of_the_agent_excuses_no_failing_check
    a_resume_lets_pass_what_was_seen_and_no_more
    a_retry_does_not_condemn_by_a_target_that_was_failing_before
    a_retry_is_recorded_with_its_author
    a_rollback_does_not_wait_for_a_window
    a_rollback_does_not_wait_for_who_falls_silent
    a_rollback_in_any_order_does_not_wait_for_who_is_up
    a_rollback_keeps_the_limit_of_unavailable_targets
    a_rollout_begun_before_anybody_is_there_waits_for_them
    a_second_version_never_exceeds_the_batch
    a_service_that_is_needed_holds_the_next_batch
    a_shuffle_is_the_same_for_the_same_seed
    a_soak_counts_once_the_agent_confirms_it
    a_soak_that_changes_in_flight_is_measured_again
    a_soak_that_nobody_watched_is_no_success
    a_stage_waits_for_a_persons_approval
    a_stop_by_label_holds_the_way_back_of_its_targets
    a_stop_holds_everything_within_one_pass
    a_store_of_another_cluster_is_no_voter_of_this_one
    a_success_that_was_lost_again_is_none_at_the_judgement
    a_target_reports_the_version_without_an_assignment
    a_target_that_falls_back_after_the_version_is_good_is_reported
    a_target_that_falls_back_counts_until_the_version_is_good
    a_target_that_is_lost_again_is_no_progress
    a_target_that_joins_gets_last_known_good_then_its_turn
    a_target_that_leaves_in_flight_lowers_what_is_needed
    a_target_that_leaves_takes_itself_out_of_n_but_not_its_failure
    a_target_that_left_and_came_back_answers_nothing_old
    a_target_that_never_accepts_is_given_up_once
    a_target_that_recovered_just_now_was_failing_before
    a_target_that_refuses_its_orders_after_the_rollout_says_so
    a_target_that_refuses_its_orders_condemns_nothing
    a_target_that_was_failing_before_and_recovers_counts
    a_target_that_was_failing_before_is_no_evidence
    a_window_over_the_night_clocks_change_keeps_its_hours
    abort_ends_what_waits_behind_as_well
    abort_leaves_everything_as_it_is
    abort_then_a_third_version
    abort_then_the_same_version_again
    abort_when_all_targets_were_assigned
    an_abort_ends_a_pause_too
    an_abort_withdraws_from_a_target_that_ran_nothing
    an_abort_withdraws_what_was_not_begun
    an_agent_that_keeps_starting_condemns_nothing
    an_agent_that_keeps_starting_while_it_applies_condemns_nothing
    an_approval_is_for_one_rollout
    an_outage_is_no_lack_of_progress
    an_outage_of_the_servers_uses_up_no_deadline
    an_unconfirmed_soak_condemns_nothing
    approval_holds_until_it_agrees
    approval_is_for_those_it_was_asked_about
    blue_and_green_by_hooks
    blue_and_green_with_bad_green_ones_is_rolled_back
    clusters_of_one_entity_are_independent
    domains_come_in_the_order_that_was_given
    enough_successes_make_it_good_while_others_are_in_flight
    failing_during_the_soak_with_fail_fast
    failing_during_the_soak_without_fail_fast
    failing_on_a_version_that_was_never_good_is_evidence
    failure_wins_over_success_in_one_pass
    failure_without_known_good_pauses
    first_ever_version_without_known_good
    flapping_does_not_stretch_the_deadline
    health_that_nobody_sees_is_not_counted
    healthy_only_by_an_old_report_does_not_count
    healthy_without_checks_means_runs_it_and_reports_no_error
    late_failures_are_reported_only_during_the_settle_time
    members_that_are_no_targets_count_for_the_quorum
    monitoring_judges_each_target_after_its_soak
    more_failures_than_tolerated_roll_back_in_the_same_pass
    more_targets_than_are_named_are_counted
    never_more_unavailable_than_may_be
    newcomers_wait_while_a_freeze_is_in_force
    no_failure_demotes_last_known_good
    no_target_gained_for_too_long_is_a_bad_version
    no_target_is_assigned_twice_when_the_batch_grows
    no_target_version_ever_set
    nobody_can_be_reached
    nobody_succeeded_is_failed_and_not_in_part
    nobody_takes_a_turn_while_two_domains_are_in_flight
    nothing_but_targets_that_were_failing_before_is_no_evidence
    nothing_more_may_become_unavailable_and_it_says_so
    on_failure_continue_goes_to_the_end_without_a_good_version
    on_failure_continue_is_good_when_all_are_mended_by_the_end
    on_failure_continue_is_never_good_with_too_many_failures
    on_failure_pause_waits_for_a_person
    one_domain_at_a_time
    only_a_report_ends_a_soak_that_reports_prove
    only_quiet_ones_left_are_waited_for
    only_silent_ones_left_beyond_the_budget_pause_it
    only_silent_ones_left_within_the_budget_end_it
    outside_its_windows_it_waits_for_the_next_opening
    pause_stops_dispatch_and_deadlines
    requesting_the_version_under_way_again_drops_the_waiting_request
    retries_are_counted_before_a_target_has_failed
    rollback_goes_at_its_own_pace
    rollback_tells_the_silent_without_waiting_for_them
    selection_chooses_among_everyone_in_line
    selection_chooses_and_never_more_than_there_is_room_for
    selection_of_nobody_is_an_answer
    setting_back_to_last_known_good_is_an_undo
    several_are_chosen_at_once_only_as_the_quorum_allows
    silence_during_the_soak_is_not_health
    soak_of_zero
    stages_cap_how_far_it_goes
    targets_on_a_replaced_version_go_back_with_the_rest
    targets_that_are_not_as_desired_are_listed
    targets_that_leave_lower_no_budget
    targets_with_a_window_of_their_own_wait_for_it
    the_deadline_says_what_the_target_was_doing
    the_decider_dies_before_it_replaces_a_rollout
    the_decider_dies_between_decision_and_write
    the_decider_dies_when_a_rollout_has_just_ended
    the_known_bad_version_is_refused_and_retried_on_purpose
    the_leader_changes_on_the_way
    the_primary_is_updated_after_its_followers
    the_same_name_in_two_groups_is_two_targets
    the_soak_begins_with_the_assignment
    turns_go_by_label_then_name
    turns_go_by_name
    undo_after_an_abort
    undo_rolls_back_every_updated_target
    unreachable_before_its_turn_is_skipped_and_comes_after_the_others
    unreachable_in_flight_keeps_its_place_until_its_deadline
    versions_that_differ_by_case_are_different
    waiting_for_a_need_on_the_target_does_not_eat_its_deadline
    waiting_for_a_window_does_not_count_against_progress
    what_is_known_of_one_that_comes_back_is_judged_first
    what_is_unavailable_is_rolled_back_at_once
    when_everything_is_broken_a_good_version_gets_through_all_the_same
    who_is_up_is_unknown_until_the_servers_have_heard
    who_joins_after_a_rollout_that_continued_gets_its_version
    who_joins_after_the_end_gets_last_known_good
    without_fail_fast_one_that_falls_back_has_its_deadline_to_recover
    without_fail_fast_only_the_deadline_fails
    zero_targets_wait_and_never_promote
}

#[test]
fn the_decision_table_lists_every_play_once() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/decision-table.md");
    let page = std::fs::read_to_string(root).unwrap();
    let links = page.split("(../crates/core/tests/it/scenarios/").skip(1);
    let mut linked: Vec<_> = links.map(|rest| rest.split_once(')').unwrap().0.to_owned()).collect();
    linked.sort();
    assert_eq!(linked, files());
}

/// The files of all plays, in order.
fn files() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/scenarios");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    found
}
