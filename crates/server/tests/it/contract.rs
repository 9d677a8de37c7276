//! What a foreign HTTP client relies on: status codes, headers, bodies, and that outside tools can use the API's description.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bellwether_server::http::limits::ConcurrencyLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Installation;

/// The Python with the tools, which `cargo xtask test` installs.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/python");

/// Sends a request as it is, and returns the status, the head and the body of the answer.
pub(crate) async fn raw(installation: &Installation, request: &str, body: &str) -> (u16, String, String) {
    framed(installation, request, (&format!("Content-Length: {}", body.len()), body)).await
}

/// A request whose body is framed by this header.
async fn framed(
    installation: &Installation,
    request: &str,
    (framing, body): (&str, &str),
) -> (u16, String, String) {
    let address = installation.server().plain_address.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let token = installation.admin_token.expose();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\n{framing}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

pub(crate) async fn plain() -> Installation {
    Installation::with_lanes(ConcurrencyLimits::default()).await
}

/// Objects of a namespace, each with its path, the template of that, and what makes it.
fn objects() -> [(String, &'static str, &'static str); 13] {
    let base = "/v1/namespaces/default";
    [
        (format!("{base}/clusters/db"), "/v1/namespaces/{ns}/clusters/{cluster}", r#"{"filter": "all"}"#),
        (
            format!("{base}/ensembles/store"),
            "/v1/namespaces/{ns}/ensembles/{ensemble}",
            r#"{"service": {"etcd": {}}, "filter": "all"}"#,
        ),
        (format!("{base}/filters/old"), "/v1/namespaces/{ns}/filters/{filter}", r#"{"filter": "all"}"#),
        (
            format!("{base}/reactions/promote"),
            "/v1/namespaces/{ns}/reactions/{reaction}",
            r#"{"workflow": "a", "on": "condition = store_down"}"#,
        ),
        (
            format!("{base}/schedules/nightly"),
            "/v1/namespaces/{ns}/schedules/{schedule}",
            r#"{"workflow": "a", "filter": "all", "cron": "@daily"}"#,
        ),
        (
            format!("{base}/sinks/audit"),
            "/v1/namespaces/{ns}/sinks/{sink}",
            r#"{"webhook": {"url": "http://receiver.invalid/"}, "disabled": true}"#,
        ),
        (format!("{base}/freezes/sale"), "/v1/namespaces/{ns}/freezes/{freeze}", "{}"),
        ("/v1/freezes/sale".to_owned(), "/v1/freezes/{freeze}", "{}"),
        (format!("{base}/pauses/disks"), "/v1/namespaces/{ns}/pauses/{pause}", r#"{"nodes": "all"}"#),
        (
            format!("{base}/tasks/install"),
            "/v1/namespaces/{ns}/tasks/{task}",
            r#"{"steps": [{"name": "do", "script": {"text": "true"}}]}"#,
        ),
        (format!("{base}/stages/install"), "/v1/namespaces/{ns}/stages/{stage}", r#"{"tasks": ["install"]}"#),
        (
            format!("{base}/workflows/install"),
            "/v1/namespaces/{ns}/workflows/{workflow}",
            r#"{"stages": ["a"]}"#,
        ),
        (format!("{base}/secrets/db/root"), "/v1/namespaces/{ns}/secrets/{secret}", r#"{"value": 1}"#),
    ]
}

#[tokio::test]
async fn a_new_object_is_created_and_the_next_one_of_its_name_replaces_it_as_described() {
    let installation = plain().await;
    let document: serde_json::Value =
        serde_json::from_str(&raw(&installation, "GET /openapi.json", "").await.2).unwrap();
    let base = "/v1/namespaces/default";
    for (path, template, body) in objects() {
        let responses = &document["paths"][template]["put"]["responses"];
        for expected in [201, 200] {
            let (status, _, said) = raw(&installation, &format!("PUT {path}"), body).await;
            assert_eq!(status, expected, "{path}: {said}");
            assert!(
                responses[status.to_string()]["content"].is_object(),
                "{path}: {status} is not described"
            );
        }
    }
    let responses = &document["paths"]["/v1/namespaces/{ns}/params/{param}"]["put"]["responses"];
    for expected in [201, 200] {
        let (status, _, said) = raw(&installation, &format!("PUT {base}/params/web/port"), "{}").await;
        assert_eq!(status, expected, "{said}");
        assert!(responses[status.to_string()]["content"].is_object(), "{status} is not described");
    }
    let claims = r#"{"claims": [{"verbs": ["get"], "kinds": ["node"]}]}"#;
    let responses = &document["paths"]["/v1/roles/{role}"]["put"]["responses"];
    for expected in [201, 200] {
        let (status, _, said) = raw(&installation, "PUT /v1/roles/readers", claims).await;
        assert_eq!(status, expected, "{said}");
        assert!(responses[status.to_string()]["content"].is_object(), "{status} is not described");
    }
    let others = document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
    let created = others.filter(|(_, operation)| operation["responses"]["201"].is_object()).count();
    assert_eq!(created, 15, "another operation is described with 201");
}

#[tokio::test]
async fn an_empty_body_is_refused_where_one_is_needed() {
    let installation = plain().await;
    for request in [
        "PUT /v1/namespaces/default/entities/web",
        "PATCH /v1/namespaces/default/nodes/web-1/labels",
        "PUT /v1/freezes/sale",
        "POST /v1/namespaces/default/apply",
        "POST /v1/join-tokens",
    ] {
        let (status, _, body) = raw(&installation, request, "").await;
        assert_eq!(status, 400, "{request}: {body}");
        assert!(body.contains("body: empty; send"), "{request}: {body}");
    }
}

#[tokio::test]
async fn an_empty_body_is_accepted_where_every_field_of_an_operation_is_optional() {
    let installation = plain().await;
    let _node = installation.node("web-1").await;
    let document: serde_json::Value =
        serde_json::from_str(&raw(&installation, "GET /openapi.json", "").await.2).unwrap();
    let base = "/v1/namespaces/default";
    for (path, template) in [
        ("nodes/web-1/pause", "nodes/{node}/pause"),
        ("nodes/web-1/cordon", "nodes/{node}/cordon"),
        ("nodes/web-1/drain", "nodes/{node}/drain"),
        ("nodes/web-1/decommission", "nodes/{node}/decommission"),
    ] {
        let (status, _, body) = raw(&installation, &format!("POST {base}/{path}"), "").await;
        assert_eq!(status, 200, "{path}: {body}");
        let described = &document["paths"][format!("/v1/namespaces/{{ns}}/{template}")]["post"];
        assert_ne!(described["requestBody"]["required"], true, "{path}");
    }
    // An operation on a rollout is read before the entity is looked up.
    for operation in ["pause", "resume", "approve", "abort", "undo", "retry"] {
        let request = format!("POST {base}/entities/web/rollout/{operation}");
        let (status, _, body) = raw(&installation, &request, "").await;
        assert!(status == 404 && body.contains("cannot find entity web"), "{operation}: {body}");
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_answered_with_those_it_has() {
    let installation = plain().await;
    for (request, allowed) in [
        ("POST /v1/namespaces/default/nodes", &["get"][..]),
        ("POST /v1/namespaces/default/entities/web", &["get", "put", "patch", "delete"]),
        ("DELETE /openapi.json", &["get"]),
    ] {
        let (status, head, body) = raw(&installation, request, "").await;
        assert_eq!(status, 405, "{request}: {body}");
        let allow = head.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap_or_default();
        let allow: Vec<&str> = allow.split(',').map(str::trim).filter(|method| *method != "head").collect();
        assert!(allowed.iter().all(|method| allow.contains(method)), "{request}: {allow:?}");
        assert_eq!(allow.len(), allowed.len(), "{request}: {allow:?}");
    }
}

fn python(args: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(PYTHON);
    command.args(args).current_dir(dir).env("PYTHONPATH", dir).env("NO_COLOR", "1");
    command.output().expect("Python's OpenAPI tools are here: `cargo xtask test` installs them")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_tools_find_the_description_valid_and_generate_a_client_that_works() {
    let installation = plain().await;
    let _node = installation.node("web-1").await;
    let dir = tempfile::tempdir().unwrap();
    let document = raw(&installation, "GET /openapi.json", "").await.2;
    std::fs::write(dir.path().join("openapi.json"), document).unwrap();

    let checked = python(&["-m", "openapi_spec_validator", "openapi.json"], dir.path());
    assert!(checked.status.success(), "{}", said(&checked));

    // The generator does not know that lines of JSON are text.
    let settings = "content_type_overrides:\n  application/x-ndjson: text/plain\n";
    std::fs::write(dir.path().join("settings.yaml"), settings).unwrap();
    let generate = ["-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"];
    let into = ["--output-path", "generated", "--config", "settings.yaml"];
    let generated = python(&[&generate[..], &into].concat(), dir.path());
    let report = said(&generated);
    assert!(generated.status.success(), "{report}");
    assert!(!report.contains("will not be generated"), "{report}");
    assert!(!report.contains("will be omitted"), "{report}");

    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/generated_client.py");
    let url = format!("http://{}", installation.server().plain_address.unwrap());
    let token = installation.admin_token.expose();
    let used = python(&[script.to_str().unwrap(), &url, token], dir.path());
    assert!(used.status.success(), "{}", said(&used));
    assert_eq!(installation.admin().entity("default", "web").await.unwrap().owner, "shop team");
}

/// Calls every operation with valid and invalid values of every parameter and field.
#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_an_error_of_the_server_or_other_than_described() {
    let installation = plain().await;
    let _node = installation.node("web-1").await;
    let url = format!("http://{}", installation.server().plain_address.unwrap());
    let token = format!("Authorization: Bearer {}", installation.admin_token.expose());
    let checks =
        "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    let run = ["-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"];
    // Streams and long polls do not end by themselves, and a backup is not JSON.
    let without = ["--exclude-path-regex", "order$|stream$|backup"];
    // `cargo xtask schemathesis` tries more.
    let examples = option_env!("BELLWETHER_API_EXAMPLES").unwrap_or("5");
    let effort = ["--phases", "examples,coverage,fuzzing", "--max-examples", examples, "--checks", checks];
    let description = format!("{url}/openapi.json");
    let args = [&run[..], &[&description, "-H", &token], &without, &effort].concat();
    let dir = tempfile::tempdir().unwrap();
    let done = tokio::task::block_in_place(|| python(&args, dir.path()));
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains(" passed"), "{}", said(&done));
    eprintln!("{}", said(&done));
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_with_a_problem() {
    let installation = plain().await;
    let refused = |(status, head, body): (u16, String, String), reason: &str| {
        assert_eq!(status, 400, "{head}{body}");
        assert!(head.contains("content-type: application/problem+json"), "{head}");
        assert!(body.contains("\"invalid\"") && body.contains(reason), "{body}");
    };
    for path in ["/v1/namespaces/%ff%fe/nodes/x", "/v1/namespaces/default/nodes/%ff", "/v1/tokens/%ff"] {
        let method = if path.contains("tokens") { "DELETE" } else { "GET" };
        refused(raw(&installation, &format!("{method} {path}"), "").await, "cannot read the path");
    }
    let put = "PUT /v1/namespaces/default/profiles/web";
    for chunks in ["-1\r\n", "FFFFFFFFFFFFFFFFF\r\n", "2\r\n{}}}"] {
        let answer = framed(&installation, put, ("Transfer-Encoding: chunked", chunks)).await;
        refused(answer, "its chunks are malformed");
    }
}
