//! Failed authentications: counted by what was shown, answered ever as before, and no burden for those that succeed.

use bellwether_api::client::Identity;
use bellwether_api::client::secret::Secret;
use bellwether_api::problem::Code;

use crate::harness::{Installation, SOON, problem};

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
async fn guesses_at_the_same_time_are_looked_at_a_few_at_a_time() {
    let installation = Installation::new().await;
    let guess = async |number: usize| {
        let client = installation.client(Identity::Token(Secret::new(format!("guess-{number}"))));
        // No client repeats a change by itself, as it does a read that finds a server busy.
        problem(client.delete_filter("default", "none").await).0
    };
    let answers = futures_util::future::join_all((0..60).map(guess)).await;
    let busy = answers.iter().filter(|code| **code == Code::Busy).count();
    assert!(busy > 0, "{answers:?}");
    assert!(answers.iter().all(|code| matches!(code, Code::Busy | Code::Unauthenticated)), "{answers:?}");
    // Once the delayed answers are given, tokens from there are looked at again.
    assert!(installation.admin().who_am_i().await.is_ok());
}
