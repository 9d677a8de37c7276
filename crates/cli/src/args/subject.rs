//! Names as typed, with their kind before them or without it: `run/shop-7` is `shop-7`, as `-o name` and subjects have it. Nothing
//! else can be meant.

use std::convert::Infallible;

/// The name of a run.
pub(super) fn run(text: &str) -> Result<String, Infallible> {
    Ok(without(text, &["run"]))
}

/// The name of a job, `RUN/NODE/INDEX`: no run is called `job`, since its name ends with a number.
pub(super) fn job(text: &str) -> Result<String, Infallible> {
    Ok(without(text, &["job"]))
}

/// The name of an entity; a run is one.
pub(super) fn entity(text: &str) -> Result<String, Infallible> {
    Ok(without(text, &["entity", "rollout", "run"]))
}

fn without(text: &str, kinds: &[&str]) -> String {
    match text.split_once('/') {
        Some((kind, name)) if kinds.contains(&kind) => name.to_owned(),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_its_kind_before_it() {
        for text in ["shop-7", "run/shop-7"] {
            assert_eq!(run(text), Ok("shop-7".to_owned()));
            assert_eq!(entity(text), Ok("shop-7".to_owned()));
        }
        assert_eq!(entity("entity/web"), Ok("web".to_owned()));
        for text in ["shop-7/web-1/0", "job/shop-7/web-1/0"] {
            assert_eq!(job(text), Ok("shop-7/web-1/0".to_owned()));
        }
        assert_eq!(run("node/web-1"), Ok("node/web-1".to_owned()), "it is refused as it was typed");
    }
}
