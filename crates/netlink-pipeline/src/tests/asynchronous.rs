//! The tokio connection lets other tasks run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    AsyncConnection, Batch, DecodeError, Error, Message, NetlinkProtocol, Options, Request,
};

const RTM_GETLINK: u16 = 18;
/// `struct ifinfomsg` of the loopback interface, which has the index 1.
const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A connection with a few requests, which are short, and whose replies are much longer.
fn connection() -> (AsyncConnection, Batch) {
    let connection = AsyncConnection::open(NetlinkProtocol::ROUTE, &Options::default()).unwrap();
    let mut batch = Batch::new();
    for _ in 0..100 {
        batch.push(Request::new(RTM_GETLINK, 0).with_answer(), &LOOPBACK);
    }
    (connection, batch)
}

/// A task that counts how often it runs.
async fn other_task() -> Arc<AtomicUsize> {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    tokio::task::yield_now().await;
    runs
}

#[tokio::test]
async fn other_tasks_run_while_many_replies_are_read() {
    let (mut connection, batch) = connection();
    let other = other_task().await;
    let before = other.load(Ordering::Relaxed);
    let mut replies = 0;
    let count = |_, _: Message<'_>| {
        replies += 1;
        Ok(())
    };
    connection.execute_with(batch, count).await.unwrap();
    assert_eq!(replies, 100);
    assert!(other.load(Ordering::Relaxed) > before);
}

#[tokio::test]
async fn other_tasks_run_while_the_replies_to_an_abandoned_conversation_are_discarded() {
    let (mut connection, batch) = connection();
    let refuse = |_, _: Message<'_>| Err(DecodeError::Missing { what: "anything" });
    let abandoned = connection.execute_with(batch, refuse).await;
    assert!(matches!(abandoned, Err(Error::Malformed(_))));
    let other = other_task().await;
    let before = other.load(Ordering::Relaxed);
    connection.execute(Batch::new()).await.unwrap();
    assert!(other.load(Ordering::Relaxed) > before);
}
