//! Chooses the cipher suites that are offered to an API server first.

use rustls::CipherSuite;
use rustls::crypto::{CryptoProvider, ring};

/// Offers `ChaCha20` first where the processor has no instructions for AES, as small boards and plain virtual machines
/// have none: AES in software is many times slower, and servers written in Go take what such a client offers first
/// (`crypto/tls`, `aesgcmPreferred`).
pub(crate) fn prefer_fast_ones() {
    // A program that installed another provider before keeps it.
    drop(offered(has_aes()).install_default());
}

fn offered(has_aes: bool) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if !has_aes {
        provider
            .cipher_suites
            .sort_by_key(|suite| !is_chacha20(suite.suite()));
    }
    provider
}

fn is_chacha20(suite: CipherSuite) -> bool {
    matches!(
        suite,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
    )
}

#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const fn has_aes() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(has_aes: bool) -> CipherSuite {
        let offered = offered(has_aes);
        assert_eq!(
            offered.cipher_suites.len(),
            ring::default_provider().cipher_suites.len(),
            "none is left out"
        );
        offered.cipher_suites.first().unwrap().suite()
    }

    #[test]
    fn aes_comes_first_where_the_processor_helps_with_it() {
        assert_eq!(first(true), CipherSuite::TLS13_AES_256_GCM_SHA384);
        assert_eq!(first(false), CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
}
