//! What is recorded of a node besides its name and labels, as selectors and lists of nodes read it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::facts::Facts;
use super::filter::field::Field;
use super::name::ProfileName;
use super::value::Value;

/// Params by key.
pub type ParamValues = Arc<BTreeMap<Arc<str>, Value>>;

/// The facts of a node, its own params and the profiles that it reads. Cheap to copy, and one word if there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeData(Option<Arc<Recorded>>);

#[derive(Debug, PartialEq, Eq)]
struct Recorded {
    facts: Facts,
    params: ParamValues,
    profiles: Vec<ProfileName>,
}

/// The data of a node of which nothing is recorded.
pub static NO_DATA: NodeData = NodeData(None);

impl NodeData {
    /// Data of a node.
    #[must_use]
    pub fn new(facts: Facts, params: ParamValues, profiles: Vec<ProfileName>) -> Self {
        let is_empty = facts.is_empty() && params.is_empty() && profiles.is_empty();
        Self((!is_empty).then(|| Arc::new(Recorded { facts, params, profiles })))
    }

    /// Whether nothing is recorded.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The value of the fields `fact`, `param` and `profile`; `None` for others, and for what the node does not have.
    #[must_use]
    pub fn value(&self, field: &Field) -> Option<Value> {
        if field.name() == "profile" {
            let profiles = self.0.iter().flat_map(|recorded| &recorded.profiles);
            return Some(Value::List(profiles.map(|profile| Value::Text(profile.as_str().into())).collect()));
        }
        let recorded = self.0.as_ref()?;
        match field.name() {
            "fact" => recorded.facts.get(field.key()),
            "param" => recorded.params.get(field.key()).cloned(),
            _ => None,
        }
    }
}
