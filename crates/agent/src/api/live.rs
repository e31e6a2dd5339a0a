//! Combines a desired virtual server with the kernel's state.

use std::net::IpAddr;

use agent_api::describe;
use agent_api::view::{
    ConnectionsView, ExcludedView, RealServerView, ServerKernelView, ServerView, TrafficView,
};

use crate::state::{DrainState, KernelReal, KernelServer, ProgramStatus, ServerState};

/// The virtual server with the kernel's counters, and with real servers that only the kernel has.
pub(super) fn server(state: &ServerState) -> ServerView {
    let mut view = describe::server(&state.wanted);
    view.kernel = Some(kernel_view(&state.status));
    if state.status == ProgramStatus::Foreign {
        return view;
    }
    let mut unseen: Vec<&KernelReal> = state
        .kernel
        .iter()
        .flat_map(|kernel| &kernel.real_servers)
        .collect();
    for real in &mut view.real_servers {
        let at = unseen
            .iter()
            .position(|one| (one.address, one.port) == (real.address, real.port));
        compare(real, at.map(|at| unseen.swap_remove(at)));
    }
    unseen.sort_unstable_by_key(|real| (real.address, real.port));
    for real in unseen {
        let endpoint = remove_matching(&mut view.excluded, real.address, real.port);
        view.real_servers.push(leaving(real, endpoint));
    }
    view
}

fn kernel_view(status: &ProgramStatus) -> ServerKernelView {
    let (state, error, retry) = match status {
        ProgramStatus::Programmed => ("programmed", None, None),
        ProgramStatus::Failed { error, retry_in } => {
            ("failed", Some(error.clone()), Some(*retry_in))
        }
        ProgramStatus::Refused(reason) => ("refused", Some(reason.clone()), None),
        ProgramStatus::Foreign => {
            let reason = "a foreign virtual server has this address and port and is left alone";
            ("foreign", Some(reason.to_owned()), None)
        }
    };
    ServerKernelView {
        state: state.to_owned(),
        error,
        retry_in_seconds: retry.map(|retry| retry.as_secs()),
    }
}

/// Adds the kernel's counters to a desired real server, and reports differences.
fn compare(real: &mut RealServerView, kernel: Option<&KernelReal>) {
    let Some(kernel) = kernel else {
        "missing".clone_into(&mut real.state);
        return;
    };
    if kernel.weight != real.weight {
        real.state = format!("weighs {}", kernel.weight);
    }
    real.connections = Some(connections(kernel));
}

/// A real server that only the kernel has: it drains, or another program added it.
fn leaving(kernel: &KernelReal, endpoint: Option<ExcludedView>) -> RealServerView {
    let (reason, code, node, zone) = match endpoint {
        None => (
            "no longer an endpoint".to_owned(),
            String::new(),
            None,
            None,
        ),
        Some(one) => (one.words, one.reason, one.node, one.zone),
    };
    let (state, left) = match kernel.drain {
        DrainState::UntilDeadline(left) => ("draining", Some(left.as_secs())),
        DrainState::UntilIdle => ("waiting", None),
        DrainState::None => ("unexpected", None),
    };
    RealServerView {
        address: kernel.address,
        port: kernel.port,
        node,
        zone,
        level: None,
        weight: kernel.weight,
        share: 0.0,
        state: state.to_owned(),
        reason,
        code,
        connections: Some(connections(kernel)),
        drain_seconds_left: left,
    }
}

fn remove_matching(
    excluded: &mut Vec<ExcludedView>,
    address: IpAddr,
    port: u16,
) -> Option<ExcludedView> {
    let at = excluded
        .iter()
        .position(|one| (one.address, one.port) == (address, port))?;
    Some(excluded.remove(at))
}

fn connections(kernel: &KernelReal) -> ConnectionsView {
    ConnectionsView {
        active: kernel.active,
        inactive: kernel.inactive,
        persistent: kernel.persistent,
        traffic: kernel.traffic.map(|traffic| TrafficView {
            total: traffic.connections,
            per_second: traffic.connections_rate,
            bytes_in: traffic.bytes_in,
            bytes_out: traffic.bytes_out,
            bytes_in_per_second: traffic.bytes_in_rate,
            bytes_out_per_second: traffic.bytes_out_rate,
        }),
    }
}

/// A foreign virtual server on one line: `-t 10.0.0.1:80 wrr, 2 real servers`.
pub(super) fn line(server: &KernelServer) -> String {
    let count = server.real_servers.len() as u64;
    let reals = agent_api::numbers::many(count, "real server");
    format!("{} {}, {reals}", server.key, server.scheduler)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use dataplane::ipvs::Traffic;

    #[test]
    fn d9_a_drain_with_a_deadline_is_shown_as_such() {
        let shown = |drain| {
            let real = KernelReal {
                address: [10, 244, 1, 2].into(),
                port: 8080,
                weight: 0,
                active: 1,
                inactive: 0,
                persistent: 0,
                traffic: Some(Traffic::default()),
                drain,
            };
            let view = leaving(&real, None);
            (view.state, view.drain_seconds_left)
        };
        let left = Duration::from_secs(42);
        assert_eq!(
            shown(DrainState::UntilDeadline(left)),
            ("draining".to_owned(), Some(42))
        );
        assert_eq!(shown(DrainState::UntilIdle), ("waiting".to_owned(), None));
        assert_eq!(shown(DrainState::None), ("unexpected".to_owned(), None));
    }
}
