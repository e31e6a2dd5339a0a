//! kube-proxy's own unit tests as tests of `render` (KP-UT-...); docs/kube-proxy-tests.md lists
//! all of them.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

#[path = "kube_proxy/endpoints.rs"]
mod endpoints;
#[path = "kube_proxy/frontends.rs"]
mod frontends;
#[path = "kube_proxy/objects.rs"]
mod objects;
#[path = "kube_proxy/services.rs"]
mod services;
