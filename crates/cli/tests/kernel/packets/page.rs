//! Writes the rules as the page `docs/packets.md`.

use std::fmt::Write as _;

use super::rules::{Cell, Client, Endpoints, Frontend, Outcome, Policy, Source};

/// The page `docs/packets.md`.
pub(crate) fn page() -> String {
    let mut page = "\
# Who answers, and which source address the server sees

Each cell is a connection that a test opens on Linux 6.1, 6.12 and Debian's newest, over TCP, UDP and SCTP, in both address families (`crates/cli/tests/kernel/packets.rs`).
The expected outcome follows from the documentation of the Kubernetes API (`crates/cli/tests/kernel/packets/rules.rs`), and the test fails if a kernel does something else.
This page is generated from these rules.

- \"Local\" is `internalTrafficPolicy` for the cluster IP, and `externalTrafficPolicy` for the other addresses.
- \"This node\" is a process of the node or a pod in its network, and \"another node\" the same elsewhere.
  `--cluster-cidr` has the range of all pods.
- SCTP clients cannot see the difference between refused and dropped: the kernel reports \"port unreachable\" to them only as a hint.
- Clients on other nodes use their own node for a cluster IP.
- With the policy Local a pod of another node keeps its address.
  If it gets an endpoint of another node, the reply may go another way, so these cells are not tested.
"
    .to_owned();
    for endpoints in Endpoints::ALL {
        let cells = Cell::all(endpoints);
        let clients = Client::ALL.map(client_title).join(" | ");
        let line = "| --- ".repeat(Client::ALL.len() + 1);
        writeln!(
            page,
            "\n## {}\n\n| | {clients} |\n{line}|",
            endpoints_title(endpoints)
        )
        .unwrap();
        for frontend in Frontend::ALL {
            for policy in Policy::ALL {
                let cells = Client::ALL.map(|client| {
                    let is_it = |cell: &&Cell| {
                        (cell.frontend, cell.policy, cell.client) == (frontend, policy, client)
                    };
                    let cell = cells.iter().find(is_it);
                    cell.map_or("–".to_owned(), |cell| outcome_title(cell.outcome()))
                });
                writeln!(
                    page,
                    "| {}, {policy:?} | {} |",
                    frontend_title(frontend),
                    cells.join(" | ")
                )
                .unwrap();
            }
        }
    }
    page
}

const fn client_title(it: Client) -> &'static str {
    match it {
        Client::PodHere => "pod on this node",
        Client::PodElsewhere => "pod on another node",
        Client::ThisNode => "this node",
        Client::OtherNode => "another node",
        Client::Outside => "outside",
        Client::Endpoint => "the endpoint itself",
    }
}

const fn frontend_title(it: Frontend) -> &'static str {
    match it {
        Frontend::ClusterIp => "cluster IP",
        Frontend::NodePort => "node port",
        Frontend::LoadBalancer => "load balancer address",
    }
}

const fn endpoints_title(it: Endpoints) -> &'static str {
    match it {
        Endpoints::Both => "A ready endpoint on this node, and one on another node",
        Endpoints::Here => "A ready endpoint on this node only",
        Endpoints::Elsewhere => "A ready endpoint on another node only",
        Endpoints::Terminating => "One endpoint, on this node, that terminates and still serves",
        Endpoints::None => "No endpoint",
    }
}

fn outcome_title(it: Outcome) -> String {
    match it {
        Outcome::Refused => "refused".to_owned(),
        Outcome::Dropped => "dropped".to_owned(),
        Outcome::Answer { here, elsewhere } => match (here, elsewhere) {
            (Some(one), Some(other)) if one == other => {
                format!("any endpoint, {}", source_title(one))
            }
            (Some(here), Some(elsewhere)) => format!(
                "endpoint here, {}, or elsewhere, {}",
                source_title(here),
                source_title(elsewhere)
            ),
            (Some(source), None) => format!("endpoint here, {}", source_title(source)),
            (None, Some(source)) => format!("endpoint elsewhere, {}", source_title(source)),
            (None, None) => String::new(),
        },
    }
}

const fn source_title(it: Source) -> &'static str {
    match it {
        Source::Client => "client's address",
        Source::Node => "node's address",
    }
}
