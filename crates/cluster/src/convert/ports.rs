//! Converts ports and protocols, which Services and slices write alike.

use std::num::NonZeroU16;

use topology_core::model::Protocol;

use super::report::Report;
use object_tree::Field;

/// The protocol of a port entry, by default TCP. `None`, and a warning, if it is not supported.
pub(crate) fn protocol(entry: &Field<'_>, report: &mut Report) -> Option<Protocol> {
    if !entry.is_map(report) {
        return None;
    }
    let field = entry.get("protocol");
    match field.text(report).unwrap_or("TCP") {
        "TCP" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        "SCTP" => Some(Protocol::Sctp),
        other => {
            report.warn(
                &field,
                format!("`{other}` is not a protocol; the port is skipped"),
                "use TCP, UDP or SCTP",
            );
            None
        }
    }
}

/// A port number, which may be quoted.
pub(crate) fn number(field: &Field<'_>, report: &mut Report) -> Option<NonZeroU16> {
    field.parse(
        "a port number; the port is skipped",
        "use 1 to 65535",
        report,
    )
}
