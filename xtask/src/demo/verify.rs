//! Verifies what the demo showed.

use guest_wire::{ClusterChange, Distribution, EndpointHits, LoadSummary};

use super::visit::Visit;

/// Tolerance of a real server's hits, as a share of all connections. 1,000 connections are eight scheduler cycles of
/// 120, and 40 more, in which the heaviest server gets 16 to 40 connections instead of 32, depending on the cursor.
const TOLERANCE: f64 = 0.02;

/// The expected result of a demo.
pub(super) struct Expectations {
    /// Connections of each client for each distribution.
    pub(super) connections: u64,
    /// Number of distributions: at the start, and after each change.
    pub(super) distributions: usize,
    /// Distributions, counted from 0, that must have the same weights.
    pub(super) same: &'static [(usize, usize)],
    /// Limit for a change to reach the kernel, in milliseconds.
    pub(super) slowest_change: f64,
    /// Clients that ask for the name of a headless Service.
    pub(super) dns_clients: usize,
}

/// Collects results and checks them.
pub(super) struct Verifier {
    expected: Expectations,
    /// Each has a column for each client.
    distributions: Vec<Vec<Distribution>>,
    changes: Vec<ClusterChange>,
    command_outputs: Vec<String>,
    /// The answers of DNS to each client.
    name_answers: Vec<Distribution>,
    visits: Vec<Visit>,
    /// The parts of kube-proxy on each node.
    kube_proxy_parts: Vec<(&'static str, Vec<String>)>,
}

/// A check: the text of its failure, and whether it holds.
struct Check {
    text: String,
    holds: bool,
}

impl Verifier {
    pub(super) fn new(expected: Expectations) -> Self {
        Self {
            expected,
            distributions: Vec::new(),
            changes: Vec::new(),
            command_outputs: Vec::new(),
            name_answers: Vec::new(),
            visits: Vec::new(),
            kube_proxy_parts: Vec::new(),
        }
    }

    pub(super) fn distribution(&mut self, columns: Vec<Distribution>) {
        self.distributions.push(columns);
    }

    pub(super) fn change(&mut self, change: ClusterChange) {
        self.changes.push(change);
    }

    pub(super) fn command_output(&mut self, text: String) {
        self.command_outputs.push(text);
    }

    pub(super) fn name_answers(&mut self, answers: Vec<Distribution>) {
        self.name_answers.extend(answers);
    }

    pub(super) fn visits(&mut self, visits: Vec<Visit>) {
        self.visits.extend(visits);
    }

    pub(super) fn kube_proxy_parts(&mut self, node: &'static str, parts: Vec<String>) {
        self.kube_proxy_parts.push((node, parts));
    }

    /// Returns the text of every failed check.
    pub(super) fn failures(&self) -> Vec<String> {
        let checks = self.checks().into_iter();
        checks
            .filter(|check| !check.holds)
            .map(|check| check.text)
            .collect()
    }

    /// Returns the number of checks that hold.
    pub(super) fn passed(&self) -> usize {
        self.checks().iter().filter(|check| check.holds).count()
    }

    fn checks(&self) -> Vec<Check> {
        let Expectations {
            distributions,
            same,
            dns_clients,
            ..
        } = self.expected;
        let mut checks = vec![
            Check {
                text: format!(
                    "{} distributions instead of {distributions}",
                    self.distributions.len()
                ),
                holds: self.distributions.len() == distributions
                    && self.changes.len() + 1 == distributions,
            },
            Check {
                text: "a program does not show every real server".to_owned(),
                holds: self.is_proven(),
            },
        ];
        checks.push(Check {
            text: format!(
                "{} clients asked DNS instead of {dns_clients}",
                self.name_answers.len()
            ),
            holds: self.name_answers.len() == dns_clients,
        });
        checks.extend(same.iter().map(|(one, other)| Check {
            text: format!("distribution {other} is not distribution {one} again, counted from 0"),
            holds: weights(self.distributions.get(*one)) == weights(self.distributions.get(*other)),
        }));
        let distributions = self.distributions.iter().flatten();
        for distribution in distributions.chain(&self.name_answers) {
            checks.extend(self.distribution_checks(distribution));
        }
        for change in &self.changes {
            checks.extend(self.change_checks(change));
        }
        checks.extend(self.visits.iter().map(visit_check));
        let nodes = self.kube_proxy_parts.iter();
        checks.extend(nodes.map(|(node, parts)| Check {
            text: format!("{node} has parts of kube-proxy: {}", parts.join(", ")),
            holds: parts.is_empty(),
        }));
        checks
    }

