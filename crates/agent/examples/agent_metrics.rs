//! Prints every metric of the agent in Prometheus' text format; `cargo xtask codegen` runs it for `docs/metrics.md`.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use agent::metrics::health_checks::HealthCheckMetrics;
use agent::metrics::sample::eventful;
use telemetry::Format;

fn main() -> Result<(), std::fmt::Error> {
    let (metrics, figures) = eventful();
    let checks = HealthCheckMetrics::new();
    checks.succeeded();
    for exposition in [metrics.expose(&figures)?, checks.expose()?] {
        print!("{}", Format::Prometheus.convert(exposition));
    }
    Ok(())
}
