//! Counts the tests that a runner's output reports.

use testbed::TestCounts;

/// Adds up the lines of a runner: `test result:` lines of libtest, and lines that are nothing but
/// `N passed, N failed` or `N of N passed`. An indented line is a quotation and does not count.
///
/// An ignored test counts as failed: a test that does not run proves nothing. A runner that exits with failure without
/// naming a failed test counts as one failure (it did not build, or crashed), and so does one that ran no test.
pub(super) fn count(output: &str, success: bool) -> TestCounts {
    let mut total = TestCounts::default();
    for line in output.lines().map(str::trim_end) {
        if let Some(counts) = libtest(line).or_else(|| closing(line)) {
            total.add(counts);
        }
    }
    if (!success && total.failed == 0) || total == TestCounts::default() {
        total.failed += 1;
    }
    total
}

/// `test result: ok. 38 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.02s`
fn libtest(line: &str) -> Option<TestCounts> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |what: &str| {
        let mut pieces = counts.split("; ");
        pieces.find_map(|piece| piece.strip_suffix(what)?.trim().parse::<usize>().ok())
    };
    Some(TestCounts {
        passed: number("passed")?,
        failed: number("failed")? + number("ignored")?,
    })
}

/// `12 passed, 0 failed`, or `12 of 12 passed`
fn closing(line: &str) -> Option<TestCounts> {
    if let Some((passed, all)) = line
        .strip_suffix(" passed")
        .and_then(|line| line.split_once(" of "))
    {
        let passed = passed.parse().ok()?;
        let failed = all.parse::<usize>().ok()?.checked_sub(passed)?;
        return Some(TestCounts { passed, failed });
    }
    let (passed, failed) = line.split_once(" passed, ")?;
    Some(TestCounts {
        passed: passed.parse().ok()?,
        failed: failed.strip_suffix(" failed")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: usize, failed: usize) -> TestCounts {
        TestCounts { passed, failed }
    }

    #[test]
    fn libtest_results_add_up_over_several_binaries() {
        let output = "running 2 tests\n\
            test result: ok. 38 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
        assert_eq!(count(output, false), counts(41, 2));
    }

    #[test]
    fn an_ignored_test_is_a_failure() {
        let output = "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        assert_eq!(count(output, true), counts(4, 1));
    }

    #[test]
    fn a_closing_line_counts_only_on_its_own() {
        assert_eq!(count("12 passed, 1 failed", false), counts(12, 1));
        let quoted = "    5 passed, 5 failed\n12 passed, 1 failed";
        assert_eq!(count(quoted, false), counts(12, 1));
        assert_eq!(count("so far 12 passed, 0 failed here", true), counts(0, 1));
        assert_eq!(count("11 of 12 passed", false), counts(11, 1));
        assert_eq!(count("so far 12 of 12 passed", true), counts(0, 1));
    }

    #[test]
    fn a_runner_that_breaks_or_runs_nothing_is_one_failure() {
        assert_eq!(count("error: could not compile", false), counts(0, 1));
        assert_eq!(count("", true), counts(0, 1));
        let ran = "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        assert_eq!(count(ran, false), counts(5, 1));
    }

    #[test]
    fn the_closing_line_is_exact() {
        assert_eq!(counts(312, 0).to_string(), "312 passed, 0 failed");
    }
}
