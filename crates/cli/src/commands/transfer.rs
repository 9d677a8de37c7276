//! `server migrate`, `inspect` and `restore`: copy the whole store.

use std::path::Path;

use bellwether_core::words::plural::Plural;
use bellwether_rt::clock::Clock;
use bellwether_server::config::Config;
use bellwether_server::transfer::backup::BackupContents;
use bellwether_server::transfer::location::{AllowedAuthority, RestoredBackup};
use bellwether_server::transfer::{TransferError, backup, location};

use crate::args::Global;
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::show::time::date;
use crate::show::{Show, table};

/// Interval of progress messages of a migration, in records.
const PROGRESS_EVERY: u64 = 10_000;

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        let text = error.to_string();
        let exit = match error {
            TransferError::Installation(_)
            | TransferError::InUse { .. }
            | TransferError::Clock { .. }
            | TransferError::Authority { .. }
            | TransferError::KeysPresent { .. }
            | TransferError::OtherKeys { .. } => Exit::Refused,
            TransferError::Keys(_) => LocalFault::DataDirectory.exit(),
            TransferError::Damaged(_) | TransferError::Newer { .. } | TransferError::Unreadable { .. } => {
                LocalFault::Input.exit()
            }
            TransferError::File { action: "read", .. } => LocalFault::Input.exit(),
            TransferError::File { action: "write", .. } => LocalFault::Output.exit(),
            // The store of a data directory that has none.
            TransferError::File { .. } => LocalFault::Missing.exit(),
            TransferError::Open(error) => return error.into(),
            TransferError::Store(_)
            | TransferError::Disturbed
            | TransferError::Lost { .. }
            | TransferError::Shape(_) => LocalFault::Contact.exit(),
        };
        Self::new(exit, text)
    }
}

pub(super) async fn move_over(global: &Global, from: &Config, to: &Path) -> CommandResult {
    let to = Config::load(Some(to))?;
    let (source, goal) = (location::name(from), location::name(&to));
    let show = Show::new(global);
    let mut shown = 0;
    let tell_of = |count| {
        if count >= shown + PROGRESS_EVERY {
            shown = count;
            show.note(&Plural(count, "record").to_string());
        }
    };
    let moved = location::migrate(from, &to, tell_of).await?;
    let data =
        serde_json::json!({"from": source, "to": goal, "records": moved.records, "before": moved.before});
    Show::new(global).data(
        &data,
        || vec![goal.clone()],
        |_| {
            format!(
                "{} copied to {goal}, each compared with {source}\n\n\
                 no server starts on {source} any more; keep it until you trust the copy, then remove it\n\
                 next: bellwether server run with the configuration for {goal}",
                Plural(moved.records, "record")
            )
        },
    )?;
    Ok(Exit::Yes)
}

pub(super) fn at(action: &'static str, path: &Path, source: std::io::Error) -> Failure {
    TransferError::File { action, path: path.to_owned(), source }.into()
}

pub(super) async fn inspect(global: &Global, file: &Path) -> CommandResult {
    let contents = if file.as_os_str() == "-" {
        backup::inspect(tokio::io::stdin()).await?
    } else {
        let opened = tokio::fs::File::open(file).await.map_err(|source| at("read", file, source))?;
        backup::inspect(opened).await?
    };
    Show::new(global).data(&contents, || vec![contents.installation.clone()], |_| describe(&contents))?;
    Ok(Exit::Yes)
}

fn describe(contents: &BackupContents) -> String {
    let rows = contents.kinds.iter().map(|(kind, count)| vec![kind.clone(), count.to_string()]);
    let keys = match contents.keys.is_empty() {
        true => String::new(),
        false => format!("\nkeys          {}: keep the backup secret", contents.keys.join(", ")),
    };
    let unreadable = contents.unreadable.as_ref();
    let unreadable =
        unreadable.map_or(String::new(), |reason| format!("\nunreadable    this release cannot {reason}"));
    format!(
        "installation  {}\nauthority     {}\ntaken         {} by {}, at revision {}\nrecords       {}, complete{keys}{unreadable}\n\n{}",
        contents.installation,
        contents.ca_fingerprint,
        date(contents.taken_ms),
        contents.version,
        contents.revision,
        contents.records,
        table(&["kind", "records"], rows),
    )
}

/// Restores a backup; `from` is the configuration file, if one was given.
pub(super) async fn restore(
    global: &Global,
    config: &Config,
    from: Option<&Path>,
    (file, allowed): (&Path, AllowedAuthority),
) -> CommandResult {
    let restored = location::restore(config, Clock::system().now(), file, allowed).await?;
    let (contents, goal) = (&restored.contents, location::name(config));
    let pki = pki_needed(config, &restored);
    let from = from.map_or(String::new(), |from| format!(" --config {}", from.display()));
    Show::new(global).data(
        contents,
        || vec![contents.installation.clone()],
        |_| {
            format!(
                "{} of {} restored to {goal}\n\n\
                 every node moves to the versions that these records name as soon as it is told, all at once and without batches: to hold \
                 them back, stop their agents before a server starts\n\
                 tokens and node certificates are as they were then: what was revoked later is valid again\n\
                 {pki}\n\
                 next: bellwether server run{from} --data-dir {}",
                Plural(contents.records, "record"),
                date(contents.taken_ms),
                config.data_dir.display(),
            )
        },
    )?;
    Ok(Exit::Yes)
}

/// What a server needs besides the records that were restored.
fn pki_needed(config: &Config, restored: &RestoredBackup) -> String {
    let dir = config.data_dir.display();
    if restored.has_keys {
        return format!(
            "{dir}/pki has the certificate authority and the keys of secrets from the backup: nothing else is needed for a start"
        );
    }
    format!(
        "the server needs the certificate authority of that time in {dir}/pki: ca.pem and ca.key, fingerprint {}, and secrets.key with the \
         keys of secrets of that time, without which no secret can be read, and no authority that followed that one be used",
        restored.contents.ca_fingerprint
    )
}

/// Notes that a store was set back.
pub(super) async fn note_set_back(global: &Global, config: &Config) -> CommandResult {
    let installation = location::note_set_back(config, Clock::system().now()).await?;
    let data = serde_json::json!({ "installation": installation.id, "epoch": installation.epoch });
    Show::new(global).data(
        &data,
        || vec![installation.id.clone()],
        |_| {
            format!(
                "the numbers that {} issues are greater than all before: each node gets its order anew, and no fencing \
                 number is issued twice\n\
                 next: start the servers",
                location::name(config),
            )
        },
    )?;
    Ok(Exit::Yes)
}
