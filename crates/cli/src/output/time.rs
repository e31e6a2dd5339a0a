//! Formats durations.

/// `8 s`, `3 min 5 s`, `2 h 7 min`, `4 d 3 h`: the two largest units.
pub fn length(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut left = seconds;
    let mut parts = Vec::new();
    for (size, unit) in UNITS {
        if left >= size {
            parts.push(format!("{} {unit}", left / size));
            left %= size;
        }
    }
    parts.truncate(2);
    if parts.is_empty() {
        "0 s".to_owned()
    } else {
        parts.join(" ")
    }
}

/// `42s`, `15m`, `3h`: as short as possible, for a narrow column.
pub fn brief(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        _ => format!("{}h", seconds / 3_600),
    }
}

/// `412 us`, `3.2 ms`, `1.5 s`.
pub fn short(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_its_two_largest_units() {
        assert_eq!(length(0), "0 s");
        assert_eq!(length(65), "1 min 5 s");
        assert_eq!(length(7_620), "2 h 7 min");
        assert_eq!(length(86_400), "1 d");
        assert_eq!(
            (brief(42), brief(900), brief(7_300)),
            ("42s".into(), "15m".into(), "2h".into())
        );
        assert_eq!(short(412), "412 us");
        assert_eq!(short(3_250), "3.2 ms");
        assert_eq!(short(1_500_000), "1.5 s");
    }
}
