//! Documents with objects in them: read whole and checked before anything is done, refused with their place.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use bellwether_api::shape::{ShapeError, read as read_word};
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::external::ExternalSettings;
use bellwether_api::v1::freeze::{FreezeKind, FreezeSpec};
use bellwether_api::v1::pause::PauseSpec;
use bellwether_api::v1::policy::Policy;
use bellwether_core::words::name::{EntityName, FreezeName, Namespace, PauseName};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::change;
use crate::exit::Failure;
use crate::near::improved;

/// An object as a file says it is to be.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) name: String,
    pub(super) namespace: String,
    /// Whether it is in force in every namespace; freezes only.
    pub(super) global: bool,
    pub(super) spec: Spec,
}

/// What an object is to be.
#[derive(Debug)]
pub(super) enum Spec {
    Entity(Box<EntitySpec>),
    Freeze(FreezeSpec),
    Pause(PauseSpec),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.spec {
            Spec::Entity(_) => write!(f, "entity/{}", self.name),
            Spec::Freeze(_) => write!(f, "freeze/{}", self.name),
            Spec::Pause(_) => write!(f, "pause/{}", self.name),
        }
    }
}

impl Object {
    /// A field of it that says nothing allowed.
    pub(super) fn refused(&self, error: &ShapeError) -> Failure {
        Failure::usage(format!("use {self}: {}: {}", error.place, error.reason))
    }

    /// The namespace a freeze is in; none for all of them.
    pub(super) fn freezes_in(&self) -> Option<&str> {
        (!self.global).then_some(self.namespace.as_str())
    }

    /// Checks every field, as far as that needs no server.
    fn check(&self) -> Result<(), ShapeError> {
        read_word::<Namespace>("namespace", &self.namespace)?;
        match &self.spec {
            Spec::Entity(spec) => {
                read_word::<EntityName>("name", &self.name)?;
                change::entity(None, spec).map(drop)
            }
            Spec::Freeze(spec) => {
                read_word::<FreezeName>("name", &self.name)?;
                change::freeze(None, spec).map(drop)
            }
            Spec::Pause(spec) => {
                read_word::<PauseName>("name", &self.name)?;
                change::pause(None, spec).map(drop)
            }
        }
    }
}

/// What every document says first. The rest is read once it is known what it is.
#[derive(Debug, Deserialize)]
struct Head {
    kind: Kind,
}

/// What there is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Entity,
    Freeze,
    Pause,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntityDocument {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    name: String,
    namespace: Option<String>,
    #[serde(default)]
    selector: String,
    external: Option<ExternalSettings>,
    profile: Option<String>,
    action: Option<String>,
    #[serde(default)]
    policy: Policy,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FreezeDocument {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    name: String,
    namespace: Option<String>,
    #[serde(default)]
    all_namespaces: bool,
    entity: Option<String>,
    targets: Option<String>,
    strength: Option<FreezeKind>,
    #[serde(default)]
    why: String,
    lasts: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PauseDocument {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    name: String,
    namespace: Option<String>,
    nodes: String,
    #[serde(default)]
    why: String,
}

/// Reads one document: its head, then the rest.
trait Source {
    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, String>;
}

struct Toml<'a>(&'a str);
struct Json<'a>(&'a str);
/// One document of several, by its number.
struct Yaml<'a>(&'a str, usize);

impl Source for Toml<'_> {
    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, String> {
        toml::from_str(self.0).map_err(|error| error.to_string())
    }
}

impl Source for Json<'_> {
    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_str(self.0).map_err(|error| error.to_string())
    }
}

impl Source for Yaml<'_> {
    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, String> {
        let document = serde_norway::Deserializer::from_str(self.0).nth(self.1);
        let document = document.ok_or_else(|| "there is no such document".to_owned())?;
        T::deserialize(document).map_err(|error| error.to_string())
    }
}

/// Reads every object of a file. Nothing is answered unless everything in it is allowed.
pub(super) fn read(path: &Path, namespace: &str) -> Result<Vec<Object>, Failure> {
    let text = crate::context::read(path, "objects")?;
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let at = |place: &str, error: &str| {
        Failure::usage(format!("read {}{place}: {}", path.display(), improved(error)))
            .hint("bellwether explain entity   (or: explain policy, explain freeze, explain pause)")
    };
    let mut objects = Vec::new();
    match end {
        "toml" => objects.push(object(&Toml(&text), namespace).map_err(|error| at("", &error))?),
        "json" => objects.push(object(&Json(&text), namespace).map_err(|error| at("", &error))?),
        _ => {
            for index in 0..serde_norway::Deserializer::from_str(&text).count() {
                let (source, place) = (Yaml(&text, index), format!(", document {}", index + 1));
                // A document without anything in it is what a `---` at the very end makes.
                if matches!(source.read::<Option<IgnoredAny>>(), Ok(None)) {
                    continue;
                }
                objects.push(object(&source, namespace).map_err(|error| at(&place, &error))?);
            }
        }
    }
    let mut seen = BTreeSet::new();
    for object in &objects {
        object.check().map_err(|error| object.refused(&error))?;
        let place = (!object.global).then(|| object.namespace.clone());
        if !seen.insert((place, object.to_string())) {
            return Err(at("", &format!("{object} is there twice")));
        }
    }
    if objects.is_empty() {
        return Err(at("", "there is no object in it"));
    }
    Ok(objects)
}

fn object(source: &impl Source, namespace: &str) -> Result<Object, String> {
    let (name, own, global, spec) = match source.read::<Head>()?.kind {
        Kind::Entity => {
            let EntityDocument { _kind, name, namespace, selector, external, profile, action, policy } =
                source.read()?;
            let spec = EntitySpec { selector, external, profile, action, policy };
            (name, namespace, false, Spec::Entity(Box::new(spec)))
        }
        Kind::Freeze => {
            let FreezeDocument {
                _kind,
                name,
                namespace,
                all_namespaces,
                entity,
                targets,
                strength,
                why,
                lasts,
            } = source.read()?;
            if all_namespaces && namespace.is_some() {
                return Err(format!(
                    "freeze {name} has a namespace and all_namespaces; leave one of them out"
                ));
            }
            (
                name,
                namespace,
                all_namespaces,
                Spec::Freeze(FreezeSpec { entity, targets, kind: strength, why, lasts }),
            )
        }
        Kind::Pause => {
            let PauseDocument { _kind, name, namespace, nodes, why } = source.read()?;
            (name, namespace, false, Spec::Pause(PauseSpec { nodes, why }))
        }
    };
    Ok(Object { name, global, namespace: own.unwrap_or_else(|| namespace.to_owned()), spec })
}
