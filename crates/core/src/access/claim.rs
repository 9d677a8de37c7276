//! Claims: what a role permits. Owns the words of claims, what a claim allows, and when one contains another.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use super::pattern::{FieldPath, NamePattern};
use super::words::{ObjectKind, Verb};

/// Most entries of each list of a claim.
pub const MAX_ENTRIES: usize = 32;

/// A permission: these verbs on objects of these kinds with these names in these namespaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The verbs, 1 to 32.
    pub verbs: Vec<VerbPattern>,
    /// The kinds of objects, 1 to 32.
    pub kinds: Vec<KindPattern>,
    /// The names of the objects, 1 to 32.
    pub names: Vec<NamePattern>,
    /// The namespaces of the objects, 1 to 32. Objects of the whole installation are only in `*`.
    pub namespaces: Vec<NamePattern>,
}

/// A verb of a claim, with the part of the object that it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerbPattern {
    /// `*`: every verb.
    Any,
    /// One verb, on one field and everything below it.
    Of(Verb, FieldPath),
}

/// A kind of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KindPattern {
    /// `*`: every kind.
    Any,
    /// One kind.
    Is(ObjectKind),
}

/// What a request wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRequest<'a> {
    /// What is to be done.
    pub verb: Verb,
    /// The field that it is about, as a JSON pointer; empty for the whole object.
    pub field: &'a str,
    /// Whether a claim to something below the field is enough.
    pub is_partial: bool,
    /// The kind of the object.
    pub kind: ObjectKind,
    /// Which objects of the kind.
    pub name: NameScope<'a>,
    /// Where the object is.
    pub scope: AccessScope<'a>,
}

/// Where an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessScope<'a> {
    /// In no namespace: it belongs to the whole installation.
    Installation,
    /// In the namespace of this name.
    Namespace(&'a str),
    /// In some namespaces, which are examined one by one later.
    Some,
}

/// Which objects a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameScope<'a> {
    /// The one of this name.
    Named(&'a str),
    /// Some, which are examined one by one later: a list, or a name in the body.
    Some,
    /// All there are, together: a summary.
    All,
}

/// One combination of the entries of a claim.
struct ClaimEntry<'a> {
    verb: &'a VerbPattern,
    kind: KindPattern,
    name: &'a NamePattern,
    namespace: &'a NamePattern,
}

impl NamePattern {
    /// Whether it covers a place. What belongs to the whole installation is covered by `*` only.
    fn allows_in(&self, scope: AccessScope<'_>) -> bool {
        match scope {
            AccessScope::Installation => *self == Self::Any,
            AccessScope::Namespace(namespace) => self.matches(namespace),
            AccessScope::Some => true,
        }
    }
}

impl VerbPattern {
    /// Reads a verb, as in `update`, `update:/params` or `*`.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (verb, field) = text.split_once(':').map_or((text, None), |(verb, field)| (verb, Some(field)));
        let verb = Verb::parse(verb)?;
        match field {
            None => Ok(Self::Of(verb, FieldPath::whole())),
            Some("") => Err(alloc::format!("{text:?} has no field after ':'")),
            Some(_) if verb != Verb::Update => {
                Err(alloc::format!("{text:?} names a field: only update can be limited to a field"))
            }
            Some(field) => FieldPath::parse(field).map(|field| Self::Of(verb, field)),
        }
    }

    fn allows(&self, request: &AccessRequest<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Of(own, path) => {
                let is_below = request.is_partial && path.is_below(request.field);
                *own == request.verb && (path.contains(request.field) || is_below)
            }
        }
    }

    fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Of(_, _), Self::Any) => false,
            (Self::Of(own, path), Self::Of(verb, field)) => own == verb && path.contains(field.as_str()),
        }
    }
}

impl KindPattern {
    /// Reads a kind, or `*`.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" { Ok(Self::Any) } else { ObjectKind::parse(text).map(Self::Is) }
    }

    fn contains(self, other: Self) -> bool {
        self == Self::Any || self == other
    }
}

