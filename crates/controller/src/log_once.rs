//! Logs a lasting failure once, and its recovery.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

/// Longer than the longest wait before a retry: an API server may request 300 s.
const QUIET: Duration = Duration::from_secs(360);

#[derive(Debug, Default)]
pub(crate) struct LogOnce(Option<Last>);

#[derive(Debug)]
struct Last {
    words: String,
    at: Instant,
}

impl LogOnce {
    /// Logs a failure, unless the last one had the same text.
    pub(crate) fn failed(&mut self, error: &impl Display) {
        let words = error.to_string();
        if self.is_news(&words, Instant::now()) {
            tracing::warn!("{words}");
        }
    }

    fn is_news(&mut self, words: &str, at: Instant) -> bool {
        let is_known = |last: &Last| last.words == words && at < last.at + QUIET;
        let is_news = !self.0.as_ref().is_some_and(is_known);
        let words = words.to_owned();
        self.0 = Some(Last { words, at });
        is_news
    }

    /// The failure that was logged and has not recovered.
    #[cfg(test)]
    pub(crate) fn lasting(&self) -> Option<&str> {
        self.0.as_ref().map(|last| &*last.words)
    }

    pub(crate) fn succeeded(&mut self) {
        if let Some(Last { words, .. }) = self.0.take() {
            tracing::info!("recovered: {words}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_once_until_it_recovers_or_changes() {
        let (mut log, now) = (LogOnce::default(), Instant::now());
        let logged: Vec<bool> = ["refused", "refused", "forbidden", "refused"]
            .into_iter()
            .map(|words| log.is_news(words, now))
            .collect();
        assert_eq!(logged, [true, false, true, true]);
        log.succeeded();
        assert!(log.is_news("refused", now));
    }

    /// A collection in which nothing changes reports no success between two outages.
    #[test]
    fn a_failure_that_occurs_again_after_the_quiet_time_is_logged_again() {
        let (mut log, now) = (LogOnce::default(), Instant::now());
        assert!(log.is_news("refused", now));
        assert!(!log.is_news("refused", now + Duration::from_secs(300)));
        assert!(!log.is_news("refused", now + Duration::from_secs(600)));
        assert!(log.is_news("refused", now + Duration::from_secs(960)));
    }
}
