//! Writes log lines to standard error. Values from objects cannot forge a line or send terminal sequences.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use clap::ValueEnum;
use safe_text::escape_json;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The log targets of libraries that log every request: the API client the failed ones, which our own log lines report,
/// too, and the DNS server all of them.
const QUIET: [&str; 3] = ["kube_client", "hickory_net", "hickory_server"];

/// Format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One readable line for each event.
    #[default]
    Text,
    /// One JSON object for each event.
    Json,
}

/// What to log if `RUST_LOG` is not set.
#[derive(Debug, Clone, Copy)]
pub struct Verbosity {
    /// 0 logs changes and errors, 1 also every kernel write, 2 and more everything.
    pub level: u8,
    /// Crates whose debug lines level 1 shows. The first one is the example in messages.
    pub crates: &'static [&'static str],
}

/// Starts logging for the whole process. `RUST_LOG` overrides `verbosity`. A second call has no effect.
///
/// `RUST_LOG` is a level, or a list of module and level pairs: `warn`, `info,agent::reconcile=debug`.
pub fn start(format: LogFormat, verbosity: Verbosity) {
    let given = std::env::var("RUST_LOG").ok();
    let parsed = given.as_deref().map(str::parse::<Targets>);
    let filter = match &parsed {
        Some(Ok(filter)) => filter.clone(),
        Some(Err(_)) | None => verbosity.targets(),
    };
    let colours = if format == LogFormat::Text && io::stderr().is_terminal() {
        Colours::Kept
    } else {
        Colours::None
    };
    // `try_init` fails if a logger is already set; that logger stays in use.
    let _started = tracing_subscriber::registry()
        .with(filter)
        .with(lines(format, colours, io::stderr))
        .try_init();
    if let Some(Err(_)) = parsed {
        let example = verbosity.crates.first().copied().unwrap_or_default();
        tracing::warn!(
            "RUST_LOG has a word that is no level and is left out: write a level, or pairs of module and level, as in \
             `info,{example}=debug`"
        );
    }
}

/// Returns the layer that writes lines to the writer that `to` opens.
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

impl Verbosity {
    fn targets(self) -> Targets {
        let quiet = Targets::new()
            .with_default(LevelFilter::INFO)
            .with_targets(QUIET.map(|target| (target, LevelFilter::OFF)));
        match self.level {
            0 => quiet,
            1 => {
                let debug = self.crates.iter().map(|name| (*name, LevelFilter::DEBUG));
                quiet.with_targets(debug)
            }
            _ => Targets::new().with_default(LevelFilter::TRACE),
        }
    }
}

/// Which escape sequences of the logger itself may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colours {
    /// The log goes to a terminal, so the logger's own colour sequences pass.
    Kept,
    /// The logger writes no colours.
    None,
}

/// The sequences that `tracing-subscriber` writes after ESC for styles and levels. None of them hides text.
const COLOURS: [&str; 9] = [
    "[0m", "[1m", "[2m", "[3m", "[31m", "[32m", "[33m", "[34m", "[35m",
];

/// Writes log lines, one per call of `write`. Escapes line breaks inside a line and all other hidden characters.
///
/// `tracing-subscriber` itself escapes ESC in messages, but not in fields (`zone = %zone`; version 0.3.23).
#[derive(Debug)]
struct LogWriter<W> {
    to: W,
    /// Whether ESC may start a colour sequence.
    colours: Colours,
}

impl<W: Write> Write for LogWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let end = text.get(line.len()..).unwrap_or_default();
        let line = match self.colours {
            Colours::Kept => Cow::Owned(coloured(line)),
            Colours::None => escape_json(line, |_| false),
        };
        self.to.write_all(line.as_bytes())?;
        self.to.write_all(end.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Escapes ESC unless a colour sequence follows, and every other hidden character.
fn coloured(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut safe = escape_json(parts.next().unwrap_or_default(), |_| false).into_owned();
    for part in parts {
        let is_colour = COLOURS.iter().any(|colour| part.starts_with(colour));
        safe.push_str(if is_colour { "\u{1b}" } else { "\\u001b" });
        safe.push_str(&escape_json(part, |_| false));
    }
    safe
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Collects what the logger writes.
    #[derive(Debug, Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Values that a tenant chooses reach the log in a message, in a field, and in an error.
    #[test]
    fn what_commands_a_terminal_or_forges_a_line_is_shown_in_the_log_and_not_done() {
        let attack = "a\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[8m\n2026-11-21T20:00:00Z ERROR forged\r\u{202e}\u{9b}2J";
        for (format, colours) in [
            (LogFormat::Text, Colours::Kept),
            (LogFormat::Text, Colours::None),
            (LogFormat::Json, Colours::None),
        ] {
            let memory = SharedBuffer::default();
            let to = memory.clone();
            let subscriber =
                tracing_subscriber::registry().with(lines(format, colours, move || to.clone()));
            tracing::subscriber::with_default(subscriber, || {
                let error = io::Error::other(attack);
                tracing::warn!(zone = %attack, name = attack, debug = ?error, %error, "{attack}");
            });
            let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
            let line = text.strip_suffix('\n').unwrap();
            let shown = line.replace("\u{1b}[0m", "").replace("\u{1b}[2m", "");
            let shown = shown.replace("\u{1b}[3m", "").replace("\u{1b}[33m", "");
            assert!(!shown.contains(safe_text::is_hidden), "{shown:?}");
            assert_eq!(shown.matches("forged").count(), 5, "{shown:?}");
            let has_colours = colours == Colours::Kept;
            assert_eq!(line.contains("\u{1b}[33m"), has_colours, "{line:?}");
        }
    }

    #[test]
    fn a_log_line_stays_one_line() {
        let line = "\u{1b}[32m INFO\u{1b}[0m zone=\"a\nWARN forged\u{2028}\u{202e}\u{1b}[2J\u{1b}[8m\u{1b}\"\n";
        for (colours, escape) in [(Colours::Kept, "\u{1b}"), (Colours::None, "\\u001b")] {
            let mut to = Vec::new();
            let mut writer = LogWriter {
                to: &mut to,
                colours,
            };
            writer.write_all(line.as_bytes()).unwrap();
            let expected = format!(
                "{escape}[32m INFO{escape}[0m zone=\"a\\u000aWARN forged\\u2028\\u202e\\u001b[2J\\u001b[8m\\u001b\"\n"
            );
            assert_eq!(String::from_utf8(to).unwrap(), expected);
        }
    }
}
