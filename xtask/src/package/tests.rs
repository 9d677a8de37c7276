use super::*;

/// A machine of its own in a directory: dpkg's database, and what packages bring.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("var/lib/dpkg/info")).unwrap();
        fs::write(dir.path().join("var/lib/dpkg/status"), "").unwrap();
        Self { dir }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// dpkg as on a machine without its own shell: scripts run here, and are told where the machine is.
    fn dpkg(&self, args: &[&str]) {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", self.dir.path().display()));
        command.arg(format!("--log={}", self.path("dpkg.log").display()));
        // Nothing else is installed there.
        command.args(["--force-script-chrootless", "--force-depends"]).args(args);
        output(&mut command).unwrap();
    }

    /// What the installed program says.
    fn says(&self, args: &[&str]) -> String {
        output(Command::new(self.path("usr/bin/bellwether")).args(args)).unwrap()
    }

    fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.path(path)).unwrap().permissions().mode() & 0o7777
    }

    /// What is left of the package, by name.
    fn left(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        let mut open = vec![self.dir.path().to_path_buf()];
        while let Some(folder) = open.pop() {
            for path in files(&folder).unwrap() {
                if path.to_string_lossy().contains("bellwether") {
                    left.push(path.strip_prefix(self.dir.path()).unwrap().to_path_buf());
                }
                if path.is_dir() && !path.is_symlink() {
                    open.push(path);
                }
            }
        }
        left
    }
}

/// The package, made of the program that lies beside this test: `cargo xtask test` builds it first.
fn packed(out: &Path) -> String {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("bellwether");
    assert!(program.is_file(), "{} is not there: build it with cargo build", program.display());
    pack(tree, &program, out, "none").unwrap().display().to_string()
}

#[test]
fn the_package_is_installed_works_is_removed_and_its_purge_leaves_nothing() {
    assert!(
        fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0),
        "dpkg gives files to users: run this as root"
    );
    let out = tempfile::tempdir().unwrap();
    let package = packed(out.path());
    let machine = Machine::new();
    machine.dpkg(&["--install", &package]);
    assert!(machine.says(&["--version"]).starts_with("bellwether 0."));
    assert!(fs::read_to_string(machine.path("etc/passwd")).unwrap().contains("bellwether:"));
    assert_eq!(
        (machine.mode("var/lib/bellwether/server"), machine.mode("var/lib/bellwether/agent")),
        (0o700, 0o700)
    );
    assert_eq!((machine.mode("etc/bellwether"), machine.mode("etc/bellwether/server.toml")), (0o750, 0o640));

    // What it brings is what the program understands.
    let file = |path: &str| machine.path(path).display().to_string();
    // The configuration is valid; what is missing is the installation that `server init` makes.
    let check = ["server", "run", "--check", "--config", &file("etc/bellwether/server.toml")];
    let refused =
        output(Command::new(machine.path("usr/bin/bellwether")).args(check)).unwrap_err().to_string();
    assert!(refused.contains("cannot find an installation in /var/lib/bellwether/server"), "{refused}");
    let example = file("usr/share/doc/bellwether/examples/agent.toml");
    machine.says(&["agent", "run", "--check", "--config", &example]);
    let page = output(Command::new("gzip").args(["-dc", &file("usr/share/man/man1/bellwether-server.1.gz")]));
    assert!(page.unwrap().contains("bellwether"));
    for (shell, path) in COMPLETIONS {
        let text = fs::read_to_string(machine.path(path)).unwrap();
        assert!(text.contains("bellwether") && !text.contains("target/"), "{shell}: {text}");
    }

    let (kept, configured) =
        (machine.path("var/lib/bellwether/server/store"), machine.path("etc/bellwether/agent.toml"));
    fs::write(&kept, "a store").unwrap();
    fs::write(&configured, "an agent's").unwrap();
    machine.dpkg(&["--install", &package]);
    machine.dpkg(&["--remove", "bellwether"]);
    assert!(!machine.path("usr/bin/bellwether").exists() && kept.exists() && configured.exists());
    assert!(machine.path("etc/bellwether/server.toml").exists(), "configuration stays until a purge");
    machine.dpkg(&["--purge", "bellwether"]);
    assert_eq!(machine.left(), Vec::<PathBuf>::new());
}

#[test]
fn systemd_understands_the_units() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let dir = tempfile::tempdir().unwrap();
    for name in ["bellwether-server.service", "bellwether-agent.service"] {
        let unit = read(&tree.join("packaging/systemd").join(name)).unwrap();
        // The program is not installed on this machine; that it is said where it is installed stands above.
        assert!(unit.contains("ExecStart=/usr/bin/bellwether "), "{unit}");
        let unit = unit.replace("/usr/bin/bellwether", "/usr/bin/true");
        let path = dir.path().join(name);
        fs::write(&path, unit).unwrap();
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no", "--recursive-errors=no"]).arg(&path);
        let checked = command.output().expect("systemd-analyze is here: it comes with systemd");
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        let about: Vec<&str> = said.lines().filter(|line| line.contains(name)).collect();
        assert!(checked.status.success() && about.is_empty(), "{name}: {said}");
    }
}
