//! The line that `apply` names for a field that it refuses.

use crate::apply::write;
use crate::place::{Setup, code, text};

/// Applies each file, and expects it to be refused with these words.
fn refused(place: &Setup, cases: &[(String, &[&str])]) {
    for (file, says) in cases {
        let output = place.run(&["apply", "-f", file]);
        let said = text(&output.stderr);
        assert_eq!(code(&output), 64, "{file}: {said}");
        assert!(says.iter().all(|word| said.contains(word)), "{file}: {says:?} is not in: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_refused_is_named_with_its_own_line() {
    let place = Setup::new().await;
    let flow = write(
        &place,
        "flow.yaml",
        "kind: entity\nname: api\nselector: all\nlabels: {version: x}\npolicy: {soak: 1s, batch: lots}\n",
    );
    let version = "kind: entity\nname: api\nselector: all\nlabels: {version: x}\nversion: \"b ad\"\n";
    let double = "kind: entity\nname: api\nselector: all\npolicy:\n  batch: 1\n  batch: 2\n";
    let cases: [(String, &[&str]); 5] = [
        (flow, &["entity/api: policy.batch", "flow.yaml, line 5"]),
        (write(&place, "version.yaml", version), &["entity/api: version", "version.yaml, line 5"]),
        (
            write(&place, "name.yaml", "kind: slot\nname: a\ncapacity: 1\nname: b\n"),
            &["name.yaml, line 4: duplicate field `name`"],
        ),
        (write(&place, "double.yaml", double), &["double.yaml, line 6: policy: duplicate field `batch`"]),
        (write(&place, "unnamed.yaml", "kind: slot\n"), &["unnamed.yaml, line 1: missing field `name`"]),
    ];
    refused(&place, &cases);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_would_be_stored_as_another_is_refused_with_its_line() {
    let place = Setup::new().await;
    let number = "0.12345678901234567890";
    let yaml = format!("kind: profile\nname: web\nparams:\n  workers: 4\n  ratio: {number}\n");
    let toml = format!("kind = \"profile\"\nname = \"web\"\n[params]\nratio = {number}\n");
    let json =
        format!("{{\"kind\": \"profile\",\n \"name\": \"web\",\n \"params\": {{\"ratio\": {number}}}}}\n");
    let second =
        format!("kind: slot\nname: a\n---\nkind: profile\nname: web\nparams: {{ratio: [1, {number}]}}\n");
    let says = "cannot be kept with all its digits";
    let cases: [(String, &[&str]); 4] = [
        (write(&place, "number.yaml", &yaml), &["number.yaml, line 5: params.ratio: ", says, "quote it"]),
        (write(&place, "number.toml", &toml), &["number.toml, line 4: params.ratio: ", says]),
        (write(&place, "number.json", &json), &["number.json, line 3: params.ratio: ", says]),
        (write(&place, "second.yaml", &second), &["document 2, line 6: params.ratio.1: ", says]),
    ];
    refused(&place, &cases);
}
