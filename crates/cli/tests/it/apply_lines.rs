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
async fn a_field_of_an_element_is_named_with_its_line_and_what_explains_it() {
    let place = Setup::new().await;
    let steps = "kind: task\nname: t\nsteps:\n- name: a\n  script: {text: x}\n- name: b\n  script:\n";
    let long = format!("{steps}    text: {}\n    interpreter: {}\n", "x".repeat(90), "y".repeat(90));
    let toml =
        format!("kind = \"task\"\nname = \"t\"\n[[steps]]\nname = \"a\"\nscript = \"{}\"\n", "x".repeat(90));
    let template = format!("{steps}    text: \"{{{{ nope\"\n");
    let cases: [(String, &[&str]); 4] = [
        (
            write(&place, "template.yaml", &template),
            &["task/t: steps[1].script.text: ", "template.yaml, line 8"],
        ),
        (
            write(&place, "long.yaml", &long),
            &[
                "steps[1].script.interpreter: it is a string, and not a list at line 9",
                "explain task.steps\n",
            ],
        ),
        (
            write(&place, "long.toml", &toml),
            &[
                "long.toml: steps[0].script: it is a string, and not a mapping with the fields of a script at line 5",
                "explain task.steps\n",
            ],
        ),
        (
            write(&place, "kind.yaml", "kind: taks\nname: t\n"),
            &["did you mean task?", "explain entity   (or: "],
        ),
    ];
    refused(&place, &cases);
    for (file, _) in cases {
        let said = text(&place.run(&["apply", "-f", &file]).stderr);
        assert!(
            said.lines().all(|line| line.len() < 400) && !said.contains("xxxx") && !said.contains("yyyy"),
            "{said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_names_the_path_of_a_field_that_cannot_be_read() {
    let place = Setup::new().await;
    let json =
        |spec: &str| format!("{{\"kind\": \"entity\", \"name\": \"a\", \"selector\": \"all\", {spec}}}");
    let toml = |spec: &str| format!("kind = \"entity\"\nname = \"a\"\nselector = \"all\"\n{spec}\n");
    let odd = ["policy.stages: it is the number 5, and not a list", "explain policy.stages"];
    let slip = ["policy: unknown field `batsh`", "did you mean batch?"];
    let cases: [(String, &[&str]); 5] = [
        (write(&place, "odd.json", json("\"policy\": {\"stages\": 5}")), &odd),
        (write(&place, "odd.toml", toml("[policy]\nstages = 5")), &odd),
        (write(&place, "slip.json", json("\"policy\": {\"batsh\": \"5\"}")), &slip),
        (write(&place, "slip.toml", toml("[policy]\nbatsh = \"5\"")), &slip),
        (
            write(&place, "top.json", json("\"ownr\": \"me\"")),
            &["unknown field `ownr`", "did you mean owner?"],
        ),
    ];
    refused(&place, &cases);
    let said = text(&place.run(&["apply", "-f", &cases[4].0]).stderr);
    assert!(!said.contains(".: ") && !said.contains("ownr: unknown"), "{said}");
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
