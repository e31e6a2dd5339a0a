//! What clients receive that watch a large cluster. `cargo xtask bench --nodes` runs it beside a controller.
//!
//! - `large_cluster KUBECONFIG heartbeats NODES ROUNDS`: makes so many Nodes, waits for the map of them, follows the
//!   cluster twice, has every Node send so many heartbeats as a kubelet would, and prints one JSON object.
//! - `large_cluster KUBECONFIG pods NODES PODS`: makes so many Nodes and Pods.
//! - `large_cluster KUBECONFIG churn NODES PODS SECONDS`: waits until the controller has written where the Pods are, then
//!   replaces 1 % of the Pods in a minute for so long, and prints one JSON object.

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

mod churn;
mod heartbeats;
mod node;
mod pod;

use std::error::Error;
use std::time::Duration;

use kube_io::{Access, ApiError, Connection};
use tokio::task::JoinSet;

/// How many requests are under way at a time.
const AT_ONCE: usize = 32;
const USAGE: &str = "large_cluster KUBECONFIG heartbeats|pods|churn NODES COUNT [SECONDS]";

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or(USAGE);
    let access = Access::kubeconfig(next()?.as_ref(), "large_cluster");
    let command = next()?;
    let (nodes, count) = (next()?.parse()?, next()?.parse()?);
    match &*command {
        "heartbeats" => println!("{}", heartbeats::measure(&access, nodes, count).await?),
        "pods" => pod::create(&Connection::open(&access).await?, nodes, count).await?,
        "churn" => {
            let length = Duration::from_secs(next()?.parse()?);
            let measured = churn::measure(&access, nodes, count, length);
            println!("{}", Box::pin(measured).await?);
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// Does something for every number below `count`, many at a time.
async fn each<F>(
    api: &Connection,
    count: usize,
    work: impl Fn(Connection, usize) -> F,
) -> Outcome<()>
where
    F: Future<Output = Result<(), ApiError>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for number in 0..count {
        if tasks.len() >= AT_ONCE
            && let Some(done) = tasks.join_next().await
        {
            done??;
        }
        tasks.spawn(work(api.clone(), number));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}