    /// Returns whether the output of every program shows the real servers of the last distribution.
    fn is_proven(&self) -> bool {
        let Some(last) = self
            .distributions
            .last()
            .and_then(|columns| columns.first())
        else {
            return false;
        };
        let shows = |text: &String| {
            text.contains(&last.address)
                && last
                    .servers
                    .iter()
                    .filter(|server| belongs(server))
                    .all(|server| text.contains(&server.address))
        };
        !self.command_outputs.is_empty() && self.command_outputs.iter().all(shows)
    }

    fn distribution_checks(&self, distribution: &Distribution) -> Vec<Check> {
        let mut checks = vec![
            no_failure(&distribution.load, "a distribution"),
            Check {
                text: format!(
                    "{} connections from {} instead of {}",
                    distribution.load.requests, distribution.client, self.expected.connections
                ),
                holds: distribution.load.requests == self.expected.connections,
            },
        ];
        checks.extend(distribution.servers.iter().map(|server| {
            let share = share(server.hits, distribution.load.requests);
            let near = (share - server.wanted).abs() <= TOLERANCE;
            Check {
                text: format!(
                    "{} got {:.1} % of the connections from {} instead of {:.1} %",
                    server.address,
                    100.0 * share,
                    distribution.client,
                    100.0 * server.wanted
                ),
                // A real server has hits if and only if its share is not 0.
                holds: near && (server.hits > 0) == (server.wanted > 0.0),
            }
        }));
        checks
    }

