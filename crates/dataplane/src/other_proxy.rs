//! Detects a kube-proxy on this node. Two proxies would change the same virtual servers, and each would answer the
//! other's probes.
//!
//! A check takes a few netlink requests for single names and at most two requests over loopback, however many Services
//! kube-proxy has programmed. It runs in its own task, so a port that accepts and does not answer delays nothing.
//! Chains of the legacy iptables backend cannot be looked up by name; there only the ports reveal kube-proxy.

mod port;
mod traces;

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;

use port::PortOwner;
use traces::{NameQueries, Traces};

/// kube-proxy's ports for health and metrics (KP-HC-01, KP-HC-20).
const USUAL_PORTS: [u16; 2] = [10249, 10256];

pub use port::SERVER;

/// The result of one check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyDetection {
    traces: Traces,
    /// Ports on 127.0.0.1 where a kube-proxy answers, with the mode that it reports.
    answers: Vec<(u16, Option<String>)>,
}

impl ProxyDetection {
    /// The warning; `None` if no kube-proxy was found.
    pub fn line(&self) -> Option<String> {
        let places = self
            .answers
            .iter()
            .map(|(port, _)| format!("127.0.0.1:{port}"));
        let places: Vec<String> = places.collect();
        let traces = self.traces.describe();
        let mode = self
            .mode()
            .map_or_else(String::new, |mode| format!(" in {mode} mode"));
        if !places.is_empty() {
            let rules = traces.map_or_else(String::new, |traces| format!(" and has {traces}"));
            return Some(format!(
                "a kube-proxy{mode} runs on this node beside this agent: it answers on {}{rules}; two proxies undo each \
                 other's work, and probes of that port reach kube-proxy; take kube-proxy off this node",
                places.join(" and ")
            ));
        }
        traces.map(|traces| {
            format!(
                "this node has {traces} of a kube-proxy{mode}, which runs or has left them: traffic to Services may \
                 follow them; take kube-proxy off this node, then remove them"
            )
        })
    }

    /// The mode that kube-proxy reports, otherwise the one that its traces imply.
    fn mode(&self) -> Option<&str> {
        let named = self.answers.iter().find_map(|(_, mode)| mode.as_deref());
        named.or_else(|| self.traces.mode())
    }
}

/// Checks for other proxies every `period` until `news` has no receiver, on kube-proxy's default ports and `ports`.
pub async fn watch(ports: BTreeSet<u16>, period: Duration, news: watch::Sender<Vec<String>>) {
    let ports: BTreeSet<u16> = ports.into_iter().chain(USUAL_PORTS).collect();
    let mut names = NameQueries::open();
    while !news.is_closed() {
        let found: Vec<String> = detect(&mut names, &ports)
            .await
            .line()
            .into_iter()
            .collect();
        news.send_if_modified(|last| {
            let differs = *last != found;
            *last = found;
            differs
        });
        tokio::time::sleep(period).await;
    }
}

async fn detect(names: &mut NameQueries, ports: &BTreeSet<u16>) -> ProxyDetection {
    let mut answers = Vec::new();
    for &port in ports {
        if let Some(PortOwner::KubeProxy { mode }) = port::probe(port).await {
            answers.push((port, mode));
        }
    }
    ProxyDetection {
        traces: names.find_traces().await,
        answers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(traces: Traces, answers: &[(u16, Option<&str>)]) -> Option<String> {
        let answers = answers
            .iter()
            .map(|(port, mode)| (*port, mode.map(str::to_owned)));
        ProxyDetection {
            traces,
            answers: answers.collect(),
        }
        .line()
    }

    #[test]
    fn a_node_without_kube_proxy_has_no_warning() {
        assert_eq!(line(Traces::default(), &[]), None);
    }

    #[test]
    fn a_kube_proxy_that_answers_runs_in_the_mode_that_it_reports() {
        let traces = Traces {
            chains: true,
            ..Traces::default()
        };
        let words = line(traces, &[(10249, Some("ipvs")), (10256, None)]).unwrap();
        assert!(
            words.starts_with("a kube-proxy in ipvs mode runs on this node"),
            "{words}"
        );
        assert!(
            words.contains("127.0.0.1:10249 and 127.0.0.1:10256"),
            "{words}"
        );
        assert!(words.contains("chain KUBE-SERVICES"), "{words}");
    }

    #[test]
    fn traces_alone_give_the_mode_without_a_claim_that_it_runs() {
        let modes = [
            (
                Traces {
                    chains: true,
                    ..Traces::default()
                },
                "iptables",
            ),
            (
                Traces {
                    chains: true,
                    set: Some("KUBE-6-CLUSTER-IP"),
                    ..Traces::default()
                },
                "ipvs",
            ),
            (
                Traces {
                    tables: true,
                    ..Traces::default()
                },
                "nftables",
            ),
        ];
        for (traces, mode) in modes {
            let words = line(traces, &[]).unwrap();
            assert!(
                words.contains(&format!(
                    "of a kube-proxy in {mode} mode, which runs or has left"
                )),
                "{words}"
            );
        }
    }
}
