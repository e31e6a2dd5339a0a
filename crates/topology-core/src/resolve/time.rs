//! Divides a duration into steps, so that gradual changes cause few updates.

/// How many of `steps` equal steps of a `duration` have passed after `elapsed`; all if `duration` is 0.
pub(super) fn passed(elapsed: i64, duration: i64, steps: i64) -> i64 {
    let elapsed = elapsed.clamp(0, duration.max(0));
    (elapsed * steps).checked_div(duration).unwrap_or(steps)
}

/// The first time at which more than `passed` of `steps` steps have passed since `began`.
pub(super) fn next(began: i64, duration: i64, passed: i64, steps: i64) -> i64 {
    let due = (duration * (passed + 1) + steps - 1) / steps;
    began.saturating_add(due)
}

/// The sooner of a time that was requested before, if any, and `moment`.
pub(super) fn sooner(requested: Option<i64>, moment: i64) -> i64 {
    requested.map_or(moment, |requested| requested.min(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_begins_when_it_is_said_to() {
        for duration in [1, 7, 9, 10, 60_000, 86_400_000] {
            for done in 0..10 {
                let moment = next(5, duration, done, 10);
                assert!(
                    passed(moment - 5, duration, 10) > done,
                    "{duration}: {done}"
                );
                assert!(
                    passed(moment - 6, duration, 10) <= done,
                    "{duration}: {done}"
                );
            }
        }
        assert_eq!(passed(0, 0, 10), 10);
    }
}
