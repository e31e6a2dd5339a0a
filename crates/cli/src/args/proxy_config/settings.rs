//! Every setting of kube-proxy 1.37, one row each.

mod actions;
mod kernel;
mod logging;
mod modes;
mod process;

use super::setting::ProxySetting;

/// All settings, in the order of the page for users.
pub(super) fn all() -> impl Iterator<Item = &'static ProxySetting> {
    [
        process::SETTINGS,
        modes::SETTINGS,
        kernel::SETTINGS,
        logging::SETTINGS,
        actions::SETTINGS,
    ]
    .into_iter()
    .flatten()
}

/// The setting of a field.
pub(super) fn of_field(field: &str) -> Option<&'static ProxySetting> {
    all().find(|setting| setting.has(field))
}
