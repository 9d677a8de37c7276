//! Writes the Rust of one proto file: its messages and its clients. Started by `cargo xtask codegen`.

use std::path::PathBuf;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let usage = "usage: codegen PROTO_FILE OUTPUT_FOLDER";
    let (proto, out) = (args.next().context(usage)?, args.next().context(usage)?);
    let folder = proto.parent().context("the proto file is in no folder")?;
    let read = protox::compile([&proto], [folder]);
    let files = read.with_context(|| format!("cannot read {}", proto.display()))?;
    let mut config = prost_build::Config::new();
    config.bytes(["."]);
    tonic_prost_build::configure()
        .build_server(false)
        .build_transport(false)
        .out_dir(out)
        .compile_fds_with_config(files, config)
        .context("cannot write the code")
}
