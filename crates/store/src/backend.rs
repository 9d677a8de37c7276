//! What a back end must provide for [`crate::Store`]. Requests arrive checked against the contract's limits.
//!
//! A new back end implements [`Backend`] in a module of its own and adds a constructor to `Store`.

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::entry::{Keys, LeaseId, Page, Revision};
use crate::error::StoreError;
use crate::health::Health;
use crate::range::Range;
use crate::txn::{CommitOutcome, Txn};
use crate::watch::Watch;

/// The answer to one call.
pub(crate) type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The methods of [`crate::Store`], where they are documented.
pub(crate) trait Backend: Send + Sync + fmt::Debug {
    fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Page>;
    /// A back end that reads values from somewhere else need not.
    fn keys(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Keys> {
        let page = self.list(range, at, limit);
        async move { page.await.map(Keys::from) }.boxed()
    }
    fn commit(&self, txn: Txn) -> Answer<'_, CommitOutcome>;
    fn watch(&self, range: Range, after: Revision) -> Answer<'_, Watch>;
    fn grant(&self, ttl: Duration) -> Answer<'_, LeaseId>;
    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, ()>;
    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()>;
    fn compact(&self, before: Revision) -> Answer<'_, ()>;
    fn health(&self) -> watch::Receiver<Health>;
    fn close(&self) -> BoxFuture<'_, ()>;
}
