//! Records where the connections to the API server lead.

use std::net::SocketAddr;

use hyper_util::client::legacy::connect::HttpInfo;
use kube::client::Body;
use tokio::sync::watch;

/// The API server may have several addresses, and a load balancer in front of it new ones from time to time.
const MAX_PEERS: usize = 16;

/// The last addresses that requests were sent to, in the order of their first use.
#[derive(Debug)]
pub(super) struct Peers(watch::Sender<Vec<SocketAddr>>);

impl Default for Peers {
    fn default() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }
}

impl Peers {
    /// Records where the answer came from.
    pub(super) fn record(&self, answer: &http::Response<Body>) {
        if let Some(connection) = answer.extensions().get::<HttpInfo>() {
            self.add(connection.remote_addr());
        }
    }

    fn add(&self, peer: SocketAddr) {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        self.0.send_if_modified(|peers| {
            let is_new = !peers.contains(&peer);
            if is_new {
                let excess = (peers.len() + 1).saturating_sub(MAX_PEERS);
                peers.drain(..excess);
                peers.push(peer);
            }
            is_new
        });
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Vec<SocketAddr>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_addresses_are_kept_each_once() {
        let peers = Peers::default();
        let socket = |number: u16| SocketAddr::from(([192, 0, 2, 1], number));
        for number in 1..=20 {
            peers.add(socket(number));
            peers.add(socket(number));
        }
        let kept = peers.subscribe().borrow().clone();
        assert_eq!(kept, (5..=20).map(socket).collect::<Vec<_>>());
    }
}
