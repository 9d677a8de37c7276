use super::*;
use crate::records::probes::StoreMember;

fn membership(entries: &[(&str, &str, bool)]) -> Membership {
    let entry = |(id, url, votes): &(&str, &str, bool)| {
        let member = StoreMember { name: None, address: Some((*url).into()), votes: *votes, connected: None };
        ((*id).to_string(), member)
    };
    let members = entries.iter().map(entry).collect();
    Membership { own_id: "a".into(), is_leader: true, cluster_id: None, leader: None, members }
}

const ALL: [(&str, &str, bool); 3] =
    [("a", "http://a", true), ("b", "http://b", true), ("c", "http://c", false)];

#[test]
fn a_change_that_was_made_is_not_made_again() {
    let list = membership(&ALL);
    let add = |url: &str| MembershipChange::Add { member: MemberNumber::new(3), peer_url: url.into() };
    assert_eq!(next(&add("http://c"), &list), ChangeStep::Done);
    assert_eq!(next(&add("http://d"), &list), ChangeStep::Add("http://d".into()));
    let promote = |id: &str| MembershipChange::Promote { id: id.into() };
    assert_eq!(next(&promote("b"), &list), ChangeStep::Done);
    assert_eq!(next(&promote("c"), &list), ChangeStep::Promote("c".into()));
    assert!(matches!(next(&promote("d"), &list), ChangeStep::Wait(_)));
}

#[test]
fn a_member_is_out_once_the_list_does_not_have_it_and_none_removes_itself() {
    let list = membership(&ALL);
    let member = MemberNumber::new(2);
    let remove = |id: Option<&str>, url: &str| {
        let change =
            MembershipChange::Remove { member, id: id.map(ToString::to_string), peer_url: url.into() };
        next(&change, &list)
    };
    assert_eq!(remove(Some("b"), "http://b"), ChangeStep::Remove("b".into()));
    assert_eq!(remove(None, "http://b"), ChangeStep::Remove("b".into()));
    // Another member has its address now.
    assert_eq!(remove(Some("e"), "http://b"), ChangeStep::Removed(member));
    assert_eq!(remove(None, "http://e"), ChangeStep::Removed(member));
    assert!(matches!(remove(Some("a"), "http://a"), ChangeStep::Wait(_)));
}

#[test]
fn one_that_served_and_does_not_any_more_has_failed() {
    let silent = MemberAnswer::Silent("no leader".into());
    assert_eq!(state(&silent, false).0, MemberState::Starting);
    assert_eq!(state(&silent, true), (MemberState::Failed, "does not serve any more: no leader".into()));
    assert_eq!(state(&MemberAnswer::Learner, true).0, MemberState::Starting);
    assert_eq!(state(&MemberAnswer::Serving(membership(&ALL)), false), (MemberState::Working, String::new()));
}
