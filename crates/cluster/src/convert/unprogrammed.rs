//! Lists the parts of a Service that this version does not program yet, so that output names them.

use topology_core::model::Unprogrammed;

use super::report::Report;
use crate::intern::Interner;
use object_tree::Field;

/// Returns the parts in the order of `kubectl explain`.
pub(crate) fn list(
    spec: &Field<'_>,
    external_ips: Vec<Unprogrammed>,
    interner: &mut Interner,
    report: &mut Report,
) -> Vec<Unprogrammed> {
    let mut parts = external_ips;
    let mut add = |field: &Field<'_>, reason: &str| {
        let field = interner.text(&field.to_string());
        parts.push(Unprogrammed {
            field,
            reason: interner.text(reason),
        });
    };
    let health = spec.get("healthCheckNodePort");
    if health.text(report).is_some_and(|port| port != "0") {
        add(&health, "the health check port is not served yet");
    }
    parts.shrink_to_fit();
    parts
}
