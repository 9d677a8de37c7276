//! Laws of claims: what contains what, and that what a claim contains it allows.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::words::name::RoleName;

fn word() -> impl Strategy<Value = String> {
    // Few letters, so that patterns meet.
    "[ab]{1,3}"
}

fn name_pattern() -> impl Strategy<Value = NamePattern> {
    let text = prop_oneof![1 => Just("*".to_string()), 3 => word(), 3 => word().prop_map(|stem| stem + "*")];
    text.prop_map(|text| NamePattern::parse(&text).unwrap())
}

fn field() -> impl Strategy<Value = String> {
    prop::collection::vec("[ab]{0,2}|~0|~1", 0..3)
        .prop_map(|keys| keys.iter().map(|key| alloc::format!("/{key}")).collect())
}

fn verb_pattern() -> impl Strategy<Value = VerbPattern> {
    let text = prop_oneof![
        1 => Just("*".to_string()),
        2 => Just("get".to_string()),
        1 => Just("delete".to_string()),
        4 => field().prop_map(|field| if field.is_empty() { "update".into() } else { alloc::format!("update:{field}") }),
    ];
    text.prop_map(|text| VerbPattern::parse(&text).unwrap())
}

fn kind() -> impl Strategy<Value = ObjectKind> {
    prop::sample::select(vec![ObjectKind::Node, ObjectKind::Entity, ObjectKind::Token])
}

fn claim() -> impl Strategy<Value = Claim> {
    let kinds = prop_oneof![1 => Just(KindPattern::Any), 4 => kind().prop_map(KindPattern::Is)];
    (
        prop::collection::vec(verb_pattern(), 1..3),
        prop::collection::vec(kinds, 1..3),
        prop::collection::vec(name_pattern(), 1..3),
        prop::collection::vec(name_pattern(), 1..3),
    )
        .prop_map(|(verbs, kinds, names, namespaces)| Claim { verbs, kinds, names, namespaces })
}

/// A request: verb, field, kind, name and namespace; without a namespace it is about the whole installation.
type Asked = (Verb, String, ObjectKind, String, Option<String>);

fn asked() -> impl Strategy<Value = Asked> {
    let verb = prop::sample::select(Verb::ALL.to_vec());
    (verb, field(), kind(), word(), prop::option::of(word()))
}

fn request(asked: &Asked) -> AccessRequest<'_> {
    let (verb, field, kind, name, namespace) = asked;
    AccessRequest {
        verb: *verb,
        field: if *verb == Verb::Update { field } else { "" },
        is_partial: false,
        kind: *kind,
        name: NameScope::Named(name),
        scope: namespace.as_deref().map_or(AccessScope::Installation, AccessScope::Namespace),
    }
}

fn rights(claims: Vec<Claim>, only_in: Option<NamePattern>) -> Rights {
    Rights::new(vec![(RoleName::parse("own").unwrap(), claims.into())], only_in)
}

