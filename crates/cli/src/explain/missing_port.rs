//! The failure of a request for a port that a Service does not have.

use topology_core::model::ObjectName;

use crate::exit::Failure;

/// A port in a message: `http (80)`, or one of both if the other is missing.
pub(super) fn port_text(name: &str, number: Option<u16>) -> String {
    match (name, number) {
        (name, None) => name.to_owned(),
        ("", Some(number)) => number.to_string(),
        (name, Some(number)) => format!("{name} ({number})"),
    }
}

/// The Service has only `ports`. `none` stands for an empty list.
pub(super) fn missing_port(
    service: &ObjectName,
    wanted: &str,
    ports: &[String],
    none: &str,
) -> Failure {
    let ports = if ports.is_empty() {
        none.to_owned()
    } else {
        ports.join(", ")
    };
    Failure::input(format_args!(
        "Service {service} has no port {wanted}; it has {ports}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_a_number_or_a_name_is_named_by_the_other() {
        for (name, number, expected) in [
            ("http", Some(80), "http (80)"),
            ("", Some(80), "80"),
            ("http", None, "http"),
        ] {
            assert_eq!(port_text(name, number), expected);
        }
    }

    #[test]
    fn the_ports_of_the_service_are_listed() {
        let service = ObjectName::new("shop", "cart");
        let message = |ports: &[String]| missing_port(&service, "x", ports, "no port").message();
        let both = ["http (80)".to_owned(), "53".to_owned()];
        assert_eq!(
            message(&both),
            "Service shop/cart has no port x; it has http (80), 53"
        );
        assert_eq!(
            message(&[]),
            "Service shop/cart has no port x; it has no port"
        );
    }
}
