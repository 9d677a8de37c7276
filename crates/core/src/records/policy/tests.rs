//! What a policy's defaults are, and what is refused with its field.

use alloc::string::String;
use alloc::string::ToString;

use super::*;

fn refused(draft: PolicyDraft) -> String {
    Policy::new(draft).unwrap_err().to_string()
}

#[test]
fn the_defaults_are_conservative() {
    let policy = Policy::new(PolicyDraft::default()).unwrap();
    assert_eq!(policy.batch, "5%".parse().unwrap());
    assert_eq!((policy.success, policy.failures), (Percent::ALL, None));
    assert_eq!((policy.soak, policy.deadline), (Span::from_secs(60), Span::from_secs(180)));
    assert_eq!((policy.fail_fast, policy.retries), (true, 0));
    assert_eq!(Policy::new(policy.to_draft()).unwrap(), policy);
    assert_eq!(policy, Policy::DEFAULT);
}

#[test]
fn the_default_deadline_grows_with_the_soak() {
    let draft = PolicyDraft { soak: Some(Span::from_secs(600)), ..PolicyDraft::default() };
    assert_eq!(Policy::new(draft).unwrap().deadline, Span::from_secs(720));
}

#[test]
fn a_contradiction_is_refused_with_its_field() {
    let soak = Some(Span::from_secs(30));
    let cases = [
        (
            PolicyDraft { soak, deadline: soak, ..PolicyDraft::default() },
            "deadline: 30s is not longer than the soak of 30s",
        ),
        (PolicyDraft { retries: Some(101), ..PolicyDraft::default() }, "retries: 101 is over 100"),
        (
            PolicyDraft {
                success: "90%".parse().ok(),
                failures: "11%".parse().ok(),
                ..PolicyDraft::default()
            },
            "failures: success 90% tolerates at most 10% failures",
        ),
        (
            PolicyDraft { success: Some(Percent::NONE), ..PolicyDraft::default() },
            "success: 0% would judge every version good; use 1% or more",
        ),
        (
            PolicyDraft { rollback: Some(Amount::Count(0)), ..PolicyDraft::default() },
            "rollback: 0 would stop rollbacks; use 1 or more",
        ),
    ];
    for (draft, expected) in cases {
        assert_eq!(refused(draft), alloc::format!("policy.{expected}"));
    }
}

#[test]
fn a_batch_of_zero_holds_and_a_soak_of_zero_is_allowed() {
    let draft =
        PolicyDraft { batch: Some(Amount::Count(0)), soak: Some(Span::ZERO), ..PolicyDraft::default() };
    assert!(Policy::new(draft).is_ok());
}

fn stages(texts: &[&str]) -> PolicyDraft {
    let stages = texts.iter().map(|text| text.parse().unwrap()).collect();
    PolicyDraft { stages: Some(stages), ..PolicyDraft::default() }
}

fn windows(texts: &[&str]) -> PolicyDraft {
    let windows = texts.iter().map(|text| text.parse().unwrap()).collect();
    PolicyDraft { windows: Some(windows), ..PolicyDraft::default() }
}

#[test]
fn stages_grow_and_end_with_everybody() {
    assert!(Policy::new(stages(&["1", "5%", "25% approve", "100%"])).is_ok());
    let cases: [(&[&str], &str); 3] = [
        (&["1", "5%"], "stages: the last stage is 5%, so the rollout would end there; end with 100%"),
        (&["5%", "5%", "100%"], "stages: 5% is not more than the stage before it"),
        (&["3", "2", "100%"], "stages: 2 is not more than the stage before it"),
    ];
    for (texts, expected) in cases {
        assert_eq!(refused(stages(texts)), alloc::format!("policy.{expected}"));
    }
}

#[test]
fn windows_that_never_meet_are_refused() {
    let general = "daily 08:00-16:00 UTC";
    let meeting = "daily 15:00-17:00 UTC for window=late";
    assert!(Policy::new(windows(&[general, meeting])).is_ok());
    let never = "daily 22:00-04:00 UTC for window=night";
    assert!(Policy::new(windows(&[never])).is_ok(), "alone it is open every night");
    let expected = "policy.windows: \"daily 22:00-04:00 UTC for window=night\" never overlaps with a window \
                    for every target";
    assert_eq!(refused(windows(&[general, never])), expected);
}

#[test]
fn times_and_limits_that_nothing_could_meet_are_refused() {
    let progress = PolicyDraft { progress: Some(Span::from_secs(60)), ..PolicyDraft::default() };
    assert!(refused(progress).contains("progress: 1m is not longer than the soak of 1m"));
    let nothing = PolicyDraft { max_unavailable: Some(Amount::Count(0)), ..PolicyDraft::default() };
    assert!(refused(nothing).contains("max_unavailable: 0 would stop every rollout"));
    let settle = PolicyDraft { settle: "400d".parse().ok(), ..PolicyDraft::default() };
    assert!(refused(settle).contains("settle: 400d is over a year"));
}

#[test]
fn hooks_that_cannot_be_asked_are_refused() {
    let hooked = |hook: hook::Hook| {
        let hooks = Hooks { selection: Some(hook), ..Hooks::NONE };
        PolicyDraft { hooks: Some(hooks), ..PolicyDraft::default() }
    };
    let at = |url: &str| hook::Hook::at(url.to_string());
    assert!(Policy::new(hooked(at("https://chooser:8080/select"))).is_ok());
    for url in [
        "ftp://x",
        "https://",
        "http:///x",
        "https://a b",
        "http://x:99999/",
        "http://x:0",
        "http://x:+1",
        "http://x:",
        "http://[::1/",
        "http://[::1]x",
        "http://::1/",
        "https://kim:secret@x/",
    ] {
        assert!(refused(hooked(at(url))).contains("hooks: selection: "), "{url}");
    }
    let hasty = hook::Hook { every: Span::from_millis(1), ..at("http://x") };
    assert!(refused(hooked(hasty)).contains("every 1ms is not between 100ms and 1h"));
}

#[test]
fn lines_read_and_write_the_same_text() {
    for text in ["zone", "zone:b,a", "rack:r-10,r-2"] {
        assert_eq!(text.parse::<Domain>().unwrap().to_string(), text);
    }
    for text in ["name", "label:rack", "shuffle:42"] {
        assert_eq!(text.parse::<TargetOrder>().unwrap().to_string(), text);
    }
    for text in ["db", "2 of db"] {
        assert_eq!(text.parse::<ServiceNeed>().unwrap().to_string(), text);
    }
    assert_eq!("25% approve".parse::<PolicyStage>().unwrap().to_string(), "25% approve");
    assert!("0 of db".parse::<ServiceNeed>().is_err() && "x of db".parse::<ServiceNeed>().is_err());
    assert!("0%".parse::<PolicyStage>().is_err() && "zone:a,a".parse::<Domain>().is_err());
    assert!("shuffle:x".parse::<TargetOrder>().is_err() && "label:".parse::<TargetOrder>().is_err());
}
