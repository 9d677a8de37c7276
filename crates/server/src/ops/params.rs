//! Changes of params, of a profile or of a node.

mod keywords;
pub mod schema;
pub(crate) mod secrets;

use std::collections::BTreeSet;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::profile::{Params, ParamsPatch, ParamsSpec};
use bellwether_core::access::Identity;
use serde_json::Value;

use super::OpError;
use super::expectation::{ChangeError, Mismatch, compare, member_pointer};
use super::json_change::{JsonChange, Rejection};

/// A change of params, in one of its forms.
#[derive(Debug, Clone, Copy)]
pub enum ParamsChange<'a> {
    /// Sets and removes single params.
    Patch(&'a ParamsPatch),
    /// A JSON Patch or a JSON Merge Patch of the object of all params.
    Standard(&'a JsonChange),
    /// Replaces all params.
    All(&'a ParamsSpec),
}

/// A change of params, who asks for it, and why.
#[derive(Debug, Clone, Copy)]
pub struct ParamsRequest<'a> {
    /// What changes.
    pub change: ParamsChange<'a>,
    /// Who asks for it: they name only secrets that they may read of.
    pub who: &'a Identity,
    /// The reason, which events have.
    pub why: &'a str,
}

impl ParamsChange<'_> {
    /// Refuses a change that contradicts itself.
    pub(super) fn validate(&self) -> Result<(), ShapeError> {
        let Self::Patch(patch) = self else { return Ok(()) };
        match patch.remove.iter().find(|key| patch.set.contains_key(*key)) {
            Some(key) => Err(ShapeError::at("remove", format!("{key:?} is also in set"))),
            None => Ok(()),
        }
    }

    /// The params after the change. `whose` names them in errors, like `profile web`.
    pub(super) fn applied_to(&self, before: &Params, whose: &str) -> Result<Params, ChangeError> {
        match self {
            Self::Patch(patch) => patched(before, patch, whose),
            Self::Standard(change) => changed(before, change),
            Self::All(spec) => replaced(before, spec),
        }
    }
}

fn patched(before: &Params, patch: &ParamsPatch, whose: &str) -> Result<Params, ChangeError> {
    for (key, expected) in &patch.if_equal {
        compare(&member_pointer(key), before.get(key), Some(expected))?;
    }
    for key in &patch.if_absent {
        compare(&member_pointer(key), before.get(key), None)?;
    }
    let mut params = before.clone();
    for key in &patch.remove {
        let missing = || OpError::NotFound(format!("param {key:?} in {whose}"));
        params.remove(key).ok_or_else(missing)?;
    }
    params.extend(patch.set.clone());
    Ok(params)
}

fn changed(before: &Params, change: &JsonChange) -> Result<Params, ChangeError> {
    let object = Value::Object(before.clone().into_iter().collect());
    match change.applied_to(&object) {
        Ok(Value::Object(params)) => Ok(params.into_iter().collect()),
        Ok(_) => Err(ShapeError::at("the params", "expected an object after the change").into()),
        Err(Rejection::Invalid(error)) => Err(error.into()),
        Err(Rejection::Differs { pointer, value, expected }) => {
            Err(Mismatch { pointer, found: value, expected: Some(expected) }.into())
        }
    }
}

fn replaced(before: &Params, spec: &ParamsSpec) -> Result<Params, ChangeError> {
    let expected = spec.if_equal.as_ref();
    let keys: BTreeSet<&String> =
        expected.into_iter().flat_map(|expected| expected.keys().chain(before.keys())).collect();
    for key in keys {
        compare(&member_pointer(key), before.get(key), expected.and_then(|expected| expected.get(key)))?;
    }
    Ok(spec.params.clone())
}
