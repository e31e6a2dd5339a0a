//! Levels: how near an endpoint must be.

use std::fmt;
use std::sync::Arc;

/// The label for the host name. In levels it means the Node's name.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
/// The label of the zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The label of the region.
pub(crate) const REGION: &str = "topology.kubernetes.io/region";

/// A level and its share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Level {
    /// What an endpoint must share with this node to be in the level.
    pub key: LevelKey,
    /// Its share relative to the other levels, 0 to 10,000; 0 = only if nearer levels are empty.
    pub weight: u32,
    /// The ready endpoints that it needs to count on its own.
    pub min_ready: MinReady,
}

impl Level {
    /// A level of `key` with `weight` that needs a single ready endpoint.
    pub fn new(key: LevelKey, weight: u32) -> Self {
        Self {
            key,
            weight,
            min_ready: MinReady::default(),
        }
    }
}

/// The ready endpoints that a level needs to count on its own. With fewer it merges into the next outer level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinReady {
    /// Number of ready endpoints; 1 is no requirement.
    pub count: u32,
    /// Percentage of its endpoints that are ready; 0 is no requirement.
    pub percent: u8,
}

impl Default for MinReady {
    fn default() -> Self {
        Self {
            count: 1,
            percent: 0,
        }
    }
}

/// What an endpoint's node and this node must have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LevelKey {
    /// The same Node, compared by name and never by the hostname label. KEP-536 compared the name with the label, and
    /// never matched if they differed.
    Node,
    /// The same non-empty value of this label.
    Label(Arc<str>),
    /// Nothing.
    Any,
}

impl LevelKey {
    /// Parses a level: an alias (`node`, `zone`, `region`), `*`, or a label key.
    ///
    /// # Errors
    ///
    /// A message that says what would be valid.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "*" => Ok(Self::Any),
            "node" | HOSTNAME => Ok(Self::Node),
            "zone" => Ok(Self::Label(ZONE.into())),
            "region" => Ok(Self::Label(REGION.into())),
            "" => Err(
                "a level is empty; remove the extra comma, or write `*` for any node".to_owned(),
            ),
            key => check_label_key(key).map(|()| Self::Label(key.into())),
        }
    }

    /// Parses a level as [`parse`](Self::parse) does, and returns its Node label.
    ///
    /// # Errors
    ///
    /// A message that says what would be valid.
    pub fn parse_label(text: &str) -> Result<Arc<str>, String> {
        match Self::parse(text)? {
            Self::Label(key) => Ok(key),
            Self::Node | Self::Any => {
                Err("not the key of a label; use keys of Node labels".to_owned())
            }
        }
    }

    /// The Node label of the level, if it has one.
    pub fn label(&self) -> Option<&Arc<str>> {
        match self {
            Self::Label(key) => Some(key),
            Self::Node | Self::Any => None,
        }
    }

    /// Whether it is displayed by an alias, and not by a label key of the same spelling.
    pub fn has_short_name(&self) -> bool {
        match self {
            Self::Node | Self::Any => true,
            Self::Label(key) => matches!(&**key, ZONE | REGION),
        }
    }

    /// Whether nodes that have this level in common always have `outer` in common, too: a Node has one value of each
    /// label, and a zone is in one region. For other labels that is unknown.
    pub(crate) fn is_inside(&self, outer: &Self) -> bool {
        match (self, outer) {
            (Self::Node, Self::Label(_)) => true,
            (Self::Label(inner), Self::Label(outer)) => **inner == *ZONE && **outer == *REGION,
            (Self::Node | Self::Label(_), Self::Node | Self::Any) | (Self::Any, _) => false,
        }
    }
}

impl fmt::Display for LevelKey {
    /// The alias if there is one. A label with the same spelling as an alias (only `topologyKeys` can name one) prints
    /// as `label zone`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node",
            Self::Any => "*",
            Self::Label(key) => match &**key {
                ZONE => "zone",
                REGION => "region",
                alias @ ("node" | "zone" | "region") => return write!(f, "label {alias}"),
                other => other,
            },
        })
    }
}

/// The rule of Kubernetes for label keys (`k8s.io/apimachinery` validation, "qualified name").
fn check_label_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let ends_well = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let name_fits = (1..=63).contains(&name.len())
        && ends_well(name)
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let prefix_fits = prefix.is_none_or(|prefix| {
        (1..=253).contains(&prefix.len())
            && prefix.split('.').all(|part| {
                ends_well(part)
                    && part
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            })
    });
    if name_fits && prefix_fits {
        return Ok(());
    }
    Err(format!(
        "`{key}` is not a label key; use node, zone, region, * or a key such as example.com/rack"
    ))
}
