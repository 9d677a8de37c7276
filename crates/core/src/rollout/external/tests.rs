use proptest::prelude::*;

use super::*;

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(1_000 + seconds))
}

fn says(running: Option<&str>, error: Option<&str>) -> TargetReport {
    TargetReport {
        target: "blue/1".parse().unwrap(),
        running: running.map(|version| version.parse().unwrap()),
        error: error.map(Into::into),
        assignment: None,
    }
}

fn take(
    known: Option<&ExternalTarget>,
    report: &TargetReport,
    answering: Option<AssignmentNumber>,
    now: Timestamp,
) -> ExternalTarget {
    let report = TargetReport { assignment: answering, ..report.clone() };
    absorb(known, &report, None, StalenessLimits::default(), now)
}

#[test]
fn it_is_well_for_as_long_as_it_runs_the_same_version_without_an_error() {
    let first = take(None, &says(Some("v1"), None), None, at(0));
    assert_eq!(first.healthy_since, Some(at(0)));
    let later = take(Some(&first), &says(Some("v1"), None), None, at(9));
    assert_eq!(later.healthy_since, Some(at(0)));
    for breaks in [says(Some("v2"), None), says(Some("v1"), Some("down")), says(None, None)] {
        let broken = take(Some(&later), &breaks, None, at(10));
        let again = take(Some(&broken), &says(Some("v1"), None), None, at(11));
        assert_eq!(again.healthy_since, Some(at(11)), "after {breaks:?}");
    }
    let silent = ExternalTarget { silent: true, ..later };
    let back = take(Some(&silent), &says(Some("v1"), None), None, at(12));
    assert_eq!((back.healthy_since, back.silent), (Some(at(12)), false), "nobody saw it meanwhile");
}

#[test]
fn it_answers_what_its_controller_was_last_told_unless_the_controller_knows_better() {
    let known = ExternalTarget { assigned: AssignmentNumber::new(7), ..ExternalTarget::default() };
    assert_eq!(take(Some(&known), &says(None, None), None, at(0)).answering.get(), 7);
    let six = Some(AssignmentNumber::new(6));
    assert_eq!(take(Some(&known), &says(None, None), six, at(0)).answering.get(), 6);
    assert_eq!(take(None, &says(None, None), None, at(0)).answering.get(), 0);
}

#[test]
fn without_a_number_it_is_judged_by_what_it_says_it_runs() {
    let known = ExternalTarget {
        answering: AssignmentNumber::new(6),
        assigned: AssignmentNumber::new(7),
        ..ExternalTarget::default()
    };
    let version = "v2".parse().unwrap();
    let answers = |running, error| {
        let expected = Some((&version, AssignmentNumber::new(7)));
        let staleness = StalenessLimits::default();
        absorb(Some(&known), &says(running, error), expected, staleness, at(0)).answering.get()
    };
    assert_eq!(answers(Some("v2"), None), 7);
    assert_eq!(answers(Some("v2"), Some("down")), 7);
    assert_eq!(answers(Some("v1"), None), 7, "its work is under way");
    assert_eq!(answers(None, Some("no answer")), 7);
    assert_eq!(answers(Some("v1"), Some("down")), 6, "an error of the version before");
}

#[test]
fn contact_begins_anew_after_a_long_gap_or_silence() {
    let since = |known: &ExternalTarget, seconds| {
        take(Some(known), &says(Some("v1"), None), None, at(seconds)).contact_since
    };
    let first = take(None, &says(Some("v1"), None), None, at(0));
    assert_eq!(first.contact_since, at(0));
    assert_eq!((since(&first, 150), since(&first, 151)), (at(0), at(151)), "half of 5 minutes");
    let silent = ExternalTarget { silent: true, ..first };
    assert_eq!(since(&silent, 10), at(10));
}

#[test]
fn an_error_is_kept_as_one_short_line() {
    let kept = |error: &str| take(None, &says(None, Some(error)), None, at(0)).error.unwrap().to_string();
    assert_eq!(kept("exit code 1\nand a trace"), "exit code 1");
    assert_eq!(kept(&"é".repeat(500)).chars().count(), MAX_ERROR);
    assert_eq!(kept(""), "it reports an error without a description");
}

