//! Precedence of params: which of the levels that have a param decides its value. The control plane explains it, and agents
//! render files by it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::words::name::ProfileName;

/// Name of the profile that every node of a namespace reads, after all others.
pub const GLOBAL_PROFILE: &str = "global";

/// Name of the profile with the defaults of declared params, which every node reads last. It is always live, and is written by
/// declaring params only.
pub const DEFAULTS_PROFILE: &str = "defaults";

/// A level of params.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamLevel {
    /// The node's own params.
    Node,
    /// A profile.
    Profile(ProfileName),
}

/// The levels of a node: its own params, the profiles that it reads in their order, the profile of the entity whose files are
/// rendered, if any, the namespace's [`GLOBAL_PROFILE`] and [`DEFAULTS_PROFILE`]. A profile that is named twice has its first place.
///
/// # Panics
/// Never: the names of these two are valid.
#[must_use]
pub fn levels(profiles: &[ProfileName], of_entity: Option<&ProfileName>) -> Vec<ParamLevel> {
    let of_all =
        [GLOBAL_PROFILE, DEFAULTS_PROFILE].map(|name| ProfileName::parse(name).expect("it is a valid name"));
    let mut named = Vec::new();
    for profile in profiles.iter().chain(of_entity).chain(&of_all) {
        if !named.contains(profile) {
            named.push(profile.clone());
        }
    }
    [ParamLevel::Node].into_iter().chain(named.into_iter().map(ParamLevel::Profile)).collect()
}

/// The params of each level, the one that takes precedence first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamLayers<V>(Vec<(ParamLevel, BTreeMap<String, V>)>);

impl<V> ParamLayers<V> {
    /// Layers in order of precedence.
    #[must_use]
    pub const fn new(layers: Vec<(ParamLevel, BTreeMap<String, V>)>) -> Self {
        Self(layers)
    }

    /// The value of a param, and the level that decided it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<(&ParamLevel, &V)> {
        self.0.iter().find_map(|(level, params)| Some((level, params.get(key)?)))
    }

    /// Every level with its value of a param, if it has one.
    pub fn explain(&self, key: &str) -> impl Iterator<Item = (&ParamLevel, Option<&V>)> {
        self.0.iter().map(move |(level, params)| (level, params.get(key)))
    }

    /// Every param of any level with its value, and the level that decided it.
    #[must_use]
    pub fn resolved(&self) -> BTreeMap<&str, (&ParamLevel, &V)> {
        let mut resolved = BTreeMap::new();
        for (level, params) in &self.0 {
            for (key, value) in params {
                resolved.entry(key.as_str()).or_insert((level, value));
            }
        }
        resolved
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn profile(name: &str) -> ProfileName {
        ProfileName::parse(name).unwrap()
    }

    #[test]
    fn a_node_reads_itself_then_its_profiles_then_the_entitys_then_the_global_one_each_once() {
        let names = |levels: Vec<ParamLevel>| {
            let name = |level: ParamLevel| match level {
                ParamLevel::Node => "node".into(),
                ParamLevel::Profile(profile) => alloc::string::ToString::to_string(&profile),
            };
            levels.into_iter().map(name).collect::<Vec<String>>()
        };
        let listed = [profile("web"), profile("eu"), profile("web")];
        assert_eq!(names(levels(&[], None)), ["node", "global", "defaults"]);
        assert_eq!(names(levels(&listed, None)), ["node", "web", "eu", "global", "defaults"]);
        assert_eq!(
            names(levels(&listed, Some(&profile("app")))),
            ["node", "web", "eu", "app", "global", "defaults"]
        );
        assert_eq!(names(levels(&listed, Some(&profile("eu")))), ["node", "web", "eu", "global", "defaults"]);
        let first = [profile("global"), profile("eu")];
        assert_eq!(names(levels(&first, Some(&profile("app")))), ["node", "global", "eu", "app", "defaults"]);
    }

    proptest! {
        #[test]
        fn the_first_level_that_has_a_param_decides_it(
            layers in proptest::collection::vec(proptest::collection::btree_map("[a-c]", 0..9_u8, 0..3), 1..5),
        ) {
            let level = |index: usize| match index {
                0 => ParamLevel::Node,
                index => ParamLevel::Profile(profile(&alloc::format!("p{index}"))),
            };
            let layers: Vec<_> =
                layers.into_iter().enumerate().map(|(index, params)| (level(index), params)).collect();
            let all = ParamLayers::new(layers.clone());
            for key in ["a", "b", "c"] {
                let first = layers.iter().find(|(_, params)| params.contains_key(key));
                let expected = first.map(|(level, params)| (level, &params[key]));
                prop_assert_eq!(all.get(key), expected);
                prop_assert_eq!(all.resolved().get(key).copied(), expected);
                let explained: Vec<_> = all.explain(key).collect();
                prop_assert_eq!(explained.len(), layers.len());
                let decides = explained.into_iter().find_map(|(level, value)| Some((level, value?)));
                prop_assert_eq!(decides, expected);
            }
        }
    }
}
