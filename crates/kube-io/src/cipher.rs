//! Chooses the cipher suites that are offered first to an API server.

use rustls::CipherSuite;
use rustls::crypto::{CryptoProvider, ring};

/// Offers `ChaCha20` first if the processor has no AES instructions, as on small boards and plain
/// virtual machines. AES in software is many times slower. Servers written in Go take the first
/// offer of such a client (`crypto/tls`, `aesgcmPreferred`).
pub(crate) fn prefer_fast_ones() {
    // If the program installed another provider before, that one stays.
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
    fn aes_is_first_if_the_processor_supports_it() {
        assert_eq!(first(true), CipherSuite::TLS13_AES_256_GCM_SHA384);
        assert_eq!(first(false), CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
}