    fn change_checks(&self, change: &ClusterChange) -> [Check; 3] {
        [
            no_failure(&change.load, &change.what),
            Check {
                text: format!("{}: no request was under way", change.what),
                holds: change.load.requests > 0,
            },
            Check {
                text: format!(
                    "{}: {:.0} ms until the kernel had changed",
                    change.what, change.milliseconds
                ),
                holds: change.milliseconds <= self.expected.slowest_change,
            },
        ]
    }
}

fn visit_check(visit: &Visit) -> Check {
    let Visit {
        policy,
        kind,
        target,
        counts,
        expected,
        ..
    } = visit;
    let expected = expected.map_or_else(
        || "no answer".to_owned(),
        |address| format!("{address} as the client"),
    );
    Check {
        text: format!(
            "{policy}, {kind} {target}: {} of {} answered, and the server saw {:?}; expected: {expected}",
            counts.requests - counts.failed,
            counts.requests,
            visit.seen()
        ),
        holds: visit.is_as_expected(),
    }
}

fn no_failure(load: &LoadSummary, when: &str) -> Check {
    Check {
        text: format!(
            "{when}: {} requests failed: {}",
            load.failed,
            load.errors.join(", ")
        ),
        holds: load.failed == 0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn share(hits: u64, requests: u64) -> f64 {
    hits as f64 / requests.max(1) as f64
}

/// Returns the weights in each column by node: pods that come back have other addresses.
fn weights(columns: Option<&Vec<Distribution>>) -> Vec<Vec<(&str, Option<u32>)>> {
    let columns = columns.map_or_else(Default::default, Vec::as_slice);
    columns.iter().map(weights_of).collect()
}

/// Returns whether it is still an endpoint. An endpoint without a pod has no node, and stays in the kernel until its
/// connections end.
fn belongs(server: &EndpointHits) -> bool {
    !server.node.is_empty()
}

fn weights_of(distribution: &Distribution) -> Vec<(&str, Option<u32>)> {
    let servers = distribution.servers.iter().filter(|server| belongs(server));
    let mut weights: Vec<_> = servers
        .map(|server| (&*server.node, server.weight))
        .collect();
    weights.sort_unstable();
    weights
}

#[cfg(test)]
mod tests {
    use super::super::visit::tests::visit;
    use super::*;

    fn load(requests: u64, failed: u64) -> LoadSummary {
        LoadSummary {
            requests,
            failed,
            errors: Vec::new(),
            seconds: 1.0,
        }
    }

    fn distribution(hits: [u64; 2]) -> Distribution {
        let server = |address: &str, wanted, hits| EndpointHits {
            address: address.to_owned(),
            node: "n1".to_owned(),
            zone: "a".to_owned(),
            level: Some("node".to_owned()),
            weight: Some(1),
            wanted,
            hits,
        };
        Distribution {
            client: "n1".to_owned(),
            service: "shop/cart".to_owned(),
            address: "10.96.0.10:80".to_owned(),
            policy: String::new(),
            load: load(100, 0),
            servers: vec![
                server("10.0.0.1:80", 0.8, hits[0]),
                server("10.0.0.2:80", 0.2, hits[1]),
            ],
        }
    }

    fn change(milliseconds: f64, failed: u64) -> ClusterChange {
        ClusterChange {
            what: "a pod leaves".to_owned(),
            milliseconds,
            load: load(50, failed),
        }
    }

    fn expected() -> Expectations {
        Expectations {
            connections: 100,
            distributions: 4,
            same: &[(0, 3)],
            slowest_change: 5000.0,
            dns_clients: 1,
        }
    }

    fn verifier(distributions: [[u64; 2]; 4], changes: [(f64, u64); 3]) -> Verifier {
        let mut verifier = Verifier::new(expected());
        for hits in distributions {
            verifier.distribution(vec![distribution(hits)]);
        }
        for (milliseconds, failed) in changes {
            verifier.change(change(milliseconds, failed));
        }
        verifier.command_output("10.96.0.10:80 10.0.0.1:80 10.0.0.2:80".to_owned());
        verifier.name_answers(vec![distribution([80, 20])]);
        verifier
    }

    const RIGHT: [[u64; 2]; 4] = [[80, 20]; 4];
    const QUICK: [(f64, u64); 3] = [(9.0, 0); 3];

    #[test]
    fn a_demo_as_it_should_be_has_no_misses() {
        let verifier = verifier(RIGHT, QUICK);
        assert_eq!(verifier.failures(), Vec::<String>::new());
        assert!(verifier.passed() > 20);
    }

    #[test]
    fn each_kind_of_miss_is_found() {
        let wrong_share = verifier([[80, 20], [80, 20], [77, 23], [80, 20]], QUICK).failures();
        assert_eq!(wrong_share.len(), 2, "{wrong_share:?}");
        let failed_request = verifier(RIGHT, [(9.0, 0), (9.0, 1), (9.0, 0)]).failures();
        assert_eq!(failed_request.len(), 1, "{failed_request:?}");
        let slow = verifier(RIGHT, [(9.0, 0), (9.0, 0), (5001.0, 0)]).failures();
        assert_eq!(slow.len(), 1, "{slow:?}");
        assert!(!Verifier::new(expected()).failures().is_empty());
    }

    #[test]
    fn a_pod_that_is_gone_and_finishes_its_connections_spoils_nothing() {
        let mut verifier = verifier(RIGHT, QUICK);
        let last = verifier
            .distributions
            .last_mut()
            .unwrap()
            .first_mut()
            .unwrap();
        last.servers.push(EndpointHits {
            address: "10.0.0.9:80".to_owned(),
            node: String::new(),
            zone: String::new(),
            level: None,
            weight: Some(0),
            wanted: 0.0,
            hits: 0,
        });
        assert_eq!(verifier.failures(), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_source_address_and_a_part_of_kube_proxy_are_found() {
        let mut right = verifier(RIGHT, QUICK);
        let client = Some("192.0.2.1");
        right.visits(vec![visit(client, client)]);
        right.kube_proxy_parts("n1", Vec::new());
        assert_eq!(right.failures(), Vec::<String>::new());
        right.visits(vec![visit(Some("192.0.2.12"), client)]);
        right.kube_proxy_parts("n2", vec!["KUBE-LOOP-BACK".to_owned()]);
        assert_eq!(
            right.failures(),
            [
                "Local, node port 192.0.2.11:30080: 2 of 2 answered, and the server saw [\"192.0.2.12\"]; \
                 expected: 192.0.2.1 as the client",
                "n2 has parts of kube-proxy: KUBE-LOOP-BACK",
            ]
        );
    }

    #[test]
    fn a_wrong_answer_of_dns_and_a_client_too_many_are_found() {
        let mut verifier = verifier(RIGHT, QUICK);
        verifier.name_answers = vec![distribution([20, 80])];
        assert_eq!(verifier.failures().len(), 2);
        verifier.name_answers = vec![distribution([80, 20]), distribution([80, 20])];
        assert_eq!(
            verifier.failures(),
            ["2 clients asked DNS instead of 1".to_owned()]
        );
    }

    #[test]
    fn a_proof_that_lacks_a_server_is_none() {
        let mut verifier = verifier(RIGHT, QUICK);
        verifier.command_output("10.96.0.10:80 10.0.0.1:80".to_owned());
        assert_eq!(verifier.failures().len(), 1);
    }
}
