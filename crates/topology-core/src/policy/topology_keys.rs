//! The field `spec.topologyKeys` of Kubernetes 1.17 to 1.21 (KEP-536).

use super::{Level, LevelKey, MAX_LEVELS, Mode, Policy, PolicyError, PolicySource, PolicyWarning};

/// The policy that the list `keys` meant, with what its owner should know; none for an empty list (V1).
///
/// An empty text as the last element meant "any node" in the first draft of the KEP and is read as `*` with a
/// warning; anywhere else it is an error, since a stray element would turn a hard rule into a soft one.
///
/// # Errors
/// Every element that validation of Kubernetes 1.18 refused (V4-V6, V8, V9), by its index.
pub fn from_topology_keys<T: AsRef<str>>(
    keys: &[T],
) -> Result<(Option<Policy>, Vec<PolicyWarning>), Vec<PolicyError>> {
    let mut levels: Vec<Level> = Vec::with_capacity(keys.len());
    let (mut warnings, mut errors) = (Vec::new(), Vec::new());
    let mut seen = Vec::with_capacity(keys.len());
    for (at, text) in keys.iter().map(AsRef::as_ref).enumerate() {
        let last = at + 1 == keys.len();
        let field = format!("spec.topologyKeys[{at}]");
        let parsed = if text.is_empty() && last {
            let message = "an empty key means any node; write `*`".to_owned();
            warnings.push(PolicyWarning {
                field: field.clone(),
                message,
            });
            Ok(LevelKey::Any)
        } else {
            key(text)
        };
        match parsed.and_then(|key| admit(key, last, &mut seen)) {
            Ok(key) => levels.push(Level::new(key, if at == 0 { 100 } else { 0 })),
            Err(problem) => errors.push(PolicyError {
                field,
                value: text.to_owned(),
                problem,
            }),
        }
    }
    if keys.len() > MAX_LEVELS {
        let problem = format!("{} keys; at most {MAX_LEVELS} are allowed", keys.len());
        errors.push(PolicyError {
            field: "spec.topologyKeys".to_owned(),
            value: String::new(),
            problem,
        });
    }
    if errors.is_empty() {
        Ok((policy(levels), warnings))
    } else {
        Err(errors)
    }
}

fn policy(levels: Vec<Level>) -> Option<Policy> {
    let soft = levels.last()?.key == LevelKey::Any;
    let mode = if soft { Mode::Prefer } else { Mode::Hard };
    Some(Policy::new(PolicySource::TopologyKeys, mode, levels))
}

/// The field knew no aliases: `zone` is the label `zone`.
fn key(text: &str) -> Result<LevelKey, String> {
    match text {
        "node" | "zone" | "region" => Ok(LevelKey::Label(text.into())),
        "" => {
            Err("an empty key is allowed only as the last one; remove it or write `*`".to_owned())
        }
        _ => LevelKey::parse(text),
    }
}

fn admit(key: LevelKey, last: bool, seen: &mut Vec<LevelKey>) -> Result<LevelKey, String> {
    if seen.contains(&key) {
        return Err(format!("`{key}` stands twice; keep the first"));
    }
    seen.push(key.clone());
    if key == LevelKey::Any && !last {
        return Err("`*` must be the last key".to_owned());
    }
    Ok(key)
}
