//! kube-proxy's settings: the `KubeProxyConfiguration` of `--config`, and kube-proxy's flags
//! (KP-CF-10 to KP-CF-52).
//!
//! `settings` has a row for each; a flag goes through the same code as its field. As in kube-proxy,
//! the file overrides the flags, except for the node's name and the log. Zero, empty and null leave
//! a setting unchanged, because kubeadm writes many of them. An item of a list or a map is not
//! absent because its text is empty. Each setting that the agent does not follow is reported, unless
//! it has no meaning for the agent.

pub mod change;
mod document;
pub mod flags;
mod setting;
mod settings;
mod shape;
mod value;

use std::fmt::Display;
use std::path::Path;

use cluster::source::{Leaf, leaves};

pub use self::document::page;
use self::flags::ProxyFlags;
use self::setting::ProxySetting;
use self::value::GivenValue;
use super::{AgentArgs, go_duration};
use crate::exit::Failure;

const KIND: &str = "KubeProxyConfiguration";
const GROUP: &str = "kubeproxy.config.k8s.io/";
const UNKNOWN: &str = "kube-proxy 1.37 does not have this field";

/// A value with its setting, if kube-proxy has one.
type Given = (Option<&'static ProxySetting>, GivenValue);

impl AgentArgs {
    /// Applies kube-proxy's flags, and then the file of `--config`, which overrides most flags.
    /// Returns a line for each setting that is ignored.
    ///
    /// # Errors
    /// A value is invalid, the file cannot be read or is not a `KubeProxyConfiguration`, or the
    /// node has no name.
    pub fn configure(&mut self) -> Result<Vec<String>, Failure> {
        self.check_lists().map_err(Failure::input)?;
        let flags = flagged(&self.proxy_flags).map_err(Failure::input)?;
        let mut unfollowed = self.take_all(flags, Failure::input)?;
        if let Some(path) = self.config.clone() {
            let values = file(&path)?;
            sync_periods(&values).map_err(at_flag)?;
            unfollowed.extend(self.take_all(values, at_flag)?);
        }
        if self.node_name.is_none() {
            self.node_name = Some(host_name()?);
        }
        Ok(unfollowed)
    }

    /// Of flags that clap parses item by item.
    fn check_lists(&self) -> Result<(), String> {
        value::no_word_twice(&self.service.nodeport_addresses)
            .map_err(|why| format!("--nodeport-addresses: {why}"))
    }

    fn take_all(
        &mut self,
        mut values: Vec<Given>,
        fail: impl Fn(String) -> Failure,
    ) -> Result<Vec<String>, Failure> {
        let mut unfollowed = Vec::new();
        // First, because other addresses take precedence over it.
        values.sort_by_key(|(_, given)| given.field != "bindAddress");
        for (setting, given) in values {
            let GivenValue { place, text, .. } = &given;
            let why = match setting {
                Some(setting) => setting.take(self, &given),
                None => shape::check(&given).map(|()| {
                    (!matches!(text.as_str(), "" | "0" | "0s" | "false")).then_some(UNKNOWN)
                }),
            };
            let why = why.map_err(|why| fail(format!("{place}: {why}")))?;
            unfollowed.extend(why.map(|why| format!("{place}: {text:?} is ignored; {why}")));
        }
        Ok(unfollowed)
    }
}

/// Whether an empty value of a flag counts as none, as in kube-proxy.
pub(super) fn may_be_empty(flag: &str) -> bool {
    let has_value = flags::all().any(|known| known.name == flag && known.has_value());
    let mut settings = settings::all().filter(|setting| setting.flag == flag);
    has_value && settings.any(|setting| setting.values.may_be_empty())
}

/// The values of the flags, in the order of the table.
///
/// # Errors
/// An item of a map has no value.
fn flagged(flags: &ProxyFlags) -> Result<Vec<Given>, String> {
    let mut given = Vec::new();
    for setting in settings::all() {
        if let Some(text) = flags.get(setting.flag) {
            let values = split(setting, text)?;
            given.extend(values.into_iter().map(|value| (Some(setting), value)));
        }
    }
    Ok(given)
}

/// A list or a map has a value for each item.
fn split(setting: &ProxySetting, text: &str) -> Result<Vec<GivenValue>, String> {
    let flag = format!("--{}", setting.flag);
    let items = text.split(',').filter(|item| !item.is_empty());
    if let Some(map) = setting.field.strip_suffix('*') {
        let pair = |item: &str| {
            let missing = || {
                format!("{flag}: missing bool value for {item}; write {item}=true or {item}=false")
            };
            let (key, text) = item.split_once('=').ok_or_else(missing)?;
            let key = key.trim();
            let (place, field) = (format!("{flag}={key}"), format!("{map}{key}"));
            Ok(GivenValue::new(place, field, text, true))
        };
        return items.map(pair).collect();
    }
    if let Some(list) = setting.field.strip_suffix("[]") {
        let item =
            |(index, item)| GivenValue::new(flag.clone(), format!("{list}[{index}]"), item, true);
        return Ok(items.enumerate().map(item).collect());
    }
    let field = setting.field.to_owned();
    Ok(vec![GivenValue::new(flag, field, text, true)])
}

/// The values of the file.
fn file(path: &Path) -> Result<Vec<Given>, Failure> {
    let leaves = leaves(path).map_err(at_flag)?;
    let place = |leaf: &Leaf| format!("{}:{}: {}", path.display(), leaf.line, leaf.field);
    if !leaves.iter().any(|leaf| leaf.field == "kind") {
        let file = path.display();
        return Err(at_flag(format_args!(
            "{file}: not a {KIND}, because it has no kind"
        )));
    }
    let mut values = Vec::new();
    for leaf in leaves {
        let text = leaf.text.as_deref().unwrap_or_default().trim();
        match &*leaf.field {
            "kind" if text != KIND => {
                return Err(at_flag(format_args!(
                    "{}: {text:?} is not {KIND}",
                    place(&leaf)
                )));
            }
            "apiVersion" if !text.starts_with(GROUP) => {
                return Err(at_flag(format_args!(
                    "{}: {text:?} is not of {GROUP}",
                    place(&leaf)
                )));
            }
            "kind" | "apiVersion" => {}
            field => {
                let given = GivenValue::new(place(&leaf), field.to_owned(), text, false);
                // The shape of an empty list or map is checked, and it has no value to apply.
                let setting = settings::of_field(field).filter(|_| leaf.text.is_some());
                values.push((setting, given));
            }
        }
    }
    Ok(values)
}

/// kube-proxy refuses a minimum above the period itself, whose default is 30 s.
fn sync_periods(values: &[Given]) -> Result<(), String> {
    let found = |field: &str| values.iter().find(|(_, given)| given.field == field);
    let length = |text: &str| go_duration::parse(text).unwrap_or_default();
    let period = found("ipvs.syncPeriod").map(|(_, given)| length(&given.text));
    let period = period.filter(|period| !period.is_zero());
    let period = period.unwrap_or(jiff::SignedDuration::from_secs(30));
    match found("ipvs.minSyncPeriod") {
        Some((_, least)) if length(&least.text) > period => Err(format!(
            "{}: {:?} is more than ipvs.syncPeriod, {period:#}; write at most that",
            least.place, least.text
        )),
        _ => Ok(()),
    }
}

/// KP-NI-03: the node's name if nothing else has one.
fn host_name() -> Result<String, Failure> {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    super::values::node_name(&name).map_err(|_error| {
        Failure::input(format_args!(
            "the host name {name:?} is not the name of a Node; set --node-name, as in `kubectl get nodes`"
        ))
    })
}

fn at_flag(why: impl Display) -> Failure {
    Failure::input(format_args!("--config: {why}"))
}

#[cfg(test)]
mod tests;
