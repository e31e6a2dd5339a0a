//! Writes the rules as the page `docs/packets.md`.

use std::fmt::Write as _;

use super::rules::{Cell, Client, Endpoints, Frontend, Outcome, Policy, Source};

const NOT_TESTED: &str = "–";

/// The page `docs/packets.md`.
pub(crate) fn page() -> String {
    let mut page = "\
# Who answers, and which source address the server sees

Each cell is a connection that a test opens on Linux 6.1, 6.12 and Debian's newest, over TCP, UDP and SCTP, in both address families (`crates/cli/tests/kernel/packets.rs`).
The expected outcome follows from the documentation of the Kubernetes API (`crates/cli/tests/kernel/packets/rules.rs`), and the test fails if a kernel does something else.
This page is generated from these rules.

The source address is that of a connection; the agent itself answers health checks.

- \"This node\" is a process of the node or a pod in its network, and \"another node\" the same elsewhere.
  `--cluster-cidr` has the range of all pods.
- SCTP clients cannot see the difference between refused and dropped: the kernel reports \"port unreachable\" to them only as a hint.
- Clients on other nodes use their own node for a cluster IP.
- Rows other than Cluster and Local have the cells where the setting could make a difference.

| row | the Service has |
| --- | --- |
| Cluster | the defaults |
| Local | `internalTrafficPolicy: Local` and `externalTrafficPolicy: Local` |
| internal Local | `internalTrafficPolicy: Local` alone |
| external Local | `externalTrafficPolicy: Local` alone |
| ranges, Local with ranges | `loadBalancerSourceRanges` with the outside host and the pods of this node; with `externalTrafficPolicy: Local` |
| affinity, Local with affinity | `sessionAffinity: ClientIP`: the test connects three times, and one endpoint answers; with `externalTrafficPolicy: Local` |
| hard | `topology.ipvs-topo.io/keys: node` |
| prefer | `topology.ipvs-topo.io/keys: node,*` |
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
                let row = Client::ALL.map(|client| {
                    let is_it = |cell: &&Cell| {
                        (cell.frontend, cell.policy, cell.client) == (frontend, policy, client)
                    };
                    let cell = cells.iter().find(is_it);
                    cell.map_or(NOT_TESTED.to_owned(), |cell| outcome_title(cell.outcome()))
                });
                if row.iter().all(|cell| cell == NOT_TESTED) {
                    continue;
                }
                let (frontend, policy) = (frontend_title(frontend), policy_title(policy));
                writeln!(page, "| {frontend}, {policy} | {} |", row.join(" | ")).unwrap();
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
        Frontend::ExternalIp => "external IP",
        Frontend::HealthPort => "health check node port",
    }
}

const fn policy_title(it: Policy) -> &'static str {
    match it {
        Policy::Cluster => "Cluster",
        Policy::Local => "Local",
        Policy::InternalLocal => "internal Local",
        Policy::ExternalLocal => "external Local",
        Policy::Ranges => "ranges",
        Policy::LocalRanges => "Local with ranges",
        Policy::Affinity => "affinity",
        Policy::LocalAffinity => "Local with affinity",
        Policy::Hard => "hard",
        Policy::Prefer => "prefer",
    }
}

const fn endpoints_title(it: Endpoints) -> &'static str {
    match it {
        Endpoints::Both => "A ready endpoint on this node, and one on another node",
        Endpoints::Here => "A ready endpoint on this node only",
        Endpoints::Elsewhere => "A ready endpoint on another node only",
        Endpoints::Terminating => "One endpoint, on this node, that terminates and still serves",
        Endpoints::Leaving => {
            "An endpoint on this node that terminates and still serves, and a ready one on another node"
        }
        Endpoints::Unready => {
            "An endpoint on this node that is not ready, and a ready one on another node"
        }
        Endpoints::None => "No endpoint",
    }
}

fn outcome_title(it: Outcome) -> String {
    match it {
        Outcome::Refused => "refused".to_owned(),
        Outcome::Dropped => "dropped".to_owned(),
        Outcome::Health(status) => format!("status {status}"),
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
