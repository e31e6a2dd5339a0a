//! Trouble that lasts is told once, and its end.

use std::time::Duration;

use cluster::api::ApiError;
use tokio::time::Instant;

/// After so long without a failure the same cause is told again: longer than the longest wait before a request is tried
/// again, which is the 300 s that a server may ask for.
const QUIET: Duration = Duration::from_secs(360);

/// One thing that may go wrong again and again.
#[derive(Debug, Default)]
pub(crate) struct Trouble(Option<Last>);

/// What went wrong last, and when.
#[derive(Debug)]
struct Last {
    words: String,
    at: Instant,
}

impl Trouble {
    /// It went wrong. A line for each cause, none for a repetition.
    pub(crate) fn lasts(&mut self, error: &ApiError) {
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

    /// It went well.
    pub(crate) fn is_over(&mut self) {
        if let Some(Last { words, .. }) = self.0.take() {
            tracing::info!("no longer: {words}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once_until_it_is_over_or_another_comes() {
        let (mut trouble, now) = (Trouble::default(), Instant::now());
        let told: Vec<bool> = ["refused", "refused", "forbidden", "refused"]
            .into_iter()
            .map(|words| trouble.is_news(words, now))
            .collect();
        assert_eq!(told, [true, false, true, true]);
        trouble.is_over();
        assert!(trouble.is_news("refused", now));
    }

    /// A collection in which nothing changes tells nothing between two outages.
    #[test]
    fn a_cause_that_comes_back_after_a_long_quiet_is_told_again() {
        let (mut trouble, now) = (Trouble::default(), Instant::now());
        assert!(trouble.is_news("refused", now));
        assert!(!trouble.is_news("refused", now + Duration::from_secs(300)));
        assert!(!trouble.is_news("refused", now + Duration::from_secs(600)));
        assert!(trouble.is_news("refused", now + Duration::from_secs(960)));
    }
}
