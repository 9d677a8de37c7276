//! What `server join` and its token say where they cannot work. That they do is in the guide's page on several servers.

use crate::place::{Setup, code, text};

#[tokio::test(flavor = "multi_thread")]
async fn joining_a_server_says_by_its_exit_code_why_it_cannot() {
    let place = Setup::new().await;
    let made = place.run(&["server", "join-token"]);
    assert_eq!(code(&made), 7, "{}", text(&made.stderr));
    assert!(text(&made.stderr).contains("bellwether server migrate"));
    let (config, data) = (place.path("cp-2.toml"), place.path("cp-2"));
    let join = |from: &str, token: &str| {
        let args = ["server", "join", "--from", from, "--token-file", "-", "--name", "cp-2"];
        let more = ["--address", "https://127.0.0.1:7430", "--config", &config, "--data-dir", &data];
        place.run_with(&[&args[..], &more].concat(), token)
    };
    let wrong = join("https://127.0.0.1:1", "bwj_00.00");
    assert_eq!(code(&wrong), 64, "{}", text(&wrong.stderr));
    assert!(text(&wrong.stderr).contains("does not begin with bws_"));
    let away = join("https://127.0.0.1:1", &format!("bws_00.{}", "0".repeat(64)));
    assert_eq!(code(&away), 69, "{}", text(&away.stderr));
    assert!(!std::path::Path::new(&config).exists(), "nothing is written before the keys are here");
}