#[test]
fn a_report_that_says_nothing_new_is_kept_only_now_and_then() {
    let grain = Span::from_secs(60);
    let first = take(None, &says(Some("v1"), None), None, at(0));
    assert!(is_news(None, &first, grain, None));
    for (seconds, news) in [(1, false), (59, false), (60, true)] {
        let same = take(Some(&first), &says(Some("v1"), None), None, at(seconds));
        assert_eq!(is_news(Some(&first), &same, grain, None), news, "after {seconds} s");
    }
    let other = take(Some(&first), &says(Some("v1"), Some("down")), None, at(1));
    assert!(is_news(Some(&first), &other, grain, None));
}

#[test]
fn a_group_stands_before_the_first_slash() {
    for (name, of) in [("a", ""), ("blue/a", "blue"), ("blue/rack/a", "blue")] {
        assert_eq!(group(&name.parse().unwrap()), of, "{name}");
    }
}

#[test]
fn a_group_belongs_to_one_controller_until_it_falls_silent() {
    let (one, two): (Actor, Actor) = ("one".parse().unwrap(), "two".parse().unwrap());
    let staleness = StalenessLimits::default();
    let claims = |known: &Controllers, who: &Actor, take_over, seconds| {
        claim(known, GroupClaim { group: "blue", controller: who, take_over }, staleness, at(seconds))
    };
    let known = claims(&Controllers::default(), &one, false, 0).unwrap().unwrap();
    assert_eq!(claims(&known, &one, false, 1), Ok(None), "nothing to remember");
    let refused = claims(&known, &two, false, 10).unwrap_err().to_string();
    assert_eq!(refused, "accept reports about group blue from two: one reports them, last 10s ago");
    let green = GroupClaim { group: "green", controller: &two, take_over: false };
    let other = claim(&known, green, staleness, at(10)).unwrap().unwrap();
    assert_eq!(other.0.len(), 2, "another group is another's");
    for (take_over, seconds) in [(true, 10), (false, 300)] {
        let taken = claims(&known, &two, take_over, seconds).unwrap().unwrap();
        assert_eq!(taken.0["blue"].name, two);
    }
}

#[test]
fn there_are_only_so_many_groups() {
    let (who, staleness) = ("one".parse().unwrap(), StalenessLimits::default());
    let controller = Controller { name: "one".parse().unwrap(), reported_at: at(0) };
    let full = (0..MAX_GROUPS).map(|n| (alloc::format!("g{n}"), controller.clone()));
    let full = Controllers(full.collect());
    let claims =
        |group, take_over| claim(&full, GroupClaim { group, controller: &who, take_over }, staleness, at(0));
    assert_eq!(claims("one-more", true), Err(GroupConflict::TooMany));
    assert_eq!(claims("g1", false), Ok(None));
}

proptest! {
    #[test]
    fn what_is_seen_soaks_only_while_reports_say_that_it_is_well(
        reports in proptest::collection::vec((0..3_u8, any::<bool>(), 1..400_u64), 1..20),
    ) {
        let (mut known, mut now, mut since) = (None::<ExternalTarget>, 0, None::<(String, u64)>);
        for (version, errs, pause) in reports {
            now += pause;
            let version = alloc::format!("v{version}");
            let new = take(known.as_ref(), &says(Some(&version), errs.then_some("down")), None, at(now));
            since = match since {
                _ if errs => None,
                Some((running, from)) if running == version => Some((running, from)),
                Some(_) | None => Some((version, now)),
            };
            let seen = observation(&new, Labels::default(), None);
            prop_assert_eq!(seen.healthy_since, since.as_ref().map(|(_, from)| at(*from)));
            prop_assert_eq!(matches!(seen.activity, TargetActivity::Failed { .. }), errs);
            known = Some(new);
        }
    }
}
