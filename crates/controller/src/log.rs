//! Log lines, as the agent writes them: to standard error, one for each change of substance.

use std::io::IsTerminal as _;

use cluster::text::LogWriter;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::LogFormat;

/// The library below logs every failed request, and the error it returns is told in our own words.
const CLIENT: &str = "kube_client";

/// Starts logging for the whole process. `RUST_LOG` is a level, or pairs of module and level.
pub fn start(format: LogFormat) {
    let wanted = std::env::var("RUST_LOG").ok();
    let read = wanted.as_deref().map(str::parse::<Targets>);
    let filter = match &read {
        Some(Ok(filter)) => filter.clone(),
        Some(Err(_)) | None => Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target(CLIENT, LevelFilter::OFF),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(|| LogWriter(std::io::stderr()));
    let lines = match format {
        LogFormat::Text => lines
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // A second logger is refused; the first goes on.
    let _started = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init();
    if let Some(Err(_)) = read {
        tracing::warn!(
            "RUST_LOG has a word that is no level and is left out: write a level, or pairs of module and level, as in \
             `info,controller=debug`"
        );
    }
}
