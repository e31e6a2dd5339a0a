//! Log lines: to standard error, one for each change of substance, none for nothing.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::cli::LogFormat;

/// Starts logging for the whole process. `RUST_LOG` wins over `verbose`; a second call does nothing.
///
/// `verbose`: 0 changes and trouble, 1 every kernel write too, 2 and more everything.
pub fn start(format: LogFormat, verbose: u8) {
    let level = match verbose {
        0 => "info",
        1 => "info,agent=debug,cluster=debug,ipvs_netlink=info",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::NONE)
        .with_target(false);
    // A second logger is refused; the first goes on.
    let _started = match format {
        LogFormat::Text => subscriber
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
        LogFormat::Json => subscriber
            .json()
            .flatten_event(true)
            .with_target(true)
            .try_init(),
    };
}
