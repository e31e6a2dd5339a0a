//! Log lines, as the agent writes them: to standard error, one for each change of substance.

use std::io::{IsTerminal as _, Write};

use cluster::text::{Colours, LogWriter};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
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
    let colours = if format == LogFormat::Text && std::io::stderr().is_terminal() {
        Colours::Kept
    } else {
        Colours::None
    };
    // A second logger is refused; the first goes on.
    let _started = tracing_subscriber::registry()
        .with(filter)
        .with(lines(format, colours, std::io::stderr))
        .try_init();
    if let Some(Err(_)) = read {
        tracing::warn!(
            "RUST_LOG has a word that is no level and is left out: write a level, or pairs of module and level, as in \
             `info,controller=debug`"
        );
    }
}

/// The layer that writes lines to where `to` says.
fn lines<S, W>(
    format: LogFormat,
    colours: Colours,
    to: impl Fn() -> W + Send + Sync + 'static,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    let writer = move || LogWriter { to: to(), colours };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        LogFormat::Text => lines
            .with_target(false)
            .with_ansi(colours == Colours::Kept)
            .boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}
