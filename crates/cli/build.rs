//! Has the program's relocations packed (`DT_RELR`) where the loader it will start with can read them: each process else reads a
//! megabyte of them at its start, and keeps it.
//!
//! A program built so needs glibc 2.36 or later, and says so where it is missing. Where the system that builds has an older
//! one, is built for another, or has none, the program is built without.

#![expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]

use std::process::Command;

/// The first glibc that reads them.
const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if is_for_this_machine() && is_of_gnu_on_x86_64() && glibc().is_some_and(|version| version >= SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn is_for_this_machine() -> bool {
    std::env::var_os("HOST") == std::env::var_os("TARGET")
}

fn is_of_gnu_on_x86_64() -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|set| set == value);
    is("CARGO_CFG_TARGET_ENV", "gnu") && is("CARGO_CFG_TARGET_ARCH", "x86_64")
}

/// The version of this system's glibc.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, rest) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, rest.split('.').next()?.parse().ok()?))
}
