//! Failed authentications: counted by what was shown, answered ever as before, and no burden for those that succeed.

use bellwether_api::client::Identity;
use bellwether_api::client::secret::Secret;
use bellwether_api::problem::Code;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, join_request, problem};

/// More than are answered without a delay.
const TRIES: usize = 12;

#[tokio::test]
async fn who_tries_tokens_is_counted_and_others_from_the_same_address_are_served() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let guess = |number: usize| installation.client(Identity::Token(Secret::new(format!("guess-{number}"))));
    for number in 0..TRIES {
        assert_eq!(problem(guess(number).who_am_i().await).0, Code::Unauthenticated, "{number}");
        admin.who_am_i().await.unwrap();
    }
    // Who shows nothing does not guess.
    let nobody = installation.client(Identity::Nobody);
    assert_eq!(problem(nobody.who_am_i().await).0, Code::Unauthenticated);
    let page = admin.text("/metrics", SOON).await.unwrap();
    let line = format!("bellwether_authentication_failures_total{{credential=\"token\"}} {TRIES}");
    assert!(page.lines().any(|found| found == line), "{page}");
}

#[tokio::test]
async fn of_guesses_at_the_same_time_a_few_are_delayed_and_a_valid_token_is_served_meanwhile() {
    let installation = Installation::new().await;
    let guess = async |number: usize| {
        let client = installation.client(Identity::Token(Secret::new(format!("guess-{number}"))));
        // No client repeats a change by itself, as it does a read that finds a server busy.
        problem(client.delete_filter("default", "none").await).0
    };
    let admin = installation.admin();
    let valid = async {
        for _ in 0..20 {
            assert_eq!(problem(admin.delete_filter("default", "none").await).0, Code::NotFound);
        }
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all((0..60).map(guess)), valid);
    let busy = answers.iter().filter(|code| **code == Code::Busy).count();
    assert!(busy > 0, "{answers:?}");
    assert!(answers.iter().all(|code| matches!(code, Code::Busy | Code::Unauthenticated)), "{answers:?}");
}

#[tokio::test]
async fn joins_of_strangers_are_refusals_in_the_audit_log_and_do_not_fill_it() {
    let installation = Installation::new().await;
    let nobody = installation.client(Identity::Nobody);
    for _ in 0..80 {
        let (code, _) = problem(nobody.send::<_, Value>(Method::POST, "/v1/join", &json!({}), SOON).await);
        assert_eq!(code, Code::Invalid);
    }
    let token = installation.join_token(None).await;
    nobody.join(&join_request(&token, "web-1").1).await.unwrap();
    assert_eq!(problem(nobody.join(&join_request(&token, "web-2").1).await).0, Code::JoinToken);
    let all = installation.admin().audit(Some("path = '/v1/join'"), None, 1_000, SOON).await.unwrap().items;
    assert!(all.len() <= 61, "{}", all.len());
    let joined: Vec<_> = all.iter().filter(|entry| entry.reason.is_none()).collect();
    assert!(joined.len() == 1 && joined[0].status == Some(200), "{joined:?}");
    let counted = installation.admin().text("/metrics", SOON).await.unwrap();
    let failed = "bellwether_authentication_failures_total{credential=\"join_token\"} 1";
    assert!(counted.contains(failed), "{counted}");
}
