//! Modules: the files of a crate as its `mod` items declare them, parsed. Tests are left out, and so is generated code.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use syn::{Attribute, Item};

use crate::codegen;

/// A module's path from the root of its crate; the root's is empty.
pub(super) type ModulePath = Vec<String>;

/// A source file.
pub(super) struct File {
    /// Its path in the tree.
    pub(super) path: String,
    /// The module it is.
    pub(super) module: ModulePath,
    pub(super) syntax: syn::File,
}

/// One crate: everything that one root file declares.
#[derive(Default)]
pub(super) struct Modules {
    pub(super) files: Vec<File>,
    /// Every module, also one within a file, and the index of its file.
    pub(super) places: BTreeMap<ModulePath, usize>,
}

/// The crates of a package: its library, its program, or both.
pub(super) fn read(root: &Path, package: &str) -> Result<Vec<Modules>> {
    let roots = ["lib.rs", "main.rs"].map(|name| format!("{package}/src/{name}"));
    roots
        .iter()
        .filter(|path| root.join(path).is_file())
        .map(|path| {
            let mut modules = Modules::default();
            let folder = format!("{package}/src");
            modules.add_file(root, path, &folder, Vec::new())?;
            Ok(modules)
        })
        .collect()
}

/// Whether an item is part of tests only.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

impl Modules {
    /// Adds a file and all that it declares; files of its children lie in `folder`.
    fn add_file(&mut self, root: &Path, path: &str, folder: &str, module: ModulePath) -> Result<()> {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        let syntax = syn::parse_file(&text).with_context(|| format!("cannot parse {path}"))?;
        let index = self.files.len();
        let children = self.add_module(index, &syntax.items, &module, folder);
        self.files.push(File { path: path.to_owned(), module, syntax });
        for (module, folder) in children {
            let file = format!("{folder}.rs");
            if !codegen::is_generated(&file) {
                self.add_file(root, &file, &folder, module)?;
            }
        }
        Ok(())
    }

    /// Notes a module and the modules within it; answers those that have files of their own, with their folders.
    fn add_module(
        &mut self,
        file: usize,
        items: &[Item],
        module: &ModulePath,
        folder: &str,
    ) -> Vec<(ModulePath, String)> {
        self.places.insert(module.clone(), file);
        let mut children = Vec::new();
        for item in items {
            let Item::Mod(item) = item else { continue };
            if is_test(&item.attrs) {
                continue;
            }
            let name = item.ident.to_string();
            let child = [module.as_slice(), std::slice::from_ref(&name)].concat();
            let folder = format!("{folder}/{name}");
            match &item.content {
                Some((_, items)) => children.extend(self.add_module(file, items, &child, &folder)),
                None => children.push((child, folder)),
            }
        }
        children
    }
}
