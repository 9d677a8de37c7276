//! The fields of conditions, by which reactions choose.

use super::field::{FieldSpec, FieldTable, FieldType};

/// The fields of conditions.
pub static CONDITIONS: FieldTable = FieldTable {
    plural: "conditions",
    fields: &[
        FieldSpec::recorded("condition", FieldType::Text, "name of the condition, such as `no_primary`"),
        FieldSpec::recorded(
            "cluster",
            FieldType::Text,
            "cluster that it is true of, or that the node is a member of",
        ),
        FieldSpec::recorded(
            "node",
            FieldType::Text,
            "node that it is true of; none for a condition of a whole cluster",
        ),
        FieldSpec::recorded("probe", FieldType::Text, "name of the data store's probe"),
    ],
    slim: &["condition", "cluster", "node", "probe"],
};
