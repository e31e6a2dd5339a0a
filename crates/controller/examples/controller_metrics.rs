//! Prints every metric of the controller in Prometheus' text format; `cargo xtask codegen` runs it for `docs/metrics.md`.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use controller::metrics::Metrics;
use telemetry::Format;

fn main() {
    print!("{}", Format::Prometheus.convert(Metrics::sample().text()));
}
