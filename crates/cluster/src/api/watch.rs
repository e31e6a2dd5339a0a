//! Watches the resources of a cluster on its API server, as one stream of batches.
//!
//! ```text
//!  ResourceReader (one for each resource) ──drives──> kube_io::list_watch::Driver
//!     │  Event
//!  ResourceSink ──objects──> Reflector ──> Batch
//! ```
//!
//! Where TopologyMaps may replace the Nodes, `node_source::select` switches between the two.
//! `node_source::relist` relists Nodes when an object uses a label that was dropped from them.
//!
//! Of an object only the name and a fingerprint are kept, unless it waits for a label or a time.
//! The order in which resources are listed does not matter.

mod feed;
mod node_source;
mod options;
mod reflector;
mod resource_reader;
mod resource_sink;
mod resources;
mod sync_status;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::thread;

use tokio::sync::mpsc;

use crate::source::Watch;
use kube_io::{Access, AccessError, Connection};

pub use node_source::topology_map::MapGap;
pub use options::{ClientNodes, Delivery, NodeSource, Relists, WatchOptions};
pub use sync_status::{Phase, ResourceStatus, SyncStatus};

use feed::Feed;
use node_source::relist::relist;
use node_source::select::select;
use node_source::waiting::observe_waiting;
use resource_reader::ResourceReader;

/// How many batches may wait for the receiver before reading pauses.
const WAITING_BATCHES: usize = 8;

/// Watches the cluster behind `access` in a new thread.
///
/// The batches keep the order of [`event`](crate::event): `Begin`, the existing objects, `Complete`
/// when every resource was listed once, then changes. Retries while the API server cannot be
/// reached.
///
/// # Errors
/// Fails if no address or no credentials are found.
pub fn watch(access: &Access, options: impl Into<WatchOptions>) -> Result<Watch, AccessError> {
    let options = options.into();
    let (sender, batches) = mpsc::channel(WAITING_BATCHES);
    let (opened, sync_status) = std::sync::mpsc::sync_channel(1);
    let access = access.clone();
    let read = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime,
            Err(error) => return drop(opened.send(Err(AccessError::Thread(error.to_string())))),
        };
        runtime.block_on(async {
            match Connection::open(&access).await {
                Ok(connection) => {
                    let (feed, sync_status) = Feed::new(connection, &options, sender);
                    drop(opened.send(Ok(sync_status)));
                    run(&feed).await;
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        });
    };
    let thread = thread::Builder::new().name("cluster-api".to_owned());
    let failed = |error: String| AccessError::Thread(error);
    thread
        .spawn(read)
        .map_err(|error| failed(error.to_string()))?;
    let sync_status = sync_status
        .recv()
        .map_err(|error| failed(error.to_string()))??;
    Ok(Watch::of_api(batches, sync_status))
}

/// Watches the cluster in the caller's task, over an open connection. The caller runs the future
/// while it receives batches. The future ends when the watch is dropped.
pub fn follow(
    connection: Connection,
    options: impl Into<WatchOptions>,
) -> (Watch, impl Future<Output = ()>) {
    let (sender, batches) = mpsc::channel(WAITING_BATCHES);
    let (feed, sync_status) = Feed::new(connection, &options.into(), sender);
    let watch = Watch::of_api(batches, sync_status);
    (watch, async move { run(&feed).await })
}

async fn run(feed: &Feed) {
    let readers = feed.resources.iter();
    let readers = readers.map(|watched| Box::pin(ResourceReader::new(watched, feed).run()));
    tokio::select! {
        () = feed.batches.closed() => {}
        () = first(readers.collect()) => {}
        _ended = select(feed) => {}
        _ended = observe_waiting(feed) => {}
        () = relist(feed) => {}
    }
}

/// Runs all futures until one ends, which happens only when the receiver of the batches is gone.
async fn first<F: Future>(mut futures: Vec<Pin<Box<F>>>) {
    poll_fn(|context| {
        let mut ended = false;
        for future in &mut futures {
            ended |= future.as_mut().poll(context).is_ready();
        }
        if ended {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
