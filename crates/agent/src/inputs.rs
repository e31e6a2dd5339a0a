//! The state of the watches, for `status` and `/healthz`.

use agent_api::status::CollectionView;
use cluster::api::{ResourceStatus, SyncStatus};
use jiff::Timestamp;

/// All resources.
pub(crate) fn collections(sync_status: &SyncStatus) -> Vec<CollectionView> {
    let now = Timestamp::now();
    let states = sync_status.resources().into_iter();
    states.map(|state| collection(state, now)).collect()
}

fn collection(state: ResourceStatus, now: Timestamp) -> CollectionView {
    let since = |time: Option<Timestamp>| Some(seconds(time?, now));
    CollectionView {
        name: state.name.to_owned(),
        state: state.phase.as_str().to_owned(),
        objects: state.objects as u64,
        synced_seconds: since(state.synced_since),
        heard_seconds: since(state.last_received),
        error: state.error.map(|error| error.to_string()),
        map_gap: state.map_gap.map(|gap| gap.to_string()),
    }
}

/// Whole seconds; `None` for a time in the future, after the clock was changed.
fn seconds(time: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.duration_since(time).as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use cluster::api::Phase;

    use super::*;

    #[test]
    fn no_age_is_negative_after_the_clock_was_set_back() {
        let now = Timestamp::from_second(1000).unwrap();
        let state = ResourceStatus {
            name: "nodes",
            phase: Phase::Following,
            synced_since: Some(Timestamp::from_second(4600).unwrap()),
            last_received: Some(Timestamp::from_second(990).unwrap()),
            ..ResourceStatus::default()
        };
        let view = collection(state, now);
        assert_eq!(
            (view.synced_seconds, view.heard_seconds),
            (Some(0), Some(10))
        );
    }
}
