//! Trouble that lasts is told once, and its end.

use cluster::api::ApiError;

/// One thing that may go wrong again and again.
#[derive(Debug, Default)]
pub(crate) struct Trouble(Option<String>);

impl Trouble {
    /// It went wrong. A line for each cause, none for a repetition.
    pub(crate) fn lasts(&mut self, error: &ApiError) {
        let words = error.to_string();
        if self.is_news(&words) {
            tracing::warn!("{words}");
        }
    }

    fn is_news(&mut self, words: &str) -> bool {
        let is_news = self.0.as_deref() != Some(words);
        if is_news {
            self.0 = Some(words.to_owned());
        }
        is_news
    }

    /// It went well.
    pub(crate) fn is_over(&mut self) {
        if let Some(words) = self.0.take() {
            tracing::info!("no longer: {words}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once_until_it_is_over_or_another_comes() {
        let mut trouble = Trouble::default();
        let told: Vec<bool> = ["refused", "refused", "forbidden", "refused"]
            .into_iter()
            .map(|words| trouble.is_news(words))
            .collect();
        assert_eq!(told, [true, false, true, true]);
        trouble.is_over();
        assert!(trouble.is_news("refused"));
    }
}
