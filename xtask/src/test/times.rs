//! Reads the times of tests, and formats the table at the end of a run.

/// Number of slowest tests in the table.
const SLOWEST: usize = 50;

/// The time of a step or a test.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timed {
    /// The step's name, or those of step and test.
    pub(super) name: String,
    pub(super) seconds: f64,
}

/// Reads the times of tests from the output of the step `step`.
///
/// Two kinds of lines have times: those of libtest with `--report-time`, and those of our own suites
/// (`6.12: ok agent::wrr (3.21 s)`). The binary's name is in cargo's `Running` line before its tests.
pub(super) fn of_tests(step: &str, output: &str) -> Vec<Timed> {
    let mut binary = String::new();
    let mut begun = None;
    let mut tests = Vec::new();
    for line in output.lines().map(str::trim_end) {
        if let Some(running) = line.trim_start().strip_prefix("Running ") {
            binary = binary_of(running);
        }
        if let Some((test, _)) = line
            .strip_prefix("test ")
            .and_then(|l| l.split_once(" ... "))
        {
            begun = Some(test);
        }
        let found = match (own(line), begun.zip(libtest(line))) {
            (Some(own), _) => Some(own),
            (None, Some((test, seconds))) => {
                begun = None;
                Some((format!("{binary}{test}"), seconds))
            }
            (None, None) => None,
        };
        tests.extend(found.map(|(name, seconds)| Timed {
            name: format!("{step}: {name}"),
            seconds,
        }));
    }
    tests
}

/// Parses `unittests src/lib.rs (target/debug/deps/agent-0123456789abcdef)` as `agent::`.
fn binary_of(running: &str) -> String {
    let file = running.rsplit('/').next().unwrap_or_default();
    let name = file.rsplit_once('-').map_or(file, |(name, _hash)| name);
    format!("{name}::")
}

/// Parses the seconds at the end of libtest's `ok <0.123s>` or `FAILED <0.123s>`.
///
/// Output of the test may be between its name and the result.
fn libtest(line: &str) -> Option<f64> {
    let (before, time) = line.strip_suffix("s>")?.rsplit_once('<')?;
    let verdict = before.trim_end();
    (verdict.ends_with("ok") || verdict.ends_with("FAILED"))
        .then(|| time.parse().ok())
        .flatten()
}

/// Parses `6.12: ok agent::wrr (3.21 s)` as name, with the kernel, and seconds.
fn own(line: &str) -> Option<(String, f64)> {
    let (kernel, rest) = line.split_once(": ")?;
    let test = ["ok ", "FAILED ", "FAILED (time limit) "]
        .iter()
        .rev()
        .find_map(|verdict| rest.strip_prefix(verdict))?;
    let (name, time) = test.strip_suffix(" s)")?.rsplit_once(" (")?;
    Some((format!("{name} on {kernel}"), time.parse().ok()?))
}

/// Formats the table: every step in order, then the slowest tests.
pub(super) fn table(steps: &[Timed], mut tests: Vec<Timed>) -> String {
    let total: f64 = tests.iter().map(|test| test.seconds).sum();
    let count = tests.len();
    tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    tests.truncate(SLOWEST);
    let steps = steps.iter().map(row);
    let head = "test: how long the steps took, in the order they ended\n".to_owned();
    let slowest = (count > 0).then(|| {
        format!(
            "test: the {} slowest of {count} tests with a time ({total:.0} s together)\n",
            tests.len()
        )
    });
    let rows = [head].into_iter().chain(steps).chain(slowest);
    rows.chain(tests.iter().map(row)).collect()
}

fn row(timed: &Timed) -> String {
    format!("  {:8.1} s  {}\n", timed.seconds, timed.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(name: &str, seconds: f64) -> Timed {
        Timed {
            name: name.to_owned(),
            seconds,
        }
    }

    #[test]
    fn the_times_of_libtest_are_read_with_the_binary_they_are_of() {
        let output = "     Running tests/cli.rs (target/guest/deps/cli-0123abcd)\n\n\
            running 2 tests\n\
            test help::is_short ... ok <0.012s>\n\
            test errors ... FAILED <1.500s>\n";
        let wanted = [
            timed("tests: cli::help::is_short", 0.012),
            timed("tests: cli::errors", 1.5),
        ];
        assert_eq!(of_tests("tests", output), wanted);
    }

    #[test]
    fn the_output_of_a_test_does_not_hide_its_time() {
        let output =
            "test alone::bad_days ...     scene: one: 12 s\n    scene: two: 3 s\nok <15.250s>\n";
        assert_eq!(
            of_tests("lab", output),
            [timed("lab: alone::bad_days", 15.25)]
        );
    }

    #[test]
    fn the_times_of_kernel_tests_are_read_with_their_kernel() {
        let output = "6.12: ok agent::wrr (3.21 s)\n\
            sid: FAILED (time limit) agent::drain (240.00 s)\n\
            6.12: 1 passed, 0 failed in 4.2 s with its boot\n";
        let wanted = [
            timed("kernels: agent::wrr on 6.12", 3.21),
            timed("kernels: agent::drain on sid", 240.0),
        ];
        assert_eq!(of_tests("kernels", output), wanted);
    }

    #[test]
    fn the_slowest_tests_come_first_and_no_more_than_fifty() {
        let tests: Vec<Timed> = (0..60_u8)
            .map(|n| timed(&format!("t{n}"), f64::from(n)))
            .collect();
        let table = table(&[timed("lints", 98.0)], tests);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[1], "      98.0 s  lints");
        assert_eq!(
            lines[2],
            "test: the 50 slowest of 60 tests with a time (1770 s together)"
        );
        assert_eq!(lines[3], "      59.0 s  t59");
        assert_eq!(lines.len(), 53);
    }
}
