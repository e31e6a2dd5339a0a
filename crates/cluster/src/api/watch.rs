//! Everything of a cluster that is read from its API server, as one stream of batches.
//!
//! ```text
//!  Driver (one for each collection) ──asks──> ListWatch     what to request next: pure
//!     │  requests, streams, lines
//!     └──objects──> Reflector ──> Batch                         what is news: pure
//! ```
//!
//! Where a map may stand for the Nodes, `select` turns between it and them, as the reflector finds it fit; and where something
//! goes by labels that are not kept of Nodes, `anew` has them read again.
//!
//! Nothing of whole objects is kept, and the order in which collections come does not matter.

mod driver;
mod list_watch;
mod node_source;
mod options;
mod reflector;
mod resources;
mod sync_status;
mod watcher;

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::thread;

use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::Instant;

use crate::event::Batch;
use crate::source::Watch;
use kube_io::Connection;
use kube_io::{Access, AccessError};

pub use node_source::topology_map::MapGap;
pub use options::{Following, NodeSource, Relists};
pub use sync_status::{Phase, ResourceStatus, SyncStatus};
pub use watcher::{Watcher, WatcherChange};

use driver::{Driver, Feed};
use node_source::relist::relist;
use node_source::select::select;
use reflector::Reflector;
use resources::RESOURCES;

/// How many batches may wait for the consumer before the server has to wait.
const WAITING_BATCHES: usize = 8;

/// Follows the cluster behind `access`, in a thread of its own.
///
/// The batches keep the order of [`event`](crate::event): `Begin`, what exists, `Complete` when every collection was
/// read once, then changes. An API server that cannot be reached is waited for; it is an error only when there is no
/// way to know where it is or who asks.
pub fn watch(access: &Access, following: impl Into<Following>) -> Result<Watch, AccessError> {
    let following = following.into();
    let (sender, batches) = mpsc::channel(WAITING_BATCHES);
    let (opened, board) = std::sync::mpsc::sync_channel(1);
    let access = access.clone();
    let run = move || {
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
                    let board = SyncStatus::new(connection.clone());
                    drop(opened.send(Ok(board.clone())));
                    feed(connection, board, &following, sender).await;
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        });
    };
    let thread = thread::Builder::new().name("cluster-api".to_owned());
    let failed = |error: String| AccessError::Thread(error);
    thread
        .spawn(run)
        .map_err(|error| failed(error.to_string()))?;
    let board = board.recv().map_err(|error| failed(error.to_string()))??;
    Ok(Watch::of_api(batches, board))
}

/// The same within the caller's task, for a connection that is there: run the future beside the reading of the watch.
/// It ends when the watch is dropped.
pub fn follow(
    connection: Connection,
    following: impl Into<Following>,
) -> (Watch, impl Future<Output = ()>) {
    let following = following.into();
    let (sender, batches) = mpsc::channel(WAITING_BATCHES);
    let board = SyncStatus::new(connection.clone());
    let watch = Watch::of_api(batches, board.clone());
    let fed = async move { feed(connection, board, &following, sender).await };
    (watch, fed)
}

async fn feed(
    connection: Connection,
    board: SyncStatus,
    following: &Following,
    batches: mpsc::Sender<Batch>,
) {
    let shared = Feed {
        server: connection.server().into(),
        connection,
        reflector: RefCell::new(Reflector::new(following)),
        batches: batches.clone(),
        turn: Mutex::new(()),
        board,
        by_namespace: Notify::new(),
        judged: Notify::new(),
        turned: Notify::new(),
        lacking: Notify::new(),
        epoch: Instant::now(),
    };
    let drivers = RESOURCES.iter().enumerate();
    let drivers =
        drivers.map(|(number, input)| Box::pin(Driver::new(number, *input, &shared).run()));
    tokio::select! {
        () = batches.closed() => {}
        () = first(drivers.collect()) => {}
        _ended = select(&shared) => {}
        () = relist(&shared) => {}
    }
}

/// Runs all until one ends: they end only when nobody listens any more.
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
