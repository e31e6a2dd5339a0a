//! The page for users, docs/kube-proxy-settings.md, from the table of settings.

use super::setting::{ProxySetting, SettingEffect};
use super::settings;

const HEAD: &str = "# Settings of kube-proxy

`cargo xtask codegen` generates this page from the table in `crates/cli/src/args/proxy_config/settings.rs`.

`ipvs-topo agent` reads the `KubeProxyConfiguration` of kube-proxy 1.37 with `--config`, and accepts kube-proxy's flags.
A flag and its field mean the same, except that `--cluster-cidr` may have more than one range of a family; the file overrides the flags, but not those of the log.
A value that is zero, empty or null has no effect; kubeadm writes many of these.
That is also true for a flag with an empty value, such as `--cluster-cidr=`, but an empty `--healthz-bind-address` or `--metrics-bind-address` turns its server off.
The last value of a repeated flag counts, but those of `--feature-gates`, `--ipvs-exclude-cidrs`, `--nodeport-addresses` and `--vmodule` add up.

| effect | meaning |
| --- | --- |
| applied | the agent does what is in the last column |
| none | the setting has no meaning for the agent, for the reason in the last column |
| reported | the agent starts; its log has a line with the remedy |
| refused | the agent exits with code 2, with the remedy |

A value outside of the limits is an error, as in kube-proxy; those of ipvs are checked in every mode.
A list, a map or a value where kube-proxy has another of them is an error, also if it is empty.
An unknown field is reported; an unknown flag is an error.
In the file `yes`, `on` and `y` are `true`, and `no`, `off` and `n` are `false`, as in YAML 1.1; flags have Go's words (`1`, `t`, `True`).
Numbers of an IPv4 address may begin with zeros.
Durations are those of Go's `time.ParseDuration`: `1m30s`, `1.5h`, `500ms`.

";

/// The whole page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| field | flag | values | effect | |\n| --- | --- | --- | --- | --- |\n");
    page.extend(settings::all().map(row));
    page
}

fn row(setting: &ProxySetting) -> String {
    let code = |prefix: &str, name: &str| match name {
        "" => String::new(),
        name => format!("`{prefix}{name}`"),
    };
    let effect = match setting.effect {
        SettingEffect::Applied(_) | SettingEffect::Native => "applied",
        SettingEffect::Silent | SettingEffect::SilentUnless(_) => "none",
        SettingEffect::Reported => "reported",
        SettingEffect::Refused => "refused",
    };
    format!(
        "| {} | {} | {} | {effect} | {} |\n",
        code("", setting.field),
        code("--", setting.flag),
        setting.values,
        setting.note
    )
}
