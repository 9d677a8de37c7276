//! Documents over HTTP: applying them, and reading what there is as documents.

use axum::extract::State;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::apply::{Applied, ApplyRequest, Document};
use bellwether_api::v1::page::Page;
use bellwether_core::access::ObjectKind;

use super::auth::Authenticated;
use super::ensembles::may_restore;
use super::input::{JsonAnswer, JsonBody, NamespacePath, QueryParams};
use super::problem::Failure;
use super::state::AppState;
use crate::ops;

pub(crate) async fn apply(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    JsonBody(request): JsonBody<ApplyRequest>,
) -> Result<JsonAnswer<Applied>, Failure> {
    let _permit = match request.dry_run {
        true => Some(app.traffic.admission.dry_run().await?),
        false => None,
    };
    for document in &request.documents {
        if let Document::Ensemble(ensemble) = document {
            may_restore(&caller, &namespace, ensemble.restore.as_ref())?;
        }
        if let Document::Sink(sink) = document {
            let at = |error: ShapeError| error.within(&format!("sink {}", sink.name));
            app.sinks.permit(&sink.name, &sink.spec().desired().map_err(at)?.target)?;
        }
        if let Document::Cluster(cluster) = document {
            let at = |error: ShapeError| error.within(&format!("cluster {}", cluster.name));
            if let Some(discovery) = &cluster.discovery {
                app.discovery.permit(&cluster.name, &discovery.desired().map_err(at)?.source)?;
            }
        }
        if let Document::Entity(entity) = document {
            let at = |error: ShapeError| error.within(&format!("entity {}", entity.name));
            app.hooks.permit(&entity.policy).map_err(at)?;
        }
    }
    Ok(JsonAnswer(ops::apply::apply(&app.records.transactor, &namespace, &caller.0, &request).await?))
}

pub(crate) async fn documents(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<JsonAnswer<Page<Document>>, Failure> {
    query.only(&[])?;
    let world = app.world();
    let mut items = ops::apply::documents(&world, &namespace, app.clock.now());
    items.retain(|document| {
        let kind = match document.kind() {
            "freeze" if document.is_global() => Some(ObjectKind::GlobalFreeze),
            kind => ObjectKind::parse(kind).ok(),
        };
        kind.is_some_and(|kind| query.readable.has_object(kind, document.name()))
    });
    Ok(JsonAnswer(Page { items, next: None, count: None, revision: world.revision.get() }))
}
