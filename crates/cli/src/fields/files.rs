//! The keys of configuration files, read from the tables of the guide, so that the guide and `explain` agree.

use super::field::Field;

/// The pages with tables of keys, and the file each is about.
const PAGES: [(&str, &str, &str); 6] = [
    ("server.toml", "server.md", include_str!("../../../../docs/guide/server.md")),
    ("agent.toml", "nodes.md", include_str!("../../../../docs/guide/nodes.md")),
    ("agent.toml", "configuration.md", include_str!("../../../../docs/guide/configuration.md")),
    ("agent.toml", "files.md", include_str!("../../../../docs/guide/files.md")),
    ("agent.toml", "services.md", include_str!("../../../../docs/guide/services.md")),
    ("agent.toml", "discovery.md", include_str!("../../../../docs/guide/discovery.md")),
];

/// The beginning of a table of keys.
const HEADER: &str = "| key | default |";

/// Every key of every file, as `FILE.SECTION.KEY`.
pub(super) fn fields() -> Vec<Field> {
    PAGES.iter().flat_map(|(file, name, page)| of_page(file, name, page)).collect()
}

fn of_page(file: &str, name: &str, page: &str) -> Vec<Field> {
    let (mut fields, mut section, mut columns) = (Vec::new(), String::new(), None);
    for line in page.lines() {
        if line.starts_with("## ") {
            section.clear();
        } else if let Some(found) = section_of(line) {
            section = format!("{found}.");
        }
        if line.starts_with(HEADER) {
            columns = Some(cells(line).len());
        } else if !line.starts_with('|') {
            columns = None;
        } else if columns.is_some() && !line.starts_with("|--") {
            fields.extend(of_row(&format!("{file}.{section}"), name, &cells(line)));
        }
    }
    fields
}

/// The section that a paragraph is about: it begins with its name, like `[agent]` or `[[entity.NAME.check]]`.
fn section_of(line: &str) -> Option<&str> {
    let name =
        line.strip_prefix("`[")?.split_once("]`").or_else(|| line.strip_prefix("`[[")?.split_once("]]`"))?.0;
    Some(name.trim_matches(['[', ']']))
}

fn of_row(section: &str, page: &str, cells: &[String]) -> Vec<Field> {
    let [keys, default, rest @ ..] = cells else { return Vec::new() };
    let Some((meaning, range)) = rest.split_last() else { return Vec::new() };
    let range = range.first().map_or(String::new(), |range| format!(" ({})", plain(page, range)));
    let keys: Vec<&str> = keys.split(", ").collect();
    // A row about several keys has either one default for all or one for each.
    let each: Vec<&str> = default.split(", ").collect();
    let own = each.len() == keys.len();
    let field = |(index, key): (usize, &&str)| {
        let default = if own { each.get(index).copied().unwrap_or_default() } else { default.as_str() };
        Field {
            field: format!("{section}{}", plain(page, key)),
            meaning: format!("{}{range}", plain(page, meaning)),
            default: (!default.is_empty()).then(|| plain(page, default)),
            example: None,
        }
    };
    keys.iter().enumerate().map(field).collect()
}

/// The cells of a row; a `\|` is part of its cell.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{0}");
    inner.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
}

/// A text of a page without its markup: backticks and links. "See" is followed by the name of the page that is meant.
fn plain(page: &str, text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("](") {
        let (start, label) = before.rsplit_once('[').unwrap_or((before, ""));
        let (target, after) = link.split_once(')').unwrap_or((link, ""));
        let target = target.split('#').next().filter(|name| !name.is_empty()).unwrap_or(page);
        out.push_str(start);
        out.push_str(if start.ends_with("see ") { target } else { label });
        rest = after;
    }
    out.push_str(rest);
    out.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that an error about an unknown key lists.
    fn expected(error: &str) -> Vec<String> {
        let list = error.split("expected").nth(1).unwrap();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_key_that_a_file_may_have_is_explained() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.toml");
        let fields = fields();
        let check = |file: &str, section: &str, error: String| {
            for key in expected(&error) {
                let whole = format!("{file}.{section}{key}").replace(".NAME", "");
                let found = fields.iter().map(|field| field.field.replace(".NAME", "")).any(|field| {
                    field.strip_prefix(&whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                });
                assert!(found, "{whole} is in no table of the guide");
            }
        };
        std::fs::write(&path, "nonsense = 1").unwrap();
        let error = bellwether_server::config::Config::load(Some(&path)).unwrap_err();
        check("server.toml", "", error.to_string());
        for (written, section) in [
            ("[agent]", "agent."),
            ("[entity.web]", "entity.NAME."),
            ("[entity.web.process]", "entity.NAME.process."),
            ("[[entity.web.check]]\nname = \"a\"", "entity.NAME.check."),
            ("[[entity.web.file]]\npath = \"/a\"", "entity.NAME.file."),
            ("[action.backup]", "action.NAME."),
            ("[[file]]\npath = \"/a\"", "file."),
            ("[[service]]\nname = \"a\"", "service."),
            ("[[service]]\nname = \"a\"\n[[service.check]]\nname = \"b\"", "service.check."),
            ("[dns]", "dns."),
            ("[http]", "http."),
        ] {
            std::fs::write(&path, format!("{written}\nnonsense = 1")).unwrap();
            let error = bellwether_agent::config::Config::load(&path).unwrap_err();
            check("agent.toml", section, error.to_string());
        }
    }

    #[test]
    fn a_table_is_read_with_its_section_and_without_its_markup() {
        let page = "## A\n`[[entity.NAME.check]]`: text.\n\n| key | default | meaning |\n|---|---|---|\n\
                    | `a`, `b` | `5 s` | see [there](x.md), a \\| b |\n\n| key | other |\n|---|---|\n| `c` | d |\n";
        let fields = of_page("agent.toml", "page.md", page);
        let names: Vec<&str> = fields.iter().map(|field| field.field.as_str()).collect();
        assert_eq!(names, ["agent.toml.entity.NAME.check.a", "agent.toml.entity.NAME.check.b"]);
        let first = fields.first().unwrap();
        assert_eq!((first.meaning.as_str(), first.default.as_deref()), ("see x.md, a | b", Some("5 s")));
    }
}
