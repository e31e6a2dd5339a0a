//! A second, naive engine, and properties that hold for both, on random clusters.
//!
//! `ORACLE_CASES` sets the number of cases of each property, by default 2,000. `PROPTEST_RNG_SEED` selects them; by
//! default they are the same in every run.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod agree;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod disconnected;
#[cfg(test)]
mod events;
#[cfg(test)]
mod frac;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod kernel;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod yaml;

/// A runner with so many cases; always the same ones by default.
#[cfg(test)]
fn cases() -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};

    let cases = std::env::var("ORACLE_CASES")
        .ok()
        .map(|text| text.parse().expect("a number of cases"));
    let config = Config::default();
    Config {
        cases: cases.unwrap_or(2_000),
        rng_seed: match config.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0),
            asked @ RngSeed::Fixed(_) => asked,
        },
        ..config
    }
}
