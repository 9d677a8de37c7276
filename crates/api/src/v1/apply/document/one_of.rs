//! The schema of documents: one of their kinds.

use utoipa::openapi::schema::{Discriminator, OneOfBuilder};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::super::cluster::ClusterDocument;
use super::super::data::{FilterDocument, NodeDocument, ParamDocument};
use super::super::ensemble::EnsembleDocument;
use super::super::entity::EntityDocument;
use super::super::reaction::ReactionDocument;
use super::super::schedule::ScheduleDocument;
use super::super::sink::SinkDocument;
use super::super::work::{StageDocument, TaskDocument, WorkflowDocument};
use super::{Document, FreezeDocument, PauseDocument, ProfileDocument, SlotDocument};

/// Each kind of document with the name of its schema.
const KINDS: [(&str, &str); 16] = [
    ("cluster", "ClusterDocument"),
    ("ensemble", "EnsembleDocument"),
    ("entity", "EntityDocument"),
    ("filter", "FilterDocument"),
    ("freeze", "FreezeDocument"),
    ("node", "NodeDocument"),
    ("param", "ParamDocument"),
    ("pause", "PauseDocument"),
    ("profile", "ProfileDocument"),
    ("schedule", "ScheduleDocument"),
    ("reaction", "ReactionDocument"),
    ("sink", "SinkDocument"),
    ("slot", "SlotDocument"),
    ("stage", "StageDocument"),
    ("task", "TaskDocument"),
    ("workflow", "WorkflowDocument"),
];

impl PartialSchema for Document {
    fn schema() -> RefOr<Schema> {
        let refs = KINDS.iter().map(|(kind, name)| (*kind, Ref::from_schema_name(*name).ref_location));
        let discriminator = Discriminator::with_mapping("kind", refs);
        let one_of = KINDS.iter().fold(OneOfBuilder::new(), |one_of, (_, name)| {
            one_of.item(RefOr::<Schema>::Ref(Ref::from_schema_name(*name)))
        });
        let described = one_of
            .discriminator(Some(discriminator))
            .description(Some("The desired state of an object. Absent fields take their defaults."));
        RefOr::T(Schema::OneOf(described.build()))
    }
}

impl ToSchema for Document {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ClusterDocument::schemas(schemas);
        EnsembleDocument::schemas(schemas);
        EntityDocument::schemas(schemas);
        FilterDocument::schemas(schemas);
        FreezeDocument::schemas(schemas);
        NodeDocument::schemas(schemas);
        ParamDocument::schemas(schemas);
        PauseDocument::schemas(schemas);
        ProfileDocument::schemas(schemas);
        ScheduleDocument::schemas(schemas);
        ReactionDocument::schemas(schemas);
        SinkDocument::schemas(schemas);
        SlotDocument::schemas(schemas);
        StageDocument::schemas(schemas);
        TaskDocument::schemas(schemas);
        WorkflowDocument::schemas(schemas);
        schemas.push(("ClusterDocument".to_owned(), ClusterDocument::schema()));
        schemas.push(("EnsembleDocument".to_owned(), EnsembleDocument::schema()));
        schemas.push(("EntityDocument".to_owned(), EntityDocument::schema()));
        schemas.push(("FilterDocument".to_owned(), FilterDocument::schema()));
        schemas.push(("FreezeDocument".to_owned(), FreezeDocument::schema()));
        schemas.push(("NodeDocument".to_owned(), NodeDocument::schema()));
        schemas.push(("ParamDocument".to_owned(), ParamDocument::schema()));
        schemas.push(("PauseDocument".to_owned(), PauseDocument::schema()));
        schemas.push(("ProfileDocument".to_owned(), ProfileDocument::schema()));
        schemas.push(("ScheduleDocument".to_owned(), ScheduleDocument::schema()));
        schemas.push(("ReactionDocument".to_owned(), ReactionDocument::schema()));
        schemas.push(("SinkDocument".to_owned(), SinkDocument::schema()));
        schemas.push(("SlotDocument".to_owned(), SlotDocument::schema()));
        schemas.push(("StageDocument".to_owned(), StageDocument::schema()));
        schemas.push(("TaskDocument".to_owned(), TaskDocument::schema()));
        schemas.push(("WorkflowDocument".to_owned(), WorkflowDocument::schema()));
    }
}
