//! Rendering of managed files: the variables that their templates have. Touches no file.

use bellwether_api::v1::profile::Params;
use minijinja::Value;
use minijinja::value::Serde;

use crate::renderer::draw;

/// The variables of a template.
#[derive(Clone)]
pub(crate) struct RenderContext {
    pub(crate) params: Params,
    /// The params without secrets; `None` if none is one.
    pub(crate) masked: Option<Params>,
    pub(crate) node: String,
    pub(crate) namespace: String,
    pub(crate) entity: String,
    pub(crate) version: String,
    pub(crate) revision: u64,
}

/// Renders `source`; `name` names it in error messages.
///
/// # Errors
/// One line with the template, the line in it, and the reason.
pub(crate) fn render(name: &str, source: &str, context: &RenderContext) -> Result<String, String> {
    let context = minijinja::context! {
        params => Value::from(Serde(&context.params)),
        node => minijinja::context! { name => &*context.node, namespace => &*context.namespace },
        entity => &*context.entity,
        version => &*context.version,
        revision => context.revision,
    };
    draw(
        name,
        source,
        context,
        "no level of params has it; see bellwether param explain NODE --entity ENTITY",
    )
}

#[cfg(test)]
mod tests;
