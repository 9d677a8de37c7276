//! The present: a read that asks for it is answered when this server's picture of the store includes everything that was
//! committed before it was asked, or not at all. Owns how that is made sure of.

use std::time::Duration;

use axum::extract::Request;
use bellwether_api::paths::CONSISTENCY;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_core::words::counter::Revision;

use super::AppState;
use super::problem::Failure;

/// How long a read waits for the present at most: half of what its caller waits for an answer.
const WITHIN: Duration = Duration::from_secs(5);

/// How long for what is under way: a watch tells of a commit within milliseconds.
const UNDER_WAY: Duration = Duration::from_millis(250);

/// How new an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consistency {
    /// As this server knows it.
    Local,
    /// With everything that was committed before.
    Linearizable,
}

/// What a request asks for.
///
/// # Errors
/// That it is neither.
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

/// Waits until this server knows all that was committed before.
///
/// # Errors
/// Why it does not.
pub(super) async fn reach(app: &AppState) -> Result<(), Failure> {
    let reached = tokio::time::timeout(WITHIN, reached(app)).await;
    reached.unwrap_or_else(|_| Err(refused("the store did not answer in time")))
}

async fn reached(app: &AppState) -> Result<(), Failure> {
    let now = app.store.now().await.map_err(|error| refused(format!("could not {error}")))?;
    let now = Revision::new(now.0);
    if tokio::time::timeout(UNDER_WAY, app.transactor.shows(now)).await == Ok(true) {
        return Ok(());
    }
    // Either the watch is held up, or it was others in a shared etcd who committed, of which it never tells: what is
    // shown is compared with the store, and read again if need be, and this server knows afterwards that it has seen as much.
    if !app.lister.make_sure(&app.stop).await {
        return Err(refused("this server is stopping"));
    }
    if app.world().revision >= now { Ok(()) } else { Err(refused("the store went back")) }
}

fn refused(why: impl std::fmt::Display) -> Failure {
    let hint = "ask another server, or without consistency for what this one knows, which may be old";
    Failure::new(Code::Store, format!("could not make sure that this is the present: {why}")).hint(hint)
}