impl Claim {
    /// Reads a claim, as in `get,update:/params node/web-*,db-1 in shop,shop-*`: verbs, kinds with names, namespaces. Names and
    /// namespaces that are left out are `*`.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (verbs, objects, namespaces) = match *words.as_slice() {
            [verbs, objects] => (verbs, objects, "*"),
            [verbs, objects, "in", namespaces] => (verbs, objects, namespaces),
            _ => {
                return Err(alloc::format!(
                    "{text:?} is not a claim; expected VERBS KINDS[/NAMES] [in NAMESPACES], such as \"get,update:/params node/web-* in shop\""
                ));
            }
        };
        let (kinds, names) = objects.split_once('/').unwrap_or((objects, "*"));
        Ok(Self {
            verbs: entries("verbs", verbs, VerbPattern::parse)?,
            kinds: entries("kinds", kinds, KindPattern::parse)?,
            names: entries("names", names, NamePattern::parse)?,
            namespaces: entries("namespaces", namespaces, NamePattern::parse)?,
        })
    }

    /// Whether it allows a request.
    #[must_use]
    pub fn allows(&self, request: &AccessRequest<'_>) -> bool {
        self.kinds.iter().any(|kind| kind.contains(KindPattern::Is(request.kind)))
            && self.verbs.iter().any(|verb| verb.allows(request))
            && self.namespaces.iter().any(|pattern| pattern.allows_in(request.scope))
            && match request.name {
                NameScope::Named(name) => self.names.iter().any(|pattern| pattern.matches(name)),
                NameScope::Some => true,
                NameScope::All => self.names.contains(&NamePattern::Any),
            }
    }

    /// The same claim in those of its namespaces that a pattern covers; `None` if there are none.
    #[must_use]
    pub fn only_in(&self, limit: &NamePattern) -> Option<Self> {
        let namespaces: Vec<NamePattern> =
            self.namespaces.iter().filter_map(|pattern| pattern.meet(limit)).collect();
        (!namespaces.is_empty()).then(|| Self { namespaces, ..self.clone() })
    }

    /// Whether these claims together allow all that this one allows.
    #[must_use]
    pub fn is_covered_by(&self, claims: &[Self]) -> bool {
        self.combinations().all(|entry| claims.iter().any(|claim| claim.contains(&entry)))
    }

    fn contains(&self, entry: &ClaimEntry<'_>) -> bool {
        self.verbs.iter().any(|verb| verb.contains(entry.verb))
            && self.kinds.iter().any(|kind| kind.contains(entry.kind))
            && self.names.iter().any(|name| name.contains(entry.name))
            && self.namespaces.iter().any(|namespace| namespace.contains(entry.namespace))
    }

    fn combinations(&self) -> impl Iterator<Item = ClaimEntry<'_>> {
        let names =
            || self.names.iter().flat_map(|name| self.namespaces.iter().map(move |space| (name, space)));
        let kinds = self.verbs.iter().flat_map(|verb| self.kinds.iter().map(move |kind| (verb, *kind)));
        kinds.flat_map(move |(verb, kind)| {
            names().map(move |(name, namespace)| ClaimEntry { verb, kind, name, namespace })
        })
    }
}

/// The entries of a list in a claim's text: 1 to 32, with commas between them.
fn entries<T>(list: &str, text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let found: Vec<T> = text.split(',').map(read).collect::<Result<_, _>>()?;
    if found.len() > MAX_ENTRIES {
        return Err(alloc::format!("{} {list}; at most {MAX_ENTRIES} are allowed", found.len()));
    }
    Ok(found)
}

impl fmt::Display for VerbPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Of(verb, field) if field.is_whole() => f.write_str(verb.as_str()),
            Self::Of(verb, field) => write!(f, "{}:{field}", verb.as_str()),
        }
    }
}

impl fmt::Display for KindPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Is(kind) => f.write_str(kind.as_str()),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.verbs)?;
        f.write_str(" ")?;
        write_list(f, &self.kinds)?;
        if self.names != [NamePattern::Any] {
            f.write_str("/")?;
            write_list(f, &self.names)?;
        }
        if self.namespaces != [NamePattern::Any] {
            f.write_str(" in ")?;
            write_list(f, &self.namespaces)?;
        }
        Ok(())
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, list: &[T]) -> fmt::Result {
    for (index, entry) in list.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        entry.fmt(f)?;
    }
    Ok(())
}

impl fmt::Display for AccessRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.as_str())?;
        if !self.field.is_empty() {
            write!(f, ":{}", self.field)?;
        }
        write!(f, " {}", self.kind.as_str())?;
        match self.name {
            NameScope::Named(name) => {
                f.write_str("/")?;
                write_visible(f, name)?;
            }
            NameScope::Some => {}
            NameScope::All => f.write_str("/*")?,
        }
        match self.scope {
            AccessScope::Namespace(namespace) => {
                f.write_str(" in ")?;
                write_visible(f, namespace)
            }
            AccessScope::Installation | AccessScope::Some => Ok(()),
        }
    }
}

/// A name as it came in a path, before anyone checked it: control characters are written out.
fn write_visible(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    name.chars().try_for_each(|c| match c.is_control() {
        true => write!(f, "{}", c.escape_unicode()),
        false => f.write_char(c),
    })
}

/// Shared claims of a role.
pub type Claims = Arc<[Claim]>;