proptest! {
    #[test]
    fn a_claim_is_read_as_it_is_shown(claim in claim()) {
        prop_assert_eq!(Claim::parse(&claim.to_string()).unwrap(), claim);
    }

    #[test]
    fn what_is_covered_is_allowed(claims in prop::collection::vec(claim(), 0..4), other in claim(), asked in asked()) {
        let request = request(&asked);
        if other.is_covered_by(&claims) && other.allows(&request) {
            prop_assert!(claims.iter().any(|claim| claim.allows(&request)));
        }
    }

    #[test]
    fn every_claim_covers_itself_and_the_admin_covers_all(claim in claim()) {
        prop_assert!(claim.is_covered_by(core::slice::from_ref(&claim)));
        prop_assert!(claim.is_covered_by(&Rights::of_built_in("admin").claims()));
    }

    #[test]
    fn covering_goes_on(one in prop::collection::vec(claim(), 1..3), two in prop::collection::vec(claim(), 1..3), three in claim()) {
        if two.iter().all(|claim| claim.is_covered_by(&one)) && three.is_covered_by(&two) {
            prop_assert!(three.is_covered_by(&one));
        }
    }

    #[test]
    fn an_entry_more_only_adds(claim in claim(), verb in verb_pattern(), name in name_pattern()) {
        let mut wider = claim.clone();
        wider.verbs.push(verb);
        wider.names.push(name);
        prop_assert!(claim.is_covered_by(&[wider]));
    }

    #[test]
    fn what_two_patterns_share_both_have(one in name_pattern(), two in name_pattern(), name in word()) {
        let both = one.matches(&name) && two.matches(&name);
        prop_assert_eq!(one.meet(&two).is_some_and(|meet| meet.matches(&name)), both);
        prop_assert_eq!(one.meet(&two), two.meet(&one));
    }

    #[test]
    fn a_limited_token_has_its_claims_in_these_namespaces_only(
        claims in prop::collection::vec(claim(), 0..4), limit in name_pattern(), asked in asked()
    ) {
        let request = request(&asked);
        let is_inside = match request.scope {
            AccessScope::Namespace(namespace) => limit.matches(namespace),
            AccessScope::Installation | AccessScope::Some => limit == NamePattern::Any,
        };
        let free = rights(claims.clone(), None).allows(&request);
        let limited = rights(claims, Some(limit));
        prop_assert_eq!(limited.allows(&request), is_inside && free);
        let flat = limited.claims().iter().any(|claim| claim.allows(&request));
        prop_assert_eq!(flat, is_inside && free);
    }

    #[test]
    fn what_is_granted_from_ones_rights_exceeds_them_nowhere(
        own in prop::collection::vec(claim(), 0..3), only_in in prop::option::of(name_pattern()),
        granted in claim(), asked in asked()
    ) {
        let own = rights(own, only_in);
        let request = request(&asked);
        if own.lacks(core::slice::from_ref(&granted)).is_none() && granted.allows(&request) {
            prop_assert!(own.allows(&request));
        }
    }

    #[test]
    fn any_text_is_a_claim_or_is_refused(text in "\\PC{0,60}") {
        if let Ok(claim) = Claim::parse(&text) {
            prop_assert_eq!(Claim::parse(&claim.to_string()), Ok(claim));
        }
        if let Ok(field) = FieldPath::parse(&text) {
            prop_assert!(field.contains(&text) && FieldPath::whole().contains(&text));
        }
        if let Ok(pattern) = NamePattern::parse(&text) {
            prop_assert!(pattern.contains(&pattern));
        }
    }
}

fn covers(wide: &str, narrow: &str) -> bool {
    Claim::parse(narrow).unwrap().is_covered_by(&[Claim::parse(wide).unwrap()])
}

#[test]
fn the_cases_of_the_lattice() {
    assert!(covers("update node", "update:/a node"));
    assert!(covers("update:/a node", "update:/a/b node"));
    assert!(!covers("update:/a/b node", "update:/a node"));
    assert!(!covers("update:/a node", "update:/ab node"));
    assert!(!covers("update:/ node", "update:/a node"), "/ is the field with the empty name");
    assert!(covers("update node", "update:/ node"));
    assert!(!covers("get node/app", "get node/app-2"));
    assert!(covers("get node/app*", "get node/app-2"));
    assert!(!covers("get node/app-2", "get node/app*"));
    assert!(!covers("get node in shop", "get node"), "what is in no namespace is not in one either");
    assert!(covers("* *", "get,update,delete node,token/x in y"));
    assert!(!covers("get,update,delete *", "* *"), "a verb of a later release is not covered");
    let two = [Claim::parse("get node in a").unwrap(), Claim::parse("get node in b").unwrap()];
    assert!(Claim::parse("get node in a,b").unwrap().is_covered_by(&two), "together they cover it");
}

#[test]
fn built_in_roles_include_each_other_upwards() {
    let roles = BUILT_IN.map(|role| Rights::of_built_in(role.name));
    for (index, stronger) in roles.iter().enumerate() {
        for (other, weaker) in roles.iter().enumerate() {
            assert_eq!(stronger.lacks(&weaker.claims()).is_none(), index >= other, "{index} {other}");
        }
        assert_eq!(stronger.is_everything(), index == 2);
    }
}

