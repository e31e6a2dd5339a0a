//! A second, naive engine and what must hold for both, over clusters at random.
//!
//! `ORACLE_CASES` says how many cases each property takes, 2,000 if it is not set.

#[cfg(test)]
mod agree;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod events;
#[cfg(test)]
mod frac;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod yaml;

/// So many cases, in this process.
#[cfg(test)]
fn cases() -> proptest::test_runner::Config {
    let cases = std::env::var("ORACLE_CASES")
        .ok()
        .map(|text| text.parse().expect("a number of cases"));
    proptest::test_runner::Config {
        cases: cases.unwrap_or(2_000),
        ..proptest::test_runner::Config::default()
    }
}
