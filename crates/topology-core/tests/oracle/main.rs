//! A second, naive engine and what must hold for both, over clusters at random.
//!
//! `ORACLE_CASES` says how many cases each property takes, 2,000 if it is not set, and `PROPTEST_RNG_SEED` which ones; they
//! are the same in every run if it is not set either.

#[cfg(test)]
mod addresses;
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
mod kernel;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod yaml;

/// So many cases, in this process, always the same unless others are asked for.
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
