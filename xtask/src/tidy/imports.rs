//! Imports: which file of a crate names something of which other file of it, by `use` or by a path in its code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

use super::modules::{self, ModulePath, Modules};

/// One file names something of another one of the same crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    /// The file that names it, as a path in the tree.
    pub(super) from: String,
    /// The file that has it.
    pub(super) to: String,
    /// Where it is named, from 1.
    pub(super) line: usize,
    /// What is named, from the root of the crate.
    pub(super) item: String,
}

/// All imports within a package, tests aside, in order.
pub(super) fn read(root: &Path, package: &str) -> Result<BTreeSet<Import>> {
    let mut found = BTreeSet::new();
    for modules in modules::read(root, package)? {
        for (index, file) in modules.files.iter().enumerate() {
            let mut reader = Reader {
                modules: &modules,
                file: index,
                module: file.module.clone(),
                names: BTreeMap::new(),
                found: &mut found,
            };
            reader.learn_names(&file.syntax.items);
            reader.visit_file(&file.syntax);
        }
    }
    Ok(found)
}

/// Reads one file.
struct Reader<'a> {
    modules: &'a Modules,
    file: usize,
    /// The module that is being read.
    module: ModulePath,
    /// Names that stand for modules, by the module in which they do.
    names: BTreeMap<(ModulePath, String), ModulePath>,
    found: &'a mut BTreeSet<Import>,
}

impl Reader<'_> {
    /// Learns which names of the current module stand for other modules.
    fn learn_names(&mut self, items: &[Item]) {
        for item in items {
            let Item::Use(item) = item else { continue };
            for (path, name) in leaves(&item.tree) {
                if let Some(full) = self.resolve(&path).filter(|full| self.modules.places.contains_key(full))
                {
                    self.names.insert((self.module.clone(), name), full);
                }
            }
        }
    }

    /// The full path of what a path names, if its beginning is a module of this crate.
    fn resolve(&self, path: &[String]) -> Option<Vec<String>> {
        let (first, mut rest) = path.split_first()?;
        let mut full = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            name => {
                let key = (self.module.clone(), name.to_owned());
                let child = [self.module.as_slice(), &[name.to_owned()]].concat();
                let is_child = self.modules.places.contains_key(&child);
                self.names.get(&key).cloned().or(is_child.then_some(child))?
            }
        };
        if first == "super" {
            full.pop();
        }
        while let Some((first, others)) = rest.split_first().filter(|(first, _)| *first == "super") {
            debug_assert_eq!(first, "super");
            full.pop();
            rest = others;
        }
        full.extend_from_slice(rest);
        Some(full)
    }

    /// Notes what a path names, if that is in another file.
    fn note(&mut self, path: &[String], line: usize) {
        let Some(full) = self.resolve(path) else { return };
        let place = (0..=full.len()).rev().find_map(|end| self.modules.places.get(full.get(..end)?));
        let file = |index: usize| self.modules.files.get(index).map(|file| file.path.clone());
        let Some(&place) = place.filter(|place| **place != self.file) else { return };
        if let (Some(from), Some(to)) = (file(self.file), file(place)) {
            self.found.insert(Import { from, to, line, item: full.join("::") });
        }
    }

    /// Notes the paths in what is not parsed: the arguments of macros and attributes.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.note_part(&path, line);
                        path.clear();
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Punct(_) | TokenTree::Literal(_) => colons = 0,
                TokenTree::Group(group) => {
                    colons = 0;
                    self.note_tokens(group.stream());
                }
            }
        }
        self.note_part(&path, line);
    }

    /// Notes what a path in code names; a single word there is a variable, a field or a visibility.
    fn note_part(&mut self, path: &[String], line: usize) {
        if path.len() > 1 {
            self.note(path, line);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let Some((_, items)) = &item.content else { return };
        if modules::is_test(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        self.learn_names(items);
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if modules::is_test(&item.attrs) {
            return;
        }
        for (path, _) in leaves(&item.tree) {
            self.note(&path, item.use_token.span.start().line);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !modules::is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !modules::is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !modules::is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    /// `pub(super)` names nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.note_part(&names, line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.note_tokens(mac.tokens.clone());
        visit::visit_macro(self, mac);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.note_tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }
}

/// Every path that a `use` names, and the name it has from then on; a glob names the module.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    match tree {
        UseTree::Path(part) => {
            let first = part.ident.to_string();
            let within = leaves(&part.tree).into_iter();
            within
                .map(|(rest, name)| {
                    // `use a::{self}` names a itself, as a.
                    let name = if name == "self" { first.clone() } else { name };
                    let rest = rest.into_iter().filter(|part| part != "self");
                    ([first.clone()].into_iter().chain(rest).collect(), name)
                })
                .collect()
        }
        UseTree::Name(part) => vec![(vec![part.ident.to_string()], part.ident.to_string())],
        UseTree::Rename(part) => vec![(vec![part.ident.to_string()], part.rename.to_string())],
        UseTree::Glob(_) => vec![(Vec::new(), "*".to_owned())],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_found_however_it_is_written_and_in_tests_none_is() {
        let tree = tempfile::tempdir().unwrap();
        let source = tree.path().join("crates/one/src");
        std::fs::create_dir_all(source.join("a")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(source.join(name), text).unwrap();
        write("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod tests;\npub(crate) struct Root;\n");
        write("a.rs", "mod c;\npub(super) use c::C;\n");
        write(
            "a/c.rs",
            "use super::super::b;\npub(crate) struct C(\n    b::B,\n    crate::Root);\n\
             fn f() { assert!(matches!(1, super::X)) }\n#[cfg(test)]\nmod tests { use crate::a; }\n",
        );
        write("b.rs", "pub(crate) struct B;\nfn f() -> crate::a::C { let a = 1; }\n");
        let found: Vec<String> = read(tree.path(), "crates/one")
            .unwrap()
            .into_iter()
            .map(|import| {
                let short = |path: &str| path.trim_start_matches("crates/one/src/").to_owned();
                format!("{} {} {} {}", short(&import.from), short(&import.to), import.line, import.item)
            })
            .collect();
        let expected = [
            "a.rs a/c.rs 2 a::c::C",
            "a/c.rs a.rs 5 a::X",
            "a/c.rs b.rs 1 b",
            "a/c.rs b.rs 3 b::B",
            "a/c.rs lib.rs 4 Root",
            "b.rs a.rs 2 a::C",
        ];
        assert_eq!(found, expected);
    }
}
