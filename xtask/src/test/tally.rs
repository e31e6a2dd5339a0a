//! Counting: what a runner's output says passed and failed.

use std::fmt;

/// How many tests passed and failed. Its text is the closing line of `cargo xtask test`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
}

impl Tally {
    /// A gate: one test.
    pub(super) fn gate(success: bool) -> Self {
        Self {
            passed: usize::from(success),
            failed: usize::from(!success),
        }
    }

    /// What the lines of a runner add up to: `test result:` lines of libtest, and lines that are
    /// nothing but `N passed, N failed`. An indented line is a quotation and does not count.
    ///
    /// An ignored test counts as failed: a test that does not run proves nothing. A runner that
    /// exits with failure without naming a failed test counts as one failure (it did not build, or crashed),
    /// and so does one that ran no test at all.
    pub(super) fn of_runner(output: &str, success: bool) -> Self {
        let mut total = Self::default();
        for line in output.lines().map(str::trim_end) {
            if let Some(tally) = libtest(line).or_else(|| closing(line)) {
                total.add(tally);
            }
        }
        if (!success && total.failed == 0) || total == Self::default() {
            total.failed += 1;
        }
        total
    }

    /// Adds another count to this one.
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// `test result: ok. 38 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.02s`
fn libtest(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |what: &str| {
        let mut pieces = counts.split("; ");
        pieces.find_map(|piece| piece.strip_suffix(what)?.trim().parse::<usize>().ok())
    };
    Some(Tally {
        passed: count("passed")?,
        failed: count("failed")? + count("ignored")?,
    })
}

/// `12 passed, 0 failed`
fn closing(line: &str) -> Option<Tally> {
    let (passed, failed) = line.split_once(" passed, ")?;
    Some(Tally {
        passed: passed.parse().ok()?,
        failed: failed.strip_suffix(" failed")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: usize, failed: usize) -> Tally {
        Tally { passed, failed }
    }

    #[test]
    fn libtest_results_add_up_over_several_binaries() {
        let output = "running 2 tests\n\
            test result: ok. 38 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
        assert_eq!(Tally::of_runner(output, false), tally(41, 2));
    }

    #[test]
    fn an_ignored_test_is_a_failure() {
        let output = "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        assert_eq!(Tally::of_runner(output, true), tally(4, 1));
    }

    #[test]
    fn a_closing_line_counts_only_when_it_stands_alone() {
        assert_eq!(Tally::of_runner("12 passed, 1 failed", false), tally(12, 1));
        let quoted = "    5 passed, 5 failed\n12 passed, 1 failed";
        assert_eq!(Tally::of_runner(quoted, false), tally(12, 1));
        assert_eq!(
            Tally::of_runner("so far 12 passed, 0 failed here", true),
            tally(0, 1)
        );
    }

    #[test]
    fn a_runner_that_breaks_or_runs_nothing_is_one_failure() {
        assert_eq!(
            Tally::of_runner("error: could not compile", false),
            tally(0, 1)
        );
        assert_eq!(Tally::of_runner("", true), tally(0, 1));
        let ran = "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        assert_eq!(Tally::of_runner(ran, false), tally(5, 1));
    }

    #[test]
    fn the_closing_line_is_exact() {
        assert_eq!(tally(312, 0).to_string(), "312 passed, 0 failed");
    }
}
