//! Log lines: to standard error, one for each change of substance, none for nothing.

use std::io::IsTerminal as _;

use cluster::text::LogWriter;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::LogFormat;

/// The library that talks to the API server: it logs every failed request, and the error it returns is told in our own
/// words.
const CLIENT: &str = "kube_client";

/// Starts logging for the whole process. `RUST_LOG` wins over `verbose`; a second call does nothing.
///
/// `RUST_LOG` is a level, or pairs of module and level: `warn`, `info,agent::reconcile=debug`.
/// `verbose`: 0 changes and trouble, 1 every kernel write too, 2 and more everything.
pub fn start(format: LogFormat, verbose: u8) {
    let wanted = std::env::var("RUST_LOG").ok();
    let read = wanted.as_deref().map(str::parse::<Targets>);
    let filter = match &read {
        Some(Ok(filter)) => filter.clone(),
        Some(Err(_)) | None => verbosity(verbose),
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
             `info,agent=debug`"
        );
    }
}

fn verbosity(verbose: u8) -> Targets {
    let everywhere = Targets::new();
    match verbose {
        0 => everywhere
            .with_default(LevelFilter::INFO)
            .with_target(CLIENT, LevelFilter::OFF),
        1 => everywhere
            .with_default(LevelFilter::INFO)
            .with_target(CLIENT, LevelFilter::OFF)
            .with_target("agent", LevelFilter::DEBUG)
            .with_target("cluster", LevelFilter::DEBUG),
        _ => everywhere.with_default(LevelFilter::TRACE),
    }
}
