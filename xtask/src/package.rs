//! The Debian package: the program with its units, manual pages, completions and examples. Owns what lies where in it; the
//! files themselves are in `packaging`.

#[cfg(test)]
mod tests;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{self, say};

/// The profile that users get.
const DIST: &str = "dist";

/// Files of this tree, and where they are once installed. Those under `etc` are the administrator's to change.
const FILES: [(&str, &str); 10] = [
    ("packaging/systemd/bellwether-server.service", "usr/lib/systemd/system/bellwether-server.service"),
    ("packaging/systemd/bellwether-agent.service", "usr/lib/systemd/system/bellwether-agent.service"),
    ("packaging/systemd/sysusers.conf", "usr/lib/sysusers.d/bellwether.conf"),
    ("packaging/systemd/tmpfiles.conf", "usr/lib/tmpfiles.d/bellwether.conf"),
    ("packaging/etc/server.toml", "etc/bellwether/server.toml"),
    ("packaging/examples/agent.toml", "usr/share/doc/bellwether/examples/agent.toml"),
    ("packaging/monitoring/alerts.yml", "usr/share/doc/bellwether/monitoring/alerts.yml"),
    ("packaging/monitoring/alerts.test.yml", "usr/share/doc/bellwether/monitoring/alerts.test.yml"),
    ("packaging/monitoring/grafana.json", "usr/share/doc/bellwether/monitoring/grafana.json"),
    ("packaging/copyright", "usr/share/doc/bellwether/copyright"),
];

/// What dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Shells, and where each looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/bellwether"),
    ("zsh", "usr/share/zsh/vendor-completions/_bellwether"),
    ("fish", "usr/share/fish/vendor_completions.d/bellwether.fish"),
];

/// Builds the program and packs it; the package is in `target/package`.
pub(crate) fn run(root: &Path, profile: Option<&str>) -> Result<()> {
    let profile = profile.unwrap_or(DIST);
    shell::run(root, "cargo", &["build", "--package", "bellwether", "--locked", "--profile", profile])?;
    let target = built(root)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    // What is not for users is not worth the minutes that packing it tightly takes.
    let compression = if profile == DIST { "xz" } else { "none" };
    let package = pack(root, &target.join(folder).join("bellwether"), &target.join("package"), compression)?;
    say(&format!("{} is there; install it with: apt install {}", package.display(), package.display()));
    Ok(())
}

/// Where cargo builds: the folder above the one that this program is in.
fn built(root: &Path) -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program")?;
    Ok(own.ancestors().nth(2).map_or_else(|| root.join("target"), Path::to_path_buf))
}

/// Packs a program that is built already, below `out`; answers the package.
fn pack(root: &Path, program: &Path, out: &Path, compression: &str) -> Result<PathBuf> {
    let version = version(root)?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let tree = out.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    install(program, &tree.join("usr/bin/bellwether"), 0o755)?;
    for (from, to) in FILES {
        install(&root.join(from), &tree.join(to), 0o644)?;
    }
    documents(root, program, &tree)?;
    control(root, &tree, (&version, &architecture))?;
    let package = out.join(format!("bellwether_{version}_{architecture}.deb"));
    let (from, to) = (tree.display().to_string(), package.display().to_string());
    let compression = format!("-Z{compression}");
    shell::run(root, "dpkg-deb", &["--root-owner-group", &compression, "--build", &from, &to])?;
    Ok(package)
}

/// What the program says of itself: manual pages and completions; and the changelog.
fn documents(root: &Path, program: &Path, tree: &Path) -> Result<()> {
    let pages = tree.join("usr/share/man/man1");
    output(Command::new(program).arg("man").arg(&pages))?;
    let changelog = tree.join("usr/share/doc/bellwether/changelog");
    install(&root.join("CHANGELOG.md"), &changelog, 0o644)?;
    let mut zip = Command::new("gzip");
    zip.args(["-9", "--no-name"]).arg(changelog);
    for page in files(&pages)? {
        zip.arg(page);
    }
    output(&mut zip)?;
    for (shell, path) in COMPLETIONS {
        let text = output(Command::new(program).args(["completions", shell]))?;
        write(&tree.join(path), &format!("{text}\n"), 0o644)?;
    }
    Ok(())
}

/// What dpkg is told of the package.
fn control(root: &Path, tree: &Path, (version, architecture): (&str, &str)) -> Result<()> {
    let size_kib = size(tree)?.div_ceil(1024);
    let libc = output(Command::new("dpkg-query").args(["--show", "--showformat=${Version}", "libc6"]))?;
    let libc = libc.split('-').next().unwrap_or_default();
    let control = read(&root.join("packaging/control"))?
        .replace("{version}", version)
        .replace("{architecture}", architecture)
        .replace("{size_kib}", &size_kib.to_string())
        .replace("{libc}", libc);
    let folder = tree.join("DEBIAN");
    write(&folder.join("control"), &control, 0o644)?;
    let conffiles = FILES.iter().filter(|(_, to)| to.starts_with("etc/"));
    let conffiles: String = conffiles.map(|(_, to)| format!("/{to}\n")).collect();
    write(&folder.join("conffiles"), &conffiles, 0o644)?;
    for script in SCRIPTS {
        install(&root.join("packaging/scripts").join(script), &folder.join(script), 0o755)?;
    }
    Ok(())
}

/// The workspace's version.
fn version(root: &Path) -> Result<String> {
    let manifest: toml::Table =
        toml::from_str(&read(&root.join("Cargo.toml"))?).context("cannot read Cargo.toml")?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = package.and_then(|package| package.get("version")).and_then(toml::Value::as_str);
    version.map(str::to_owned).context("Cargo.toml says no version")
}

/// Copies a file into the package.
fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    set_mode(to, mode)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    make_parent(path)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    set_mode(path, mode)
}

/// Makes the folders above a file, which everybody may look into whatever the mask of the person is who packs.
fn make_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.exists()) else { return Ok(()) };
    make_parent(parent)?;
    fs::create_dir(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    set_mode(parent, 0o755)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The bytes of all files below a folder.
fn size(folder: &Path) -> Result<u64> {
    let sizes = files(folder)?.into_iter().map(|path| {
        if path.is_dir() {
            return size(&path);
        }
        Ok(fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?.len())
    });
    sizes.sum()
}

/// What is in a folder, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// What a program says; its failure is ours.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
