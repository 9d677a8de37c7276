use bellwether_api::template::{MAX_TAG_BYTES, MAX_TEMPLATE_BYTES};
use serde_json::json;

use super::*;

fn context() -> RenderContext {
    RenderContext {
        masked: None,
        params: serde_json::from_value(json!({"port": 8080, "db": {"host": "a"}, "up/stream": ["x", "y"]}))
            .unwrap(),
        node: "web-1".into(),
        namespace: "default".into(),
        entity: "web".into(),
        version: "web@7".into(),
        revision: 7,
    }
}

fn rendered(source: &str) -> Result<String, String> {
    render("app.conf", source, &context())
}

#[test]
fn a_template_has_params_and_the_facts_of_its_node() {
    let source = "# {{ version }} of {{ entity }} on {{ node.name }} in {{ node.namespace }}, {{ revision + 1 }}\n\
                  {% for each in params[\"up/stream\"] %}\nserver {{ each }};\n{% endfor %}\n\
                  listen {{ params.port }}; {{ params.db | tojson }} {{ params.tls | default(false) }}\n";
    let text =
        "# web@7 of web on web-1 in default, 8\nserver x;\nserver y;\nlisten 8080; {\"host\": \"a\"} false\n";
    assert_eq!(rendered(source).unwrap(), text);
}

#[test]
fn a_missing_param_is_named_with_its_line() {
    for (source, says) in [
        ("a\n{{ params.prt }}", "app.conf, line 2: `params.prt` is undefined"),
        ("{{ params.db.port }}", "app.conf, line 1: `params.db.port` is undefined"),
        ("\n\n{% for a in params.nope %}{% endfor %}", "app.conf, line 3: `params.nope` is undefined"),
    ] {
        let error = rendered(source).unwrap_err();
        assert!(error.starts_with(says), "{source}: {error}");
    }
}

#[test]
fn an_invalid_template_is_refused_with_its_line() {
    for source in ["\n{{ params.port", "\n{% if %}", "\n{{ params.port | nosuch }}", "\n{% include 'x' %}"] {
        let error = rendered(source).unwrap_err();
        assert!(error.starts_with("app.conf, line 2: "), "{source}: {error}");
    }
}

#[test]
fn a_template_that_would_not_end_is_stopped() {
    let loops = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    assert!(rendered(loops).unwrap_err().contains("more than 2000000 steps"));
    let grows = format!("{{% for a in range(100000) %}}{}{{% endfor %}}", "x".repeat(1_000));
    assert!(rendered(&grows).unwrap_err().contains("more than 4194304 bytes"));
    let calls_itself = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
    assert!(rendered(calls_itself).is_err());
    assert!(rendered(&"x".repeat(MAX_TEMPLATE_BYTES + 1)).unwrap_err().contains("longer than"));
}

#[test]
fn deep_nesting_is_refused_and_does_not_exhaust_the_stack() {
    let longest = MAX_TAG_BYTES - 16;
    for (open, close) in
        [("(", ")"), ("[", "]"), ("not ", ""), ("-", ""), ("1+", ""), ("1~", ""), ("1 if 1 else ", "")]
    {
        for count in [longest / (open.len() + close.len()), 20_000] {
            let source = format!("{{{{ {}1{} }}}}", open.repeat(count), close.repeat(count));
            drop(rendered(&source));
        }
    }
    for tail in ["|int", ".a", "[0]", "()", " is defined", " and 1", ",1"] {
        for count in [longest / tail.len(), 20_000] {
            drop(rendered(&format!("{{{{ [1{}] }}}}", tail.repeat(count))));
        }
    }
    for (open, close) in [("{% if 1 %}", "{% endif %}"), ("{% for a in [1] %}", "{% endfor %}")] {
        for count in [140, 10_000] {
            drop(rendered(&format!("{}{}", open.repeat(count), close.repeat(count))));
        }
    }
}
