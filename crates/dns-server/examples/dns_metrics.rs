//! Prints every metric of the DNS server in Prometheus' text format; `cargo xtask codegen` runs it for `docs/metrics.md`.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use dns_server::DnsMetrics;
use telemetry::Format;

fn main() -> Result<(), std::fmt::Error> {
    let exposition = DnsMetrics::sample().text()?;
    print!("{}", Format::Prometheus.convert(exposition));
    Ok(())
}
