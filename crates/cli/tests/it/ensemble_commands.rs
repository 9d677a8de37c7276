//! What commands about ensembles say where there is no node that could have a member.

use crate::place::{Setup, code, done, text};

#[tokio::test(flavor = "multi_thread")]
async fn spread_is_taken_off_and_a_key_that_is_none_is_refused_by_its_flag() {
    let place = Setup::new().await;
    for (key, expected) in [("", "write --no-spread"), ("a b", "a key starts with a letter")] {
        let refused = place.run(&["ensemble", "create", "store", "-l", "all", "--spread", key]);
        let said = text(&refused.stderr);
        assert!(code(&refused) == 64 && said.contains("--spread") && said.contains(expected), "{said}");
    }
    let spread = || done(&place, &["ensemble", "get", "store"]).contains("spread          rack");
    done(&place, &["ensemble", "create", "store", "-l", "all", "--spread", "rack"]);
    done(&place, &["ensemble", "set", "store", "--size", "3"]);
    assert!(spread());
    done(&place, &["ensemble", "set", "store", "--no-spread"]);
    assert!(!spread());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_meant_is_said_by_a_plan_and_what_is_not_done_any_more_by_an_apply() {
    let place = Setup::new().await;
    done(&place, &["ensemble", "create", "cache", "--service", "redis", "-l", "all", "--size", "3"]);
    let planned = place.run(&["ensemble", "plan", "cache", "--size", "1"]);
    let said = text(&planned.stderr);
    assert!(code(&planned) == 0 && said.contains("with one member, nothing is promised"), "{said}");

    let listed = done(&place, &["ensemble", "snapshots", "cache"]);
    assert_eq!(listed, "no snapshots; they are there for etcd alone\n");

    let document = "kind: ensemble\nname: store\nservice:\n  etcd: {}\nfilter: all\n";
    let scheduled = format!("{document}snapshots:\n  every: 1h\n");
    assert_eq!(code(&place.run_with(&["apply", "-f", "-"], &scheduled)), 0);
    for args in [&["diff", "-f", "-"][..], &["apply", "-f", "-"]] {
        let said = text(&place.run_with(args, document).stderr);
        assert!(said.contains("ensemble/store: no snapshot is taken every 1h any more"), "{args:?}: {said}");
    }

    let none = place.run(&["ensemble", "remove-foreign-member", "store", "1234"]);
    let said = text(&none.stderr);
    assert!(code(&none) == 1 && said.contains("cannot find foreign member 1234 of ensemble store"), "{said}");

    let deleted = place.run(&["ensemble", "delete", "store", "--yes", "-w"]);
    let said = text(&deleted.stderr);
    assert!(code(&deleted) == 0 && said.contains("ensemble store: nothing of it is left"), "{said}");
    let none = place.run(&["ensemble", "delete", "store"]);
    let said = text(&none.stderr);
    assert!(code(&none) == 1 && said.contains("cannot find ensemble store"), "{said}");
}
