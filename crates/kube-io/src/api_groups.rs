//! Caches for a few seconds which versions and resources the server has in an API group.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::path::Target;

/// How long the versions of a group are used. Shorter than the pause before another list of an
/// unknown kind, so several kinds of one group cost one request.
const VALID_FOR: Duration = Duration::from_secs(14);

/// The groups, with the time of the request.
#[derive(Debug, Default)]
pub(crate) struct ApiGroups {
    known: Mutex<BTreeMap<String, ApiGroup>>,
}

#[derive(Debug)]
struct ApiGroup {
    requested: Instant,
    /// Each version, with its resources.
    versions: Vec<(String, Vec<String>)>,
}

impl ApiGroups {
    /// The versions in which the server has the resource of `target`; none if the request fails.
    /// `read` requests the versions of a group, each with its resources. Concurrent callers wait
    /// for the same request.
    pub(crate) async fn versions(
        &self,
        target: &Target,
        read: impl AsyncFnOnce(&str) -> Vec<(String, Vec<String>)>,
    ) -> Vec<String> {
        let mut known = self.known.lock().await;
        let group = known.get(&target.group);
        if group.is_none_or(|group| group.requested.elapsed() > VALID_FOR) {
            let group = ApiGroup {
                requested: Instant::now(),
                versions: read(&target.group).await,
            };
            known.insert(target.group.clone(), group);
        }
        let versions = known.get(&target.group).into_iter();
        let versions = versions.flat_map(|group| &group.versions);
        let having = versions.filter(|(_, resources)| resources.contains(&target.resource));
        having.map(|(version, _)| version.clone()).collect()
    }
}
