//! Finds the cause in the client library's error: connection, certificate or credentials.

use std::error::Error as StdError;
use std::io;

use super::{ApiError, Fault};
use crate::path::{Target, Verb};

/// The maximum number of nested errors to check.
const DEPTH: usize = 16;

/// Makes the error for a request without a complete answer.
pub(crate) fn broken(verb: Verb, target: &Target, error: &kube::Error) -> ApiError {
    let fault = fault(error);
    ApiError::new(verb, target, fault, &innermost(error))
}

fn fault(error: &kube::Error) -> Fault {
    if let kube::Error::Auth(_) = error {
        return Fault::Credentials;
    }
    let mut fault = Fault::Unreachable;
    for cause in causes(error) {
        if cause.is::<kube::client::AuthError>() {
            return Fault::Credentials;
        }
        if is_certificate(cause) {
            return Fault::Certificate;
        }
        let io = cause.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::TimedOut) {
            fault = Fault::Timeout;
        }
    }
    fault
}

/// The error and its chain of sources.
fn causes(error: &kube::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = error;
    std::iter::successors(Some(first), |error: &&(dyn StdError + 'static)| {
        (*error).source()
    })
    .take(DEPTH)
}

/// The message of the innermost error. The outer ones only repeat that something failed.
fn innermost(error: &kube::Error) -> String {
    let last = causes(error).last();
    last.map(ToString::to_string).unwrap_or_default()
}

/// Finds the error of the TLS library. Connectors wrap it in I/O errors that do not return it as
/// their source.
fn tls_error<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let wrapped = |error: &&'a (dyn StdError + 'static)| -> Option<&'a (dyn StdError + 'static)> {
        let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
        Some(inner)
    };
    let mut layers = std::iter::successors(Some(cause), wrapped).take(DEPTH);
    layers.find_map(|error| error.downcast_ref())
}

fn is_certificate(cause: &(dyn StdError + 'static)) -> bool {
    tls_error(cause).is_some_and(|tls| {
        use rustls::AlertDescription as Alert;
        matches!(
            tls,
            rustls::Error::InvalidCertificate(_)
                | rustls::Error::AlertReceived(
                    Alert::BadCertificate
                        | Alert::CertificateExpired
                        | Alert::CertificateRevoked
                        | Alert::CertificateUnknown
                        | Alert::UnknownCA
                        | Alert::CertificateRequired
                )
        )
    })
}
