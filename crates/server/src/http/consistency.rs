//! Linearizable reads: answered only once this server's world contains everything that was committed before the request.

use std::time::Duration;

use axum::extract::Request;
use bellwether_api::paths::CONSISTENCY;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_core::words::counter::Revision;

use super::problem::Failure;
use super::state::AppState;

/// Longest wait for the world to be up to date: half of the time after which clients give up.
const WITHIN: Duration = Duration::from_secs(5);

/// Wait for the watch alone, which delivers a commit within milliseconds, before the store is compared.
const UNDER_WAY: Duration = Duration::from_millis(250);

/// The consistency that a read requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consistency {
    /// From this server's world as it is.
    Local,
    /// From a world that contains everything committed before the request.
    Linearizable,
}

/// The consistency that a request asks for in its query.
///
/// # Errors
/// [`Failure`] for an unknown value.
pub(super) fn asked(request: &Request) -> Result<Consistency, Failure> {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    let asked = pairs.filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == CONSISTENCY);
    match asked.map(|(_, how)| how) {
        None | Some("local") => Ok(Consistency::Local),
        Some("linearizable") => Ok(Consistency::Linearizable),
        Some(other) => {
            let reason = format!("{other:?} is neither local nor linearizable");
            Err(ShapeError::at(CONSISTENCY, reason).into())
        }
    }
}

/// Waits until the world contains everything committed before this call.
///
/// # Errors
/// Why it does not: the store or this server is the reason.
pub(super) async fn wait_until_current(app: &AppState) -> Result<(), Failure> {
    let reached = tokio::time::timeout(WITHIN, reached(app)).await;
    reached.unwrap_or_else(|_| Err(refused("the store does not answer in time")))
}

async fn reached(app: &AppState) -> Result<(), Failure> {
    let asked = app.cluster.freshness.now();
    let now = app.records.store.now().await.map_err(|error| refused(format!("cannot {error}")))?;
    let now = Revision::new(now.0);
    if tokio::time::timeout(UNDER_WAY, app.records.transactor.reaches(now)).await == Ok(true) {
        app.cluster.freshness.note(asked);
        return Ok(());
    }
    // Either the watch is delayed, or the newer commits are of other programs in a shared etcd, which this watch never
    // delivers: the world is compared with the store, and listed again if it differs. Then it is known to be up to date.
    if !app.records.relist.bring_up_to_date(&app.stop).await {
        return Err(refused("this server is stopping"));
    }
    if app.world().revision < now {
        return Err(refused("the store is at an earlier revision"));
    }
    app.cluster.freshness.note(asked);
    Ok(())
}

fn refused(why: impl std::fmt::Display) -> Failure {
    let hint = "ask another server, or read without consistency, which may return older data";
    Failure::new(Code::Store, format!("cannot read the newest state: {why}")).hint(hint)
}
