//! Numbers that would be stored as others are refused wherever a body has them, with their place.

use serde_json::Value;

use crate::contract::{plain, raw};

#[tokio::test]
async fn a_number_that_would_lose_digits_is_refused_with_its_place() {
    let installation = plain().await;
    let base = "/v1/namespaces/default";
    let long = "123456789012345678901234567890";
    let profile = r#"{"kind": "profile", "name": "web", "params": {"n": 0.12345678901234567890}}"#;
    for (request, body, place) in [
        (format!("PATCH {base}/profiles/web"), format!(r#"{{"set": {{"n": {long}}}}}"#), "set.n"),
        (format!("PATCH {base}/profiles/web"), r#"{"set": {"n": 1e999}}"#.to_owned(), "set.n"),
        (format!("PUT {base}/profiles/web"), format!(r#"{{"params": {{"n": [1, {long}]}}}}"#), "params.n[1]"),
        (format!("POST {base}/apply"), format!(r#"{{"documents": [{profile}]}}"#), "documents[0].params.n"),
    ] {
        let (status, head, body) = raw(&installation, &request, &body).await;
        let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{head} {body}"));
        let detail = body["detail"].as_str().unwrap_or_default();
        assert_eq!(status, 400, "{request}: {body}");
        assert!(detail.contains(&format!("{place}: the number ")), "{request}: {body}");
        assert!(
            body["hint"].as_str().unwrap_or_default().starts_with("to keep it as text, quote it"),
            "{body}"
        );
    }
    let kept = r#"{"set": {"n": [18446744073709551615, 0.1, 1.50, 1e22]}}"#;
    assert_eq!(raw(&installation, &format!("PATCH {base}/profiles/web"), kept).await.0, 200);
    let read = installation.admin().profile("default", "web").await.unwrap();
    assert_eq!(read.params["n"].to_string(), "[18446744073709551615,0.1,1.5,1e+22]");
}
