//! Log lines: to standard error, one for each change of substance, none for nothing.

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
             `info,agent=debug`"
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What is written.
    #[derive(Debug, Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What tenants choose reaches the log as a message, as a field, and in an error.
    #[test]
    fn what_commands_a_terminal_or_forges_a_line_is_shown_in_the_log_and_not_done() {
        let attack = "a\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[8m\n2026-11-21T20:00:00Z ERROR forged\r\u{202e}\u{9b}2J";
        for (format, colours) in [
            (LogFormat::Text, Colours::Kept),
            (LogFormat::Text, Colours::None),
            (LogFormat::Json, Colours::None),
        ] {
            let memory = Memory::default();
            let to = memory.clone();
            let subscriber =
                tracing_subscriber::registry().with(lines(format, colours, move || to.clone()));
            tracing::subscriber::with_default(subscriber, || {
                let error = std::io::Error::other(attack);
                tracing::warn!(zone = %attack, name = attack, debug = ?error, %error, "{attack}");
            });
            let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
            let line = text.strip_suffix('\n').unwrap();
            let shown = line.replace("\u{1b}[0m", "").replace("\u{1b}[2m", "");
            let shown = shown.replace("\u{1b}[3m", "").replace("\u{1b}[33m", "");
            assert!(!shown.contains(cluster::text::is_hidden), "{shown:?}");
            assert_eq!(shown.matches("forged").count(), 5, "{shown:?}");
            let has_colours = colours == Colours::Kept;
            assert_eq!(line.contains("\u{1b}[33m"), has_colours, "{line:?}");
        }
    }
}
