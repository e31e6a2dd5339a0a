//! Describes why a request to the API server failed, with a word for programs and a remedy.

pub(crate) mod cause;
mod certificate;
mod status;

use std::fmt;
use std::time::Duration;

use crate::path::{Target, Verb};

pub(crate) use status::Status;
pub(crate) use status::{refused, retry_after};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The server does not accept the credentials.
    Unauthorized,
    /// The user has no permission.
    Forbidden,
    /// The object, or its kind, does not exist.
    NotFound,
    /// The server has this kind in another version only.
    OtherVersion,
    /// The object exists already.
    AlreadyExists,
    /// The object changed meanwhile.
    Conflict,
    /// The server no longer has the requested version.
    Gone,
    /// The server does not accept the content.
    Invalid,
    /// The server limits requests.
    TooManyRequests,
    /// The server has an internal error.
    Unavailable,
    /// No connection.
    Unreachable,
    /// The server's certificate is not trusted, or a certificate has expired.
    Certificate,
    /// No answer, or an incomplete one, within the time limit.
    Timeout,
    /// The answer cannot be decoded.
    DecodeError,
    /// The client cannot read its credentials.
    Credentials,
    /// Any other refusal.
    Refused,
}

impl Fault {
    /// Whether other credentials or another certificate authority may help.
    pub(crate) const fn is_of_trust(self) -> bool {
        matches!(
            self,
            Self::Unauthorized | Self::Certificate | Self::Credentials
        )
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::OtherVersion => "OtherVersion",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::Unavailable => "Unavailable",
            Self::Unreachable => "Unreachable",
            Self::Certificate => "Certificate",
            Self::Timeout => "Timeout",
            Self::DecodeError => "DecodeError",
            Self::Credentials => "Credentials",
            Self::Refused => "Refused",
        }
    }

    /// Whether the same request may succeed later.
    pub const fn is_passing(self) -> bool {
        matches!(
            self,
            Self::TooManyRequests | Self::Unavailable | Self::Unreachable | Self::Timeout
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub verb: Verb,
    /// The object or collection of the request.
    pub target: Box<Target>,
    pub fault: Fault,
    /// The HTTP status, if there was an answer.
    pub code: Option<u16>,
    /// The message of the server or of the client library.
    pub message: String,
    /// How long the server asks the client to wait, at most 300 s.
    pub retry_after: Option<Duration>,
}

/// The server's message for a kind whose CRD was just installed.
const INITIALIZING: &str = "storage is (re)initializing";

/// This number of such answers in a row is not reported. With the pauses between them they take
/// half a minute.
const READY_SOON: u32 = 5;

impl ApiError {
    /// Whether the server still prepares a kind whose CRD is new, after `failures` in a row.
    pub fn is_initializing(&self, failures: u32) -> bool {
        self.fault == Fault::TooManyRequests
            && self.message.contains(INITIALIZING)
            && failures <= READY_SOON
    }

    /// An error without a status code.
    pub fn new(
        verb: Verb,
        target: &Target,
        fault: Fault,
        message: &(impl ToString + ?Sized),
    ) -> Self {
        Self {
            verb,
            target: Box::new(target.clone()),
            fault,
            code: None,
            message: message.to_string(),
            retry_after: None,
        }
    }

    /// What an operator can do; empty if nothing.
    pub fn remedy(&self) -> String {
        match self.fault {
            Fault::Unauthorized => {
                "check the token or client certificate: it may have expired or been revoked, or a clock is wrong"
                    .to_owned()
            }
            Fault::Forbidden => format!(
                "add a rule to the account's role: {}",
                self.target.rule(self.verb)
            ),
            Fault::NotFound if self.target.name.is_empty() => {
                "install the CRD or API of this kind, if it is needed".to_owned()
            }
            Fault::OtherVersion => {
                "install the definitions that belong to this version (manifests/crds)".to_owned()
            }
            Fault::Certificate => certificate::certificate_remedy(&self.message).to_owned(),
            Fault::Unreachable => {
                "check that the API server runs and can be reached from this node".to_owned()
            }
            Fault::Credentials => {
                "check the kubeconfig, or the command or file that it names".to_owned()
            }
            Fault::DecodeError => {
                "check that the address is that of a Kubernetes API server".to_owned()
            }
            Fault::NotFound
            | Fault::AlreadyExists
            | Fault::Conflict
            | Fault::Gone
            | Fault::Invalid
            | Fault::TooManyRequests
            | Fault::Unavailable
            | Fault::Timeout
            | Fault::Refused => String::new(),
        }
    }
}

impl std::error::Error for ApiError {}

/// One line: `list nodes: Forbidden: nodes is forbidden: User ...; add a rule to ...`.
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            target,
            fault,
            message,
            ..
        } = self;
        write!(f, "{} {target}: {}", verb.as_str(), fault.as_str())?;
        if let Some(code) = self.code {
            write!(f, " ({code})")?;
        }
        if !message.is_empty() {
            write!(f, ": {}", message.replace('\n', " "))?;
        }
        let remedy = self.remedy();
        if !remedy.is_empty() {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_object_and_the_rule_that_is_missing() {
        let target = Target::of("/api/v1/nodes");
        let error = ApiError {
            code: Some(403),
            ..ApiError::new(
                Verb::List,
                &target,
                Fault::Forbidden,
                "nodes is forbidden:\nUser \"a\"",
            )
        };
        assert_eq!(
            error.to_string(),
            "list nodes: Forbidden (403): nodes is forbidden: User \"a\"; add a rule to the account's role: \
             apiGroups: [\"\"], resources: [\"nodes\"], verbs: [\"list\", \"watch\"]"
        );
    }

    #[test]
    fn an_error_without_remedy_ends_with_the_message() {
        let target = Target::of("/api/v1/namespaces/shop/services/cart");
        let error = ApiError::new(Verb::Update, &target, Fault::Conflict, "modified");
        assert_eq!(
            error.to_string(),
            "update services shop/cart: Conflict: modified"
        );
    }
}
