//! Selects the output of a failed step to print: the log of each failed test, or the end of the output.

use std::path::Path;

/// Lines of an output without named tests that are printed.
const SHOWN_LINES: usize = 120;

/// Lines of a test's log that are printed.
const TEST_LINES: usize = 400;

/// Returns the lines of `output` to print. The file `log` contains the whole output.
pub(super) fn excerpt(output: &str, log: Option<&Path>) -> Vec<String> {
    let logs = logs(output);
    let mut shown: Vec<String> = Vec::new();
    for test in &logs {
        shown.extend(end(test, TEST_LINES, log));
    }
    // Without a named test, the cause is at the end.
    if shown.is_empty() {
        let lines: Vec<&str> = output.lines().collect();
        shown = end(&lines, SHOWN_LINES, log);
    }
    shown
}

/// Returns the last `most` lines, below a line with the number of omitted ones.
fn end(lines: &[&str], most: usize, log: Option<&Path>) -> Vec<String> {
    let cut = lines.len().saturating_sub(most);
    let place = log.filter(|_| cut > 0);
    let place = place.map(|log| format!("... {cut} lines before these are in {}", log.display()));
    let rest = lines.iter().skip(cut).map(|line| (*line).to_owned());
    place.into_iter().chain(rest).collect()
}

/// Finds the log of each failed test: below `---- NAME stdout ----` of libtest, and indented below `6.12: FAILED NAME`
/// of our own suites.
fn logs(output: &str) -> Vec<Vec<&str>> {
    let mut logs: Vec<Vec<&str>> = Vec::new();
    let mut reading = LogFormat::Nothing;
    for line in output.lines() {
        reading = match reading {
            LogFormat::Libtest if line == "failures:" || line.starts_with("test result: ") => {
                LogFormat::Nothing
            }
            LogFormat::Own if !line.starts_with("    ") => LogFormat::Nothing,
            same => same,
        };
        let begins = if is_libtest_head(line) {
            Some(LogFormat::Libtest)
        } else if is_own_head(line) {
            Some(LogFormat::Own)
        } else {
            None
        };
        if let Some(begun) = begins {
            reading = begun;
            logs.push(Vec::new());
        }
        if let (LogFormat::Libtest | LogFormat::Own, Some(log)) = (reading, logs.last_mut()) {
            log.push(line);
        }
    }
    // Our own suites print their failures twice.
    let mut once: Vec<Vec<&str>> = Vec::new();
    for log in logs {
        if !once.contains(&log) {
            once.push(log);
        }
    }
    once
}

/// The format of the current log.
#[derive(Clone, Copy)]
enum LogFormat {
    Nothing,
    Libtest,
    Own,
}

fn is_libtest_head(line: &str) -> bool {
    line.starts_with("---- ") && line.ends_with(" ----")
}

fn is_own_head(line: &str) -> bool {
    line.split_once(": FAILED")
        .is_some_and(|(kernel, rest)| !kernel.contains(' ') && rest.starts_with([' ', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_libtest_the_logs_of_failed_tests_are_shown_and_nothing_else() {
        let output = "running 2 tests\ntest good ... ok\ntest bad ... FAILED\n\n\
            failures:\n\n---- bad stdout ----\nassertion failed\n\n\nfailures:\n    bad\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored\n\
            running 90 tests\ntest other ... ok\n";
        let wanted = ["---- bad stdout ----", "assertion failed", "", ""];
        assert_eq!(excerpt(output, None), wanted);
    }

    #[test]
    fn of_a_kernel_suite_a_failure_is_shown_once() {
        let output = "6.12: ok agent::good (0.10 s)\n6.12: FAILED agent::bad (1.00 s)\n    panicked\n    at line 3\n\
            6.12: ok agent::other (0.10 s)\n6.12: FAILED agent::bad (1.00 s)\n    panicked\n    at line 3\n1 passed, 1 failed\n";
        let wanted = [
            "6.12: FAILED agent::bad (1.00 s)",
            "    panicked",
            "    at line 3",
        ];
        assert_eq!(excerpt(output, None), wanted);
    }

    #[test]
    fn without_test_names_the_end_of_the_output_is_shown() {
        let output = (0..200).fold(String::new(), |text, n| format!("{text}line {n}\n"));
        let shown = excerpt(&output, Some(Path::new("/log")));
        assert_eq!(shown[0], "... 80 lines before these are in /log");
        assert_eq!(shown[1], "line 80");
        assert_eq!(shown.len(), 121);
    }
}
