//! Counts the requests of a client.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Answers by name, failures by cause.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestCounts {
    pub requests: u64,
    /// Requests without a complete answer in time.
    pub failed: u64,
    pub answers: BTreeMap<String, u64>,
    /// Failed requests by cause.
    pub errors: BTreeMap<String, u64>,
    pub seconds: f64,
    /// Duration of the slowest request, in milliseconds.
    pub slowest_milliseconds: u64,
}

impl RequestCounts {
    pub fn record(&mut self, answer: std::io::Result<String>, took: Duration) {
        self.requests += 1;
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.slowest_milliseconds = self.slowest_milliseconds.max(milliseconds);
        match answer {
            Ok(name) => *self.answers.entry(name).or_default() += 1,
            Err(error) => {
                self.failed += 1;
                *self.errors.entry(error.to_string()).or_default() += 1;
            }
        }
    }
}

impl RequestCounts {
    pub fn hits(&self, name: &str) -> u64 {
        self.answers.get(name).copied().unwrap_or(0)
    }

    /// Adds the counts of another client. Does not add the times: clients run concurrently.
    pub fn add(&mut self, other: Self) {
        let Self {
            requests,
            failed,
            answers,
            errors,
            seconds: _,
            slowest_milliseconds,
        } = other;
        self.requests += requests;
        self.failed += failed;
        self.slowest_milliseconds = self.slowest_milliseconds.max(slowest_milliseconds);
        for (name, count) in answers {
            *self.answers.entry(name).or_default() += count;
        }
        for (cause, count) in errors {
            *self.errors.entry(cause).or_default() += count;
        }
    }
}

impl fmt::Display for RequestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.answers {
            writeln!(f, "{count:6} {name}")?;
        }
        for (cause, count) in &self.errors {
            writeln!(f, "{count:6} failed: {cause}")?;
        }
        writeln!(
            f,
            "{} requests, {} failed, {:.2} s, slowest {} ms",
            self.requests, self.failed, self.seconds, self.slowest_milliseconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_failures_are_counted_apart() {
        let mut tally = RequestCounts::default();
        tally.record(Ok("a".to_owned()), Duration::from_millis(2));
        tally.record(Ok("a".to_owned()), Duration::from_millis(9));
        tally.record(Err(std::io::Error::other("refused")), Duration::ZERO);
        assert_eq!((tally.requests, tally.failed), (3, 1));
        assert_eq!(tally.answers["a"], 2);
        assert_eq!(tally.errors["refused"], 1);
        assert_eq!(tally.slowest_milliseconds, 9);
    }
}
