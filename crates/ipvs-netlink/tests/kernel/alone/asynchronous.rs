//! The asynchronous client.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use ipvs_netlink::{AsyncClient, Command, ErrorKind};
use netlink_pipeline::{AsyncConnection, AsyncSubscription, NetlinkProtocol, Options, Request};

use tokio::task::coop;

use crate::options::rows;
use crate::support::{assert_saved, link, many, nth, run};

fn block_on<R>(future: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(future)
}

async fn execute(client: &mut AsyncClient, commands: &[Command]) {
    for result in client.execute(commands).await.unwrap() {
        result.unwrap();
    }
}

#[test]
fn every_option_is_written_and_read() {
    link();
    block_on(async {
        let mut client = AsyncClient::open().await.unwrap();
        let commands: Vec<_> = rows().into_iter().map(|row| row.meaning).collect();
        execute(&mut client, &commands).await;
        assert_saved(rows().iter().map(|row| row.saved));
        let read = client.dump().await.unwrap();
        let lines: usize = read.iter().map(|(_, reals)| 1 + reals.len()).sum();
        assert_eq!(lines, commands.len());
        for (service, reals) in &read {
            let id = service.service.id;
            assert_eq!(client.service(&id).await.unwrap().service, service.service);
            assert_eq!(client.destinations(&id).await.unwrap().len(), reals.len());
        }
        assert_eq!(client.info().await.unwrap().version_parts(), (1, 2, 1));
        assert!(client.timeouts().await.unwrap().tcp.is_some());
        assert_eq!(client.daemons().await.unwrap(), []);
    });
}

#[test]
fn a_failure_affects_its_command_only() {
    block_on(async {
        let mut client = AsyncClient::open().await.unwrap();
        execute(&mut client, &many(100)).await;
        let results = client.execute(&many(5000)).await.unwrap();
        let failed = results.iter().take_while(|result| result.is_err()).count();
        assert_eq!(failed, 100);
        assert!(results[100..].iter().all(Result::is_ok));
        let missing = client.service(&nth(9999)).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NoSuchService);
    });
}

#[test]
fn other_tasks_run_after_some_hundred_requests() {
    block_on(async {
        let turns = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&turns);
        let other = async move {
            loop {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        };
        let work = async {
            let mut client = AsyncClient::open().await.unwrap();
            execute(&mut client, &many(10_000)).await;
        };
        tokio::select! {
            () = other => {}
            () = work => {}
        }
        assert!(turns.load(Ordering::Relaxed) > 10_000 / 1_000);
    });
}

/// Polls a future once, up to its first certain pause, and drops it.
async fn give_up(future: impl Future) {
    let mut future = pin!(future);
    poll_fn(|context| {
        // A short request pauses only if the task has used up its budget.
        while coop::has_budget_remaining() {
            assert!(pin!(coop::consume_budget()).poll(context).is_ready());
        }
        assert!(
            future.as_mut().poll(context).is_pending(),
            "it was too quick"
        );
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_dropped_future_does_not_disturb_later_calls() {
    block_on(async {
        let mut client = AsyncClient::open().await.unwrap();
        execute(&mut client, &many(2000)).await;
        give_up(client.services()).await;
        give_up(client.service(&nth(1))).await;
        assert_eq!(client.services().await.unwrap().len(), 2000);
        // The first datagram of these was sent and fails; its replies belong to no current request.
        give_up(client.execute(&many(500))).await;
        let results = client
            .execute(&[Command::DelService(nth(5))])
            .await
            .unwrap();
        assert!(results[0].is_ok());
        assert_eq!(client.service(&nth(6)).await.unwrap().service.id, nth(6));
    });
}

#[test]
fn other_protocols_work_too() {
    block_on(async {
        const RTM_GETLINK: u16 = 18;
        let options = Options::default();
        let mut links = AsyncSubscription::open(NetlinkProtocol::ROUTE, &[1], &options).unwrap();
        run("ip", "link add eth7 type dummy");
        let mut messages = links.receive().await.unwrap();
        assert_eq!(messages.next().unwrap().unwrap().kind, 16);
        let mut route = AsyncConnection::open(NetlinkProtocol::ROUTE, &options).unwrap();
        let request = Request::new(RTM_GETLINK, 0);
        let links = route
            .dump(request, &[0; 16], |_| Ok(Some(())))
            .await
            .unwrap();
        assert_eq!(links.len(), 2);
    });
}
