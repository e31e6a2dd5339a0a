//! The two text formats of metrics that a scraper may request.
//!
//! The registry writes `OpenMetrics`, where a counter's `# TYPE` line names the family without `_total`. The older
//! Prometheus format uses the sample's own name there, and treats a counter with another name as untyped.

use std::fmt::Write as _;

/// Content type of [`Format::OpenMetrics`].
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Content type of [`Format::Prometheus`].
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `OpenMetrics` 1.0, if the scraper accepts it.
    OpenMetrics,
    /// Prometheus text 0.0.4, the default.
    Prometheus,
}

impl Format {
    /// Chooses the format from an `Accept` header.
    pub fn accepted(accept: Option<&str>) -> Self {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::Prometheus,
        }
    }

    /// The `Content-Type` of the response.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => OPEN_METRICS,
            Self::Prometheus => PROMETHEUS,
        }
    }

    /// Converts an `OpenMetrics` exposition to this format.
    pub fn convert(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::Prometheus => prometheus(&open_metrics),
        }
    }
}

fn prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help: Option<(&str, &str)> = None;
    for line in open_metrics.lines() {
        // Writing to a String cannot fail.
        let _written = match comment(line) {
            Some(("HELP", name, rest)) => {
                help = Some((name, rest));
                Ok(())
            }
            Some(("TYPE", name, kind)) => {
                let suffix = if kind == "counter" { "_total" } else { "" };
                let words = help.take().map_or("", |(_, words)| words);
                write!(
                    text,
                    "# HELP {name}{suffix} {words}\n# TYPE {name}{suffix} {kind}\n"
                )
            }
            Some(_) => Ok(()),
            None if line == "# EOF" => Ok(()),
            None => writeln!(text, "{line}"),
        };
    }
    text
}

/// Splits a comment line, `# WORD name rest`.
fn comment(line: &str) -> Option<(&str, &str, &str)> {
    let mut parts = line.strip_prefix("# ")?.splitn(3, ' ');
    Some((
        parts.next()?,
        parts.next()?,
        parts.next().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_without_openmetrics_gets_counters_named_with_total() {
        let open = "# HELP a_seconds Age.\n# TYPE a_seconds gauge\na_seconds 1.5\n\
                    # HELP b Writes.\n# TYPE b counter\nb_total{c=\"x\"} 2\n# EOF\n";
        let plain = "# HELP a_seconds Age.\n# TYPE a_seconds gauge\na_seconds 1.5\n\
                     # HELP b_total Writes.\n# TYPE b_total counter\nb_total{c=\"x\"} 2\n";
        assert_eq!(Format::accepted(None).convert(open.to_owned()), plain);
        let asked = Format::accepted(Some("application/openmetrics-text;version=1.0.0,*/*;q=0.1"));
        assert_eq!(asked.convert(open.to_owned()), open);
        assert_eq!(Format::accepted(Some("text/plain")), Format::Prometheus);
    }
}
