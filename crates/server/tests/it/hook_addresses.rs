//! Where hooks are called, and where their tokens are sent.

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::Hook;
use bellwether_core::words::name::Actor;
use bellwether_server::sinks::addresses::AddressRules;
use serde_json::json;

use crate::harness::{Installation, problem, set_entity, until, version};
use crate::hooked::{Controller, Say, hook, some};
use crate::hooks::{approving, nodes, token_for, waits};

#[tokio::test]
async fn a_token_goes_to_its_urls_alone_and_nobody_sees_what_another_program_answers() {
    let mut installation = Installation::new().await;
    let file = installation.config.data_dir.join("hook-token");
    std::fs::write(&file, "s3cret\n").unwrap();
    let controller = Controller::saying(Say::Text(403, "instance-credentials".to_owned())).await;
    let url = |path: &str| format!("http://{}{path}", controller.address);
    let board = Actor::parse("board").unwrap();
    installation.config.hooks.tokens.insert(board.clone(), token_for(file.clone(), &url("/ask")));
    installation.restart().await;
    let admin = installation.admin();
    let _nodes = nodes(&installation, 1).await;
    let of = |path: &str| {
        let hook = Hook { token: some("board"), url: url(path), ..controller.hook() };
        EntitySpec { selector: "role=web".to_owned(), policy: approving(hook), ..EntitySpec::default() }
    };
    for path in ["/other", "/asked", "/ask/../other", "/ask/%2e%2e/other"] {
        let (code, detail) = problem(admin.set_entity("default", "web", &of(path)).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains("policy.hooks.approval.token: the token board is not sent to"), "{detail}");
    }
    set_entity(&admin, of("/ask/web").policy).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| waits(view, "approval", "status 403; the first line of the answer is in the log"))
        .await;
    assert!(controller.heard().iter().all(|heard| heard.bearer.as_deref() == Some("Bearer s3cret")));
    let events = admin.events("default", None, 1_000, Duration::ZERO).await.unwrap();
    assert!(!serde_json::to_string(&events.items).unwrap().contains("instance-credentials"));
    // What the configuration has is looked at for each call, too.
    installation.config.hooks.tokens.insert(board, token_for(file, "https://board.example/"));
    installation.restart().await;
    let admin = installation.admin();
    let reason = "the token board is not sent to http://127.0.0.1:";
    until(&admin, |view| waits(view, "approval", reason)).await;
}

#[tokio::test]
async fn a_hook_at_a_special_address_is_refused_and_never_called() {
    let mut installation = Installation::new().await;
    let controller = Controller::saying(Say::Json(json!({ "approved": true }))).await;
    let admin = installation.admin();
    let _nodes = nodes(&installation, 1).await;
    set_entity(&admin, approving(controller.hook())).await;
    installation.config.hooks.addresses = Arc::new(AddressRules::of_hooks(Vec::new()));
    installation.restart().await;
    let admin = installation.admin();
    let rules = "allow_addresses in [hooks] of the server's configuration allows it";
    for url in [
        "http://169.254.169.254/latest",
        "http://127.0.0.1:1/",
        "http://[::ffff:127.0.0.1]:1/",
        "http://[fe80::1]/",
    ] {
        let spec = EntitySpec {
            selector: "role=web".to_owned(),
            policy: approving(hook(url)),
            ..EntitySpec::default()
        };
        let (code, detail) = problem(admin.set_entity("default", "other", &spec).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(
            detail.contains("policy.hooks.approval.url: the address") && detail.contains(rules),
            "{detail}"
        );
    }
    // It was permitted before, or is permitted by another server's configuration.
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| waits(view, "approval", "the address 127.0.0.1 is refused")).await;
    // A name is judged by what it resolves to.
    let named = format!("http://localhost:{}/ask", controller.address.port());
    set_entity(&admin, approving(Hook { url: named, ..controller.hook() })).await;
    until(&admin, |view| waits(view, "approval", "the address")).await;
    assert!(controller.heard().is_empty());
}
