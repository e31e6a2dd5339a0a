//! kube-proxy's flags that the agent does not have itself, from the table of settings. They are
//! hidden in `--help`, because docs/kube-proxy-settings.md lists them.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use super::setting::{ProxySetting, SettingEffect};
use super::settings;
use super::value::{GivenValue, ValueKind};

/// The flags on the command line, in the order of the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyFlags(Vec<(&'static str, String)>);

impl ProxyFlags {
    /// Each value with its setting; a list has several.
    pub(super) fn values(&self) -> Vec<(&'static ProxySetting, GivenValue)> {
        let named = |flag: &str| settings::all().find(|setting| setting.flag == flag);
        let given = self.0.iter();
        let given = given.filter_map(|(flag, text)| Some((named(flag)?, text)));
        given
            .flat_map(|(setting, text)| split(setting, text))
            .collect()
    }
}

fn split(setting: &'static ProxySetting, text: &str) -> Vec<(&'static ProxySetting, GivenValue)> {
    let place = || format!("--{}", setting.flag);
    let one = |field: String, text: &str| (setting, GivenValue::new(place(), field, text, true));
    let items = || text.split(',').filter(|item| !item.is_empty());
    if let Some(map) = setting.field.strip_suffix('*') {
        let pairs = items().map(|item| item.split_once('=').unwrap_or((item, "")));
        return pairs
            .map(|(key, text)| one(format!("{map}{key}"), text))
            .collect();
    }
    if let Some(list) = setting.field.strip_suffix("[]") {
        let numbered = items().enumerate();
        return numbered
            .map(|(index, item)| one(format!("{list}[{index}]"), item))
            .collect();
    }
    vec![one(setting.field.to_owned(), text)]
}

impl Args for ProxyFlags {
    /// Must be the last arguments of a command: it leaves out the flags that the command has.
    fn augment_args(command: Command) -> Command {
        let has = |command: &Command, flag: &str| {
            command.get_arguments().any(|arg| {
                let mut aliases = arg.get_all_aliases().into_iter().flatten();
                arg.get_long() == Some(flag) || aliases.any(|alias| alias == flag)
            })
        };
        let missing = settings::all().filter(|setting| {
            let is_native = matches!(setting.effect, SettingEffect::Native);
            !setting.flag.is_empty() && !is_native && !has(&command, setting.flag)
        });
        let missing: Vec<Arg> = missing.map(argument).collect();
        command.args(missing)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(setting: &'static ProxySetting) -> Arg {
    let argument = Arg::new(setting.flag)
        .long(setting.flag)
        .action(ArgAction::Set)
        .allow_hyphen_values(true)
        .hide(true);
    if setting.values == ValueKind::Switch && !setting.field.ends_with('*') {
        // As in Go, `--flag` alone is true.
        return argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true");
    }
    argument
}

impl FromArgMatches for ProxyFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let given = settings::all().filter_map(|setting| {
            let text = matches.try_get_one::<String>(setting.flag).ok()??;
            Some((setting.flag, text.clone()))
        });
        self.0 = given.collect();
        Ok(())
    }
}
