//! Defines the labels that several metrics share.

use prometheus_client::encoding::EncodeLabelSet;

/// `ip_family`, as kube-proxy writes it: `IPv4` or `IPv6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct FamilyLabel {
    pub(crate) ip_family: &'static str,
}

/// The HTTP status of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CodeLabel {
    pub(crate) code: u16,
}

/// A kind of kernel write, and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WriteLabels {
    pub(crate) step: &'static str,
    pub(crate) result: &'static str,
}

/// The result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ResultLabel {
    pub(crate) result: &'static str,
}

/// The cause of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CauseLabel {
    pub(crate) cause: &'static str,
}
