//! Gives the remedy for a refused certificate.

use rustls::CertificateError;

/// Finds the remedy in the message of the TLS library.
pub(super) fn certificate_remedy(message: &str) -> &'static str {
    // The message contains the name of the enum variant.
    let says = |error: CertificateError| message.contains(&format!("{error:?}"));
    if message.contains("xpired") || says(CertificateError::Expired) {
        "renew the certificate, and check this machine's clock"
    } else if message.contains("not valid yet") || says(CertificateError::NotValidYet) {
        "check this machine's clock"
    } else if says(CertificateError::UnknownIssuer) {
        "check the certificate authority in the kubeconfig or ca.crt: another one signed the server's certificate"
    } else {
        "check the server's address, its certificate and the certificate authority"
    }
}
