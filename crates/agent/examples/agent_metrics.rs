//! Prints every metric of the agent in Prometheus' text format; `cargo xtask codegen` runs it for `docs/metrics.md`.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use agent::metrics::sample::eventful;
use telemetry::Format;

fn main() -> Result<(), std::fmt::Error> {
    let (metrics, figures) = eventful();
    print!("{}", Format::Prometheus.convert(metrics.expose(&figures)?));
    Ok(())
}
