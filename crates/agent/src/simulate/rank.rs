//! Which Services are shown first, and what they are called.

use super::figures::Figures;
use super::view::FlowView;

/// Those whose clients are refused, then those whose endpoints are loaded most unevenly, then by name.
pub(crate) fn by_unevenness(flows: &[FlowView]) -> Vec<&FlowView> {
    let mut sorted: Vec<&FlowView> = flows.iter().collect();
    let rank = |flow: &FlowView| {
        let figures = last(flow);
        (figures.refused, figures.load_max.unwrap_or_default())
    };
    sorted.sort_by(|left, right| {
        let (left_rank, right_rank) = (rank(left), rank(right));
        let worst_first = right_rank
            .0
            .total_cmp(&left_rank.0)
            .then(right_rank.1.total_cmp(&left_rank.1));
        worst_first.then_with(|| name(left).cmp(&name(right)))
    });
    sorted
}

/// The figures of the last state: after the change if there is one.
pub(crate) fn last(flow: &FlowView) -> &Figures {
    &flow
        .states
        .changed
        .as_ref()
        .unwrap_or(&flow.states.as_is)
        .figures
}

/// `shop/cart:http`, and the family where it is not IPv4.
pub(crate) fn name(flow: &FlowView) -> String {
    let port = match flow.port_name.as_str() {
        "" => String::new(),
        port => format!(":{port}"),
    };
    let family = if flow.frontend.contains('[') {
        " IPv6"
    } else {
        ""
    };
    format!("{}{port}{family}", flow.service)
}
