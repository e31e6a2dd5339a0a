//! Levels: how near is near.

use std::fmt;
use std::sync::Arc;

/// The label that Kubernetes puts the host name in; it stands for the Node's name here.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
/// The label of the zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The label of the region.
pub(crate) const REGION: &str = "topology.kubernetes.io/region";

/// A level and its share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Level {
    /// What makes an endpoint belong to it.
    pub key: LevelKey,
    /// Its share, relative to the other levels, 0 to 10,000; 0 = only when nearer levels are empty.
    pub weight: u32,
    /// What it must have to stand on its own.
    pub min_ready: MinReady,
}

impl Level {
    /// The level of `key` with `weight`, content with a single ready endpoint.
    pub fn new(key: LevelKey, weight: u32) -> Self {
        Self {
            key,
            weight,
            min_ready: MinReady::default(),
        }
    }
}

/// What a level must have to stand on its own; below, it merges into the next outer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinReady {
    /// Ready endpoints; 1 asks for nothing.
    pub count: u32,
    /// Percent of its endpoints that are ready; 0 asks for nothing.
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
    /// Be the same Node; compared by name, never by the hostname label (KEP-536 compared the two and
    /// never matched where they differ).
    Node,
    /// Carry the same non-empty value of this label.
    Label(Arc<str>),
    /// Nothing.
    Any,
}

impl LevelKey {
    /// The key that `text` names: an alias (`node`, `zone`, `region`), `*`, or a label key.
    ///
    /// # Errors
    /// In words, with what would be right.
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

    /// The label of Nodes that it goes by, if it goes by one.
    pub fn label(&self) -> Option<&Arc<str>> {
        match self {
            Self::Label(key) => Some(key),
            Self::Node | Self::Any => None,
        }
    }

    /// Whether it is shown by a short name: a word that means a label, and not the label that is called so.
    pub fn has_short_name(&self) -> bool {
        match self {
            Self::Node | Self::Any => true,
            Self::Label(key) => matches!(&**key, ZONE | REGION),
        }
    }

    /// Whether all that has this in common has `outer` in common, too: a Node has one value of each label, and a zone
    /// is in one region. Of other labels it is not known.
    pub(crate) fn is_inside(&self, outer: &Self) -> bool {
        match (self, outer) {
            (Self::Node, Self::Label(_)) => true,
            (Self::Label(inner), Self::Label(outer)) => **inner == *ZONE && **outer == *REGION,
            (Self::Node | Self::Label(_), Self::Node | Self::Any) | (Self::Any, _) => false,
        }
    }
}

impl fmt::Display for LevelKey {
    /// The alias where there is one. A label that is called like an alias (only `topologyKeys` can name one) is
    /// shown as `label zone`.
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
