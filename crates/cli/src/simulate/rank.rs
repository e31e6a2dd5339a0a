//! Sorts and names the Services in the output.

use agent_api::describe::DNS;
use agent_api::numbers::many;
use topology_core::model::{Family, FrontendKind};

use super::figures::Figures;
use super::view::{FlowView, LoadView, StateView};
use crate::dns_answers::record_type;

/// Smaller differences are due to rounding.
const ROUNDING: f64 = 1e-9;

/// Whether the change affects the Service.
pub(crate) fn is_changed(flow: &FlowView) -> bool {
    let differ = |left: f64, right: f64| (left - right).abs() > ROUNDING;
    let Some(changed) = &flow.states.changed else {
        return false;
    };
    let cells = |state: &StateView| state.flows.iter().flatten().copied().collect::<Vec<_>>();
    let (before, after) = (cells(&flow.states.as_is), cells(changed));
    let refused = differ(flow.states.as_is.figures.refused, changed.figures.refused);
    let moves = before
        .iter()
        .zip(&after)
        .any(|(left, right)| differ(*left, *right));
    let load = |one: &LoadView| match (one.as_is, one.changed) {
        (Some(before), Some(after)) => differ(before, after),
        (before, after) => before != after,
    };
    flow.changed_policy.is_some() || refused || moves || flow.endpoints.iter().any(load)
}

/// Changed Services first, then those that refuse clients, then by uneven load, then by name.
pub(crate) fn by_unevenness(flows: &[FlowView]) -> Vec<&FlowView> {
    let mut sorted: Vec<&FlowView> = flows.iter().collect();
    let rank = |flow: &FlowView| {
        let figures = last(flow);
        (
            f64::from(u8::from(is_changed(flow))),
            figures.refused,
            figures.load_max.unwrap_or_default(),
        )
    };
    sorted.sort_by(|left, right| {
        let (left_rank, right_rank) = (rank(left), rank(right));
        let worst_first = right_rank
            .0
            .total_cmp(&left_rank.0)
            .then(right_rank.1.total_cmp(&left_rank.1))
            .then(right_rank.2.total_cmp(&left_rank.2));
        worst_first.then_with(|| name(left).cmp(&name(right)))
    });
    sorted
}

/// The figures after the change, otherwise the present ones.
pub(crate) fn last(flow: &FlowView) -> &Figures {
    &flow
        .states
        .changed
        .as_ref()
        .unwrap_or(&flow.states.as_is)
        .figures
}

/// `shop/cart:http`, the kind of address except for a cluster IP, and the family where it is not IPv4.
pub(crate) fn name(flow: &FlowView) -> String {
    let port = match flow.port_name.as_str() {
        "" => String::new(),
        port => format!(":{port}"),
    };
    let family = if flow.frontend.contains('[') || flow.frontend == record_type(Family::V6) {
        " IPv6"
    } else {
        ""
    };
    let kind = if flow.kind == FrontendKind::ClusterIp.as_str() {
        String::new()
    } else {
        format!(" {}", flow.kind)
    };
    format!("{}{port}{kind}{family}", flow.service)
}

/// `2 virtual servers, 1 DNS name`, without the kind that is not among them.
pub(crate) fn counted(flows: &[&FlowView]) -> String {
    let names = flows.iter().filter(|flow| flow.kind == DNS).count();
    let servers = many((flows.len() - names) as u64, "virtual server");
    let dns_names = many(names as u64, "DNS name");
    match names {
        0 => servers,
        all if all == flows.len() => dns_names,
        _ => format!("{servers}, {dns_names}"),
    }
}
