//! PostgreSQL, by SQL over a connection of its own. What a user without `pg_monitor` may not read is absent.

use std::collections::BTreeMap;

use bellwether_core::records::probes::{Amount, Shard, ShardRole, StoreFacts, StoreMember};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

use super::address::broken;
use super::answer::{ProbeError, password};
use crate::config::data_store::Login;

/// Name of the software.
pub(super) const SOFTWARE: &str = "postgresql";

/// The user that asks, if none is configured.
const DEFAULT_USER: &str = "postgres";

const SERVER: &str = "SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby, \
     (SELECT system_identifier FROM pg_control_system()) AS system, \
     (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline, \
     pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0') AS position";
const RECEIVER: &str = "SELECT status, sender_host, sender_port, received_tli FROM pg_stat_wal_receiver";
const STANDBYS: &str = "SELECT application_name AS name, client_addr AS address, state FROM pg_stat_replication ORDER BY 1, 2 LIMIT 100";

/// Asks whether it is a standby, how far it is, and who replicates.
pub(super) async fn ask(address: &str, login: &Login) -> Result<StoreFacts, ProbeError> {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "5432"));
    let mut config = tokio_postgres::Config::new();
    config.host(host).dbname("postgres").application_name("bellwether-agent");
    let user = login.user.as_deref().unwrap_or(DEFAULT_USER);
    config.port(port.parse().unwrap_or(5_432)).user(user);
    if let Some(password) = password(login).await? {
        config.password(password);
    }
    let failed = |error: tokio_postgres::Error| failure((address, user), &error);
    let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
    let asking = async {
        let server = rows(&client, SERVER).await?;
        let server = server.first();
        let standby = server.is_some_and(|row| field(row, "standby").as_deref() == Some("t"));
        let others = rows(&client, if standby { RECEIVER } else { STANDBYS }).await?;
        Ok(facts(server, standby, &others))
    };
    // The connection does the work, and is dropped with the answer.
    tokio::select! {
        answer = asking => answer.map_err(failed),
        ended = connection => Err(match ended {
            Err(error) => failure((address, user), &error),
            Ok(()) => ProbeError::Broken(format!("{address}: the connection was closed")),
        }),
    }
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<SimpleQueryRow>, tokio_postgres::Error> {
    let answer = client.simple_query(sql).await?;
    let row = |message| if let SimpleQueryMessage::Row(row) = message { Some(row) } else { None };
    Ok(answer.into_iter().filter_map(row).collect())
}

fn field(row: &SimpleQueryRow, name: &str) -> Option<String> {
    row.try_get(name).ok().flatten().map(str::to_owned)
}

fn facts(server: Option<&SimpleQueryRow>, standby: bool, others: &[SimpleQueryRow]) -> StoreFacts {
    let of_server = |name: &str| server.and_then(|row| field(row, name));
    let receiver = others.first().filter(|_| standby);
    let of_receiver = |name: &str| receiver.and_then(|row| field(row, name));
    let amount = of_server("position").and_then(|text| text.parse().ok());
    let timeline = of_receiver("received_tli").or_else(|| of_server("timeline"));
    let upstream = of_receiver("sender_host").zip(of_receiver("sender_port"));
    let shard = Shard {
        role: if standby { ShardRole::Replica } else { ShardRole::Primary },
        history: timeline.map(|timeline| format!("timeline {timeline}")),
        offset: amount.map(|amount| Amount { amount, unit: "bytes".to_owned() }),
        lag: None,
        upstream: upstream.map(|(host, port)| format!("{host}:{port}")),
        streaming: standby.then(|| of_receiver("status").as_deref() == Some("streaming")),
    };
    let standbys = || others.iter().map(member).collect::<BTreeMap<_, _>>();
    StoreFacts {
        software: SOFTWARE.to_owned(),
        version: of_server("version").and_then(|version| version.split(' ').next().map(str::to_owned)),
        cluster_id: of_server("system"),
        member_id: None,
        shards: BTreeMap::from([("0".to_owned(), shard)]),
        members: (!standby).then(standbys),
    }
}

fn member(row: &SimpleQueryRow) -> (String, StoreMember) {
    let (name, address) = (field(row, "name"), field(row, "address"));
    let place = address.as_deref().unwrap_or("local");
    let id = format!("{place}/{}", name.as_deref().unwrap_or_default());
    let connected = field(row, "state").map(|state| state == "streaming");
    (id, StoreMember { name, address, votes: true, connected })
}

fn failure((address, user): (&str, &str), error: &tokio_postgres::Error) -> ProbeError {
    let source = std::error::Error::source(error);
    if let Some(error) = source.and_then(|source| source.downcast_ref::<std::io::Error>()) {
        return broken(address, error);
    }
    let reason = match (error.as_db_error(), refused_login(user, error)) {
        (Some(error), Some(advice)) => format!("{address}: {}: {advice}", error.message()),
        (Some(error), None) => format!("{address}: {}", error.message()),
        (None, Some(advice)) => format!("{address}: {advice}"),
        (None, None) => format!("{address}: {error}"),
    };
    match error.code() {
        // It starts, or it stops.
        Some(&SqlState::CANNOT_CONNECT_NOW | &SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN) => {
            ProbeError::Down(reason)
        }
        Some(_) | None => ProbeError::Unknown(reason),
    }
}

/// What to do about a login that the server does not take; `None` if something else failed.
fn refused_login(user: &str, error: &tokio_postgres::Error) -> Option<String> {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    match (error.code(), source.as_str()) {
        (Some(&SqlState::INVALID_PASSWORD), _) => {
            Some("check user and password_file of the probe".to_owned())
        }
        (Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION), _) => Some(format!(
            "have pg_hba.conf admit user {user} without TLS, by trust, by peer on the socket, or by a password that password_file of \
             the probe names, or set user of the probe to another one"
        )),
        (Some(_), _) => None,
        (None, "password missing") => Some(format!(
            "the server wants a password of user {user}: set password_file of the probe, or have pg_hba.conf admit the user by trust, \
             or by peer on the socket"
        )),
        (None, "unsupported authentication method" | "unsupported SASL mechanism") => Some(format!(
            "the server wants an authentication of user {user} that the probe does not have: have pg_hba.conf admit the user by trust, by \
             peer on the socket, or by md5 or scram-sha-256 with password_file of the probe"
        )),
        (None, _) => None,
    }
}