#[test]
fn a_viewer_reads_every_kind_but_those_of_tokens_and_of_the_audit_log() {
    let viewer = Rights::of_built_in("viewer");
    for kind in ObjectKind::ALL {
        let claim = [Claim::parse(&alloc::format!("get {}", kind.as_str())).unwrap()];
        let is_hidden = matches!(kind, ObjectKind::Token | ObjectKind::JoinToken | ObjectKind::Audit);
        assert_eq!(viewer.lacks(&claim).is_some(), is_hidden, "{}", kind.as_str());
    }
}

#[test]
fn a_node_reaches_its_own_path_and_no_other() {
    let (own, other) = (NodeName::parse("web-1").unwrap(), NodeName::parse("web-2").unwrap());
    let node = Identity::Node(own.clone());
    let get = Right::get(ObjectKind::Node);
    let at = |need, node: &Identity, name| authorise(node, need, name, (None, Some("default"))).is_ok();
    assert!(at(RequiredAccess::OwnNode, &node, Some(&own)));
    assert!(!at(RequiredAccess::OwnNode, &node, Some(&other)));
    assert!(!at(RequiredAccess::OwnNodeOr(get), &node, Some(&other)));
    assert!(at(RequiredAccess::NodeOr(get), &node, Some(&own)));
    assert!(!at(RequiredAccess::NodeOr(get), &node, None));
    assert!(!at(RequiredAccess::Right(get), &node, Some(&own)));
    assert!(!at(RequiredAccess::Token, &node, Some(&own)));
    let admin = Identity::Token {
        name: Actor::parse("kim").unwrap(),
        rights: Arc::new(Rights::of_built_in("admin")),
    };
    assert!(!at(RequiredAccess::OwnNode, &admin, Some(&own)), "not even an admin is a node");
}

#[test]
fn nobody_gets_nothing_but_what_is_open() {
    let get = Right::get(ObjectKind::Node);
    for need in [
        RequiredAccess::Open,
        RequiredAccess::Token,
        RequiredAccess::Right(get),
        RequiredAccess::OwnNode,
        RequiredAccess::OwnNodeOr(get),
        RequiredAccess::NodeOr(get),
    ] {
        let open = authorise(&Identity::Anonymous, need, None, (None, None)).is_ok();
        assert_eq!(open, need == RequiredAccess::Open);
    }
}

#[test]
fn errors_name_the_place_and_the_nearest_word() {
    let why = |text: &str| Claim::parse(text).unwrap_err();
    assert!(why("get nodes").contains("did you mean node?"), "{}", why("get nodes"));
    assert!(why("read node").contains("known: get, update, delete"), "{}", why("read node"));
    assert!(why("get").contains("VERBS KINDS"));
    assert!(why("get:/a node").contains("only update"));
    assert!(why("update:a node").contains("must begin with '/'"));
    assert!(why("update:/a~2 node").contains("~0"));
    assert!(why("get node/we*b").contains("'*'"));
    assert!(why("get node/a,,b").contains("empty pattern"));
    assert!(why(&alloc::format!("get node/{}", ["a"; 33].join(","))).contains("at most 32"));
}

#[test]
fn events_are_about_objects() {
    let of = ObjectKind::of_subject;
    assert_eq!(of("node/web-1"), Some((ObjectKind::Node, "web-1")));
    assert_eq!(of("target/web/group/a"), Some((ObjectKind::Entity, "web")));
    assert_eq!(of("rollout/web/3"), Some((ObjectKind::Rollout, "web")));
    assert_eq!(of("service/api/web-1/api"), Some((ObjectKind::Service, "api")));
    assert_eq!(of("token/ci/deploy"), Some((ObjectKind::Token, "ci/deploy")));
    assert_eq!(of("something"), None);
}

#[test]
fn a_right_shows_what_a_terminal_would_obey_in_a_name() {
    let right = Right::delete(ObjectKind::Profile).on(Some("nobody\nFORGED\u{1b}[31m"), Some("a\tb"));
    assert_eq!(right.to_string(), "delete profile/nobody\\u{a}FORGED\\u{1b}[31m in a\\u{9}b");
}
