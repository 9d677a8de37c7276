//! The flags of the command line by the fields of requests that they set: people are told of what they typed.

/// Fields of requests that a flag sets, with the flag. Of several, the one that was typed.
const FLAGS: [(&str, &str); 18] = [
    ("expires_in", "--expires-in"),
    ("filter", "--filter"),
    ("on", "--on"),
    ("on", "--filter"),
    ("for", "--for"),
    ("nodes", "--nodes"),
    ("from", "--from"),
    ("selector", "--selector"),
    ("nodes", "--selector"),
    ("sort", "--sort"),
    ("fields", "--fields"),
    ("limit", "--limit"),
    ("cron", "--cron"),
    ("time_zone", "--time-zone"),
    ("namespace", "--namespace"),
    ("check.tcp.tcp", "--tcp"),
    ("check.http.http", "--http"),
    ("check.ttl.ttl", "--ttl"),
];

/// The detail of a problem that begins with a field, with the flag in place of the field.
pub(super) fn by_flag(detail: String) -> String {
    let typed: Vec<String> = std::env::args_os().filter_map(|word| word.into_string().ok()).collect();
    by_typed_flag(detail, &typed)
}

fn by_typed_flag(detail: String, typed: &[String]) -> String {
    let of_field =
        |(field, _): &&(&str, &str)| detail.strip_prefix(field).is_some_and(|rest| rest.starts_with(": "));
    let is_typed =
        |flag: &str| typed.iter().any(|word| word == flag || word.starts_with(&format!("{flag}=")));
    let flags: Vec<&(&str, &str)> = FLAGS.iter().filter(of_field).collect();
    let found = flags.iter().find(|(_, flag)| is_typed(flag)).or(flags.last());
    let found = found.and_then(|(field, flag)| Some(format!("{flag}{}", detail.strip_prefix(field)?)));
    found.or_else(|| of_policy(&detail)).unwrap_or(detail)
}

/// Fields of policies that have fields of their own, and no flag.
const WITHOUT_FLAG: [&str; 2] = ["hooks", "monitor"];

/// The detail of a problem with a field of a policy, with the flag in place of the field. Those in files are named behind their object.
fn of_policy(detail: &str) -> Option<String> {
    let (field, rest) = detail.strip_prefix("policy.")?.split_once(": ")?;
    let has_flag = !field.contains(['.', '[']) && !WITHOUT_FLAG.contains(&field);
    has_flag.then(|| format!("--{}: {rest}", field.replace('_', "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_a_flag_sets_is_named_by_the_flag() {
        assert_eq!(by_flag("filter: missing '='".to_owned()), "--filter: missing '='");
        assert_eq!(by_flag("filters: none".to_owned()), "filters: none");
        assert_eq!(by_flag("on: missing".to_owned()), "--filter: missing");
        let typed = ["reaction".to_owned(), "--on=a".to_owned(), "--nodes".to_owned()];
        assert_eq!(by_typed_flag("on: missing".to_owned(), &typed), "--on: missing");
        assert_eq!(by_typed_flag("nodes: missing".to_owned(), &typed), "--nodes: missing");
        assert_eq!(by_flag("nodes: missing".to_owned()), "--selector: missing");
        assert_eq!(by_flag("policy.max_unavailable: no".to_owned()), "--max-unavailable: no");
        assert_eq!(by_flag("policy.hooks.approval.url: no".to_owned()), "policy.hooks.approval.url: no");
        assert_eq!(by_flag("entity/web: policy.batch: no".to_owned()), "entity/web: policy.batch: no");
    }
}
