//! Code made from proto files: writes it, and knows whether what is checked in is what would be written.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::shell;

/// The protocol, and the code made from it.
const PROTO: &str = "crates/store/proto/etcd.proto";
const CODE: &str = "crates/store/src/etcd/generated.rs";

/// The name the generator gives the code: the package of the protocol.
const PACKAGE: &str = "etcdserverpb.rs";

/// The first line of the code, behind which the checksums of protocol and code follow.
const HEADER: &str =
    "//! The messages and clients of etcd's API, made by `cargo xtask codegen`; do not edit. ";

/// Writes the code anew.
pub(crate) fn run(root: &Path) -> Result<()> {
    let out = root.join("target/codegen");
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let manifest = root.join("xtask/codegen/Cargo.toml").display().to_string();
    let (proto, folder) = (root.join(PROTO).display().to_string(), out.display().to_string());
    let program = ["run", "--quiet", "--locked", "--manifest-path", &manifest, "--", &proto, &folder];
    shell::run(root, "cargo", &program)?;
    let body = read(&out, PACKAGE)?;
    let code = format!("{HEADER}{}\n{body}", marks(&read(root, PROTO)?, &body));
    std::fs::write(root.join(CODE), code).with_context(|| format!("cannot write {CODE}"))
}

/// Whether a file, by its path in the tree, is made by a program: no rule for people holds for it.
pub(crate) fn is_generated(shown: &str) -> bool {
    shown == CODE
}

/// Complains unless the code is what this protocol gave, untouched.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let code = read(root, CODE)?;
    let Some((header, body)) = code.split_once('\n') else { bail!("{CODE} is empty") };
    let expected = format!("{HEADER}{}", marks(&read(root, PROTO)?, body));
    if header == expected {
        return Ok(Vec::new());
    }
    Ok(vec![format!("{CODE} is not what {PROTO} gives: cargo xtask codegen")])
}

fn marks(proto: &str, body: &str) -> String {
    let mark = |text: &str| crc32fast::hash(text.as_bytes());
    format!("Protocol {:08x}, code {:08x}.", mark(proto), mark(body))
}

fn read(folder: &Path, name: &str) -> Result<String> {
    std::fs::read_to_string(folder.join(name)).with_context(|| format!("cannot read {name}"))
}
