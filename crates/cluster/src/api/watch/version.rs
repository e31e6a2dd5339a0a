//! A kind of object that the server has, but not in the version that is asked for: that is not the same as none.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::api::connection::Connection;
use crate::api::error::{ApiError, Fault};
use crate::api::path::Target;

/// The error that a request for the collection at `path` ended with; told apart if the server does not know the kind
/// in our version, and in another it does.
pub(super) async fn explain_not_found(
    connection: &Connection,
    path: &str,
    error: ApiError,
) -> ApiError {
    if error.fault != Fault::NotFound {
        return error;
    }
    let target = Target::of(path);
    let own = path.split('/').nth(3).unwrap_or_default();
    let known = connection.groups().versions(connection, &target).await;
    if known.is_empty() || known.iter().any(|version| version == own) {
        return error;
    }
    ApiError {
        fault: Fault::OtherVersion,
        message: format!("the server has it as {}, not as {own}", known.join(", ")),
        ..error
    }
}

/// How long what a server said of a group counts: less than passes between two looks for a kind that it does not know,
/// so that several kinds of one group cost one question.
const COUNTS: Duration = Duration::from_secs(14);

/// What a server said of the groups that were asked about.
#[derive(Debug, Default)]
pub(crate) struct ApiGroups {
    known: Mutex<BTreeMap<String, ApiGroup>>,
}

/// One group.
#[derive(Debug)]
struct ApiGroup {
    asked: Instant,
    /// Each version, with its resources.
    versions: Vec<(String, Vec<String>)>,
}

impl ApiGroups {
    /// The versions in which the server has the resource of `target`; none if it cannot be asked. Who comes while
    /// another asks waits for that answer.
    async fn versions(&self, connection: &Connection, target: &Target) -> Vec<String> {
        let mut known = self.known.lock().await;
        let group = known.get(&target.group);
        if group.is_none_or(|group| group.asked.elapsed() > COUNTS) {
            let group = ApiGroup {
                asked: Instant::now(),
                versions: next_request(connection, &target.group).await,
            };
            known.insert(target.group.clone(), group);
        }
        let versions = known.get(&target.group).into_iter();
        let versions = versions.flat_map(|group| &group.versions);
        let having = versions.filter(|(_, resources)| resources.contains(&target.resource));
        having.map(|(version, _)| version.clone()).collect()
    }
}

async fn next_request(connection: &Connection, group: &str) -> Vec<(String, Vec<String>)> {
    let group = format!("/apis/{group}");
    let mut found = Vec::new();
    for version in names(connection, &group, "/versions", "version").await {
        let listed = format!("{group}/{version}");
        let resources = names(connection, &listed, "/resources", "name").await;
        found.push((version, resources));
    }
    found
}

/// The texts under `key` in the list at `pointer` of what is at `path`.
async fn names(connection: &Connection, path: &str, pointer: &str, key: &str) -> Vec<String> {
    let Ok(answer) = connection.get(path).await else {
        return Vec::new();
    };
    let entries = answer.pointer(pointer).and_then(Value::as_array);
    let texts = entries.into_iter().flatten();
    texts
        .filter_map(|entry| Some(entry.get(key)?.as_str()?.to_owned()))
        .collect()
}
