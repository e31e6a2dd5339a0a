//! Parses the field `spec.topologyKeys` of Kubernetes 1.17 to 1.21 (KEP-536).

use super::{Level, LevelKey, MAX_LEVELS, Mode, Policy, PolicyError, PolicySource, PolicyWarning};

/// The result of parsing a list of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyKeysReading {
    /// The policy, as far as it can be parsed; `None` for an empty list (V1).
    pub policy: Option<Policy>,
    /// Warnings for the Service's owner.
    pub warnings: Vec<PolicyWarning>,
    /// All elements that the validation of Kubernetes 1.18 refused (V4-V6, V8, V9), by index.
    pub errors: Vec<PolicyError>,
    /// Whether it is a boundary that cannot be parsed. `policy` then is a boundary that contains no endpoint.
    pub boundary_unread: bool,
}

impl TopologyKeysReading {
    /// A boundary that cannot be parsed.
    pub fn unread() -> Self {
        Self {
            policy: Some(Policy::new(
                PolicySource::TopologyKeys,
                Mode::Hard,
                Vec::new(),
            )),
            warnings: Vec::new(),
            errors: Vec::new(),
            boundary_unread: true,
        }
    }
}

/// Parses `keys`, which must all be valid; `None` for an empty list (V1).
///
/// # Errors
///
/// All elements that the validation of Kubernetes 1.18 refused (V4-V6, V8, V9), by index.
pub fn from_topology_keys<T: AsRef<str>>(
    keys: &[T],
) -> Result<(Option<Policy>, Vec<PolicyWarning>), Vec<PolicyError>> {
    let reading = read_topology_keys(keys);
    if reading.errors.is_empty() {
        Ok((reading.policy, reading.warnings))
    } else {
        Err(reading.errors)
    }
}

/// Parses `keys` as far as possible.
///
/// In the first draft of the KEP an empty text as the last element meant "any node". It is parsed as `*`, with a
/// warning. At another position it is an error, because it would turn a hard rule into a soft one. Of a repeated key
/// the first one counts. With any other error the list cannot be parsed: if it ends in `*` it is ignored, otherwise it
/// is a boundary.
pub fn read_topology_keys<T: AsRef<str>>(keys: &[T]) -> TopologyKeysReading {
    let mut levels: Vec<Level> = Vec::with_capacity(keys.len());
    let (mut warnings, mut errors, mut is_unread) = (Vec::new(), Vec::new(), false);
    for (at, text) in keys.iter().map(AsRef::as_ref).enumerate() {
        let last = at + 1 == keys.len();
        let field = format!("spec.topologyKeys[{at}]");
        if text.is_empty() && last {
            let message = "an empty key means any node; write `*`".to_owned();
            let field = field.clone();
            warnings.push(PolicyWarning { field, message });
        }
        let problem = match key(text, last) {
            Ok(key) if levels.iter().any(|level| level.key == key) => {
                format!("`{key}` is listed twice; keep the first")
            }
            Ok(key) => {
                let misplaced = key == LevelKey::Any && !last;
                let weight = if levels.is_empty() { 100 } else { 0 };
                levels.push(Level::new(key, weight));
                if !misplaced {
                    continue;
                }
                is_unread = true;
                "`*` must be the last key".to_owned()
            }
            Err(problem) => {
                is_unread = true;
                problem
            }
        };
        let value = text.to_owned();
        errors.push(PolicyError {
            field,
            value,
            problem,
        });
    }
    if keys.len() > MAX_LEVELS {
        is_unread = true;
        let problem = format!("{} keys; at most {MAX_LEVELS} are allowed", keys.len());
        errors.push(PolicyError {
            field: "spec.topologyKeys".to_owned(),
            value: String::new(),
            problem,
        });
    }
    let ends_open = keys
        .last()
        .is_some_and(|last| matches!(last.as_ref(), "" | "*"));
    let unread = TopologyKeysReading::unread();
    TopologyKeysReading {
        policy: match (is_unread, ends_open) {
            (false, _) => policy(levels),
            (true, true) => None,
            (true, false) => unread.policy,
        },
        warnings,
        errors,
        boundary_unread: is_unread && !ends_open,
    }
}

fn policy(levels: Vec<Level>) -> Option<Policy> {
    let soft = levels.last()?.key == LevelKey::Any;
    let mode = if soft { Mode::Prefer } else { Mode::Hard };
    Some(Policy::new(PolicySource::TopologyKeys, mode, levels))
}

/// The field has no aliases: `zone` is the label `zone`.
fn key(text: &str, last: bool) -> Result<LevelKey, String> {
    match text {
        "node" | "zone" | "region" => Ok(LevelKey::Label(text.into())),
        "" if last => Ok(LevelKey::Any),
        "" => {
            Err("an empty key is allowed only as the last one; remove it or write `*`".to_owned())
        }
        _ => LevelKey::parse(text).map_err(|_with_short_names| {
            format!(
                "`{text}` is not a label key; use a key such as kubernetes.io/hostname or topology.kubernetes.io/zone, or `*`"
            )
        }),
    }
}
