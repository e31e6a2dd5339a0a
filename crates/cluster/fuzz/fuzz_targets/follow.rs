//! The events of a cluster whose API server is a router in this process.

use std::time::Duration;

use axum::Router;
use cluster::api::{NodeSource, follow};
use kube_io::Connection;

/// Less than the shortest pause after a stream, so that nothing is asked for by chance.
const TIME: Duration = Duration::from_millis(300);

/// The end of a list without objects.
pub(crate) const NOTHING: &[u8] = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}
"#;

/// The events and reports of a server, until nothing happens any more.
pub(crate) fn received(router: Router, nodes: NodeSource) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    runtime.block_on(async {
        let server = Connection::of_client(kube::Client::new(router, "default"));
        let (mut watch, feed) = follow(server, nodes);
        let mut received = Vec::new();
        let take = async {
            while let Some(batch) = watch.next().await {
                assert!(batch.events.len() <= 256);
                received.extend(batch.events.iter().map(|event| format!("{event:?}")));
                received.extend(batch.reports.iter().map(|report| format!("{report:?}")));
            }
        };
        // It ends by the clock, which moves on when nothing else does.
        let _ended = tokio::time::timeout(TIME, async { tokio::join!(feed, take) }).await;
        received
    })
}
