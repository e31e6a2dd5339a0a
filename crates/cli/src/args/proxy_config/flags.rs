//! kube-proxy's flags that the agent does not have itself. They are hidden in `--help`, because
//! docs/kube-proxy-settings.md lists them.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// One flag a line; behind it the word of its kind, unless it has one value.
const FLAGS: &str = include_str!("flags.txt");

/// The flags on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyFlags(Vec<(&'static str, String)>);

/// A flag of kube-proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProxyFlag {
    pub(super) name: &'static str,
    pub(super) kind: FlagKind,
}

/// What the flag holds, and what a second one of it does, as in kube-proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FlagKind {
    /// The last one counts.
    Value,
    /// The same, and `--flag` alone is true.
    Switch,
    /// Each one adds to the list.
    List,
    /// clap adds the flag.
    Native,
}

impl ProxyFlag {
    pub(super) const fn has_value(self) -> bool {
        matches!(self.kind, FlagKind::Value | FlagKind::List)
    }
}

pub(super) fn all() -> impl Iterator<Item = ProxyFlag> {
    let lines = FLAGS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (name, kind) = line.split_once(' ').unwrap_or((line, ""));
        let kind = match kind {
            "switch" => FlagKind::Switch,
            "list" => FlagKind::List,
            "native" => FlagKind::Native,
            _ => FlagKind::Value,
        };
        ProxyFlag { name, kind }
    })
}

impl ProxyFlags {
    /// The value of a flag; of a list with commas between.
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
        let missing =
            all().filter(|flag| flag.kind != FlagKind::Native && !has(&command, flag.name));
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
    match flag.kind {
        FlagKind::Switch => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        FlagKind::List => argument.action(ArgAction::Append),
        FlagKind::Value | FlagKind::Native => argument,
    }
}

impl FromArgMatches for ProxyFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let given = all().filter_map(|flag| {
            let texts = matches.try_get_many::<String>(flag.name).ok()??;
            let texts: Vec<&str> = texts.map(String::as_str).collect();
            Some((flag.name, texts.join(",")))
        });
        self.0 = given.collect();
        Ok(())
    }
}
