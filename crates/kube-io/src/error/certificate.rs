//! Says what helps against a certificate that is refused.

use rustls::CertificateError;

/// What helps, by what the TLS library says.
pub(super) fn certificate_remedy(message: &str) -> &'static str {
    // The library's message is made of the variant's name, so the names are compared, not sentences.
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
