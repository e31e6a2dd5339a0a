//! kube-proxy's flags that the agent does not have itself. They are hidden in `--help`, because
//! docs/kube-proxy-settings.md lists them.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// One flag a line; behind it `switch` if it needs no value, `native` if clap adds it.
const FLAGS: &str = include_str!("flags.txt");

/// The flags on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyFlags(Vec<(&'static str, String)>);

/// A flag of kube-proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProxyFlag {
    pub(super) name: &'static str,
    /// `--flag` alone is true, as in Go.
    pub(super) is_switch: bool,
    is_native: bool,
}

impl ProxyFlag {
    pub(super) const fn has_value(self) -> bool {
        !self.is_switch && !self.is_native
    }
}

pub(super) fn all() -> impl Iterator<Item = ProxyFlag> {
    let lines = FLAGS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (name, kind) = line.split_once(' ').unwrap_or((line, ""));
        ProxyFlag {
            name,
            is_switch: kind == "switch",
            is_native: kind == "native",
        }
    })
}

impl ProxyFlags {
    /// The value of a flag.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let given = self.0.iter().find(|(given, _)| *given == name);
        given.map(|(_, text)| text.as_str())
    }
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
        let missing = all().filter(|flag| !flag.is_native && !has(&command, flag.name));
        let missing: Vec<Arg> = missing.map(argument).collect();
        command.args(missing)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(flag: ProxyFlag) -> Arg {
    let argument = Arg::new(flag.name)
        .long(flag.name)
        .action(ArgAction::Set)
        .allow_hyphen_values(true)
        .hide(true);
    if flag.is_switch {
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
        let given = all().filter_map(|flag| {
            let text = matches.try_get_one::<String>(flag.name).ok()??;
            Some((flag.name, text.clone()))
        });
        self.0 = given.collect();
        Ok(())
    }
}
