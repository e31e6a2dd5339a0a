//! One setting of kube-proxy: its field, its flag, its values, and what the agent does with it.

use super::value::{GivenValue, ValueKind};
use crate::args::AgentArgs;

/// A row of the table of settings.
#[derive(Debug)]
pub(super) struct ProxySetting {
    /// The path in `KubeProxyConfiguration`: `[]` stands for the items of a list, `*` for the keys
    /// of a map. Empty for a flag without a field.
    pub field: &'static str,
    /// The flag without dashes; empty for a field without a flag.
    pub flag: &'static str,
    pub values: ValueKind,
    pub effect: SettingEffect,
    /// What is set, why nothing happens, or what to do instead. In Markdown.
    pub note: &'static str,
    /// Whether zero is a value like any other; otherwise it is kube-proxy's default (KP-CF-50).
    pub zero_counts: bool,
}

/// What the agent does with a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum SettingEffect {
    /// Changes its own options.
    Applied(Apply),
    /// Nothing: the agent has an option of the same name, which the command line parses.
    Native,
    /// Nothing, because the setting has no meaning here.
    Silent,
    /// The same, but some values are reported.
    SilentUnless(Apply),
    /// Nothing, and a line in the log has the remedy.
    Reported,
    /// Exits: the flag asks for something else than an agent.
    Refused,
}

/// Changes the options. Returns the reason if this value is ignored.
pub(super) type Apply = fn(&mut AgentArgs, &GivenValue) -> Result<Option<&'static str>, String>;

impl ProxySetting {
    /// A setting that changes options of the agent; `note` names them.
    pub(super) const fn applied(
        names: (&'static str, &'static str),
        values: ValueKind,
        note: &'static str,
        apply: Apply,
    ) -> Self {
        Self::new(names, values, SettingEffect::Applied(apply), note)
    }

    /// A flag that the agent has itself.
    pub(super) const fn native(flag: &'static str, note: &'static str) -> Self {
        Self::new(("", flag), ValueKind::Text, SettingEffect::Native, note)
    }

    /// A setting without a meaning for the agent; `reason` says why.
    pub(super) const fn silent(
        names: (&'static str, &'static str),
        values: ValueKind,
        reason: &'static str,
    ) -> Self {
        Self::new(names, values, SettingEffect::Silent, reason)
    }

    /// A setting without a meaning, of which `apply` reports some values.
    pub(super) const fn silent_unless(
        names: (&'static str, &'static str),
        values: ValueKind,
        reason: &'static str,
        apply: Apply,
    ) -> Self {
        Self::new(names, values, SettingEffect::SilentUnless(apply), reason)
    }

    /// A setting that the agent does not follow, and that an operator may miss.
    pub(super) const fn reported(
        names: (&'static str, &'static str),
        values: ValueKind,
        remedy: &'static str,
    ) -> Self {
        Self::new(names, values, SettingEffect::Reported, remedy)
    }

    /// A flag that asks for something else than an agent.
    pub(super) const fn refused(flag: &'static str, kind: ValueKind, remedy: &'static str) -> Self {
        Self::new(("", flag), kind, SettingEffect::Refused, remedy)
    }

    const fn new(
        (field, flag): (&'static str, &'static str),
        values: ValueKind,
        effect: SettingEffect,
        note: &'static str,
    ) -> Self {
        Self {
            field,
            flag,
            values,
            effect,
            note,
            zero_counts: false,
        }
    }

    /// The same setting, for which zero is a value.
    pub(super) const fn with_zero(mut self) -> Self {
        self.zero_counts = true;
        self
    }

    /// Whether `field`, such as `ipvs.excludeCIDRs[0]`, is this setting.
    pub(super) fn has(&self, field: &str) -> bool {
        if let Some(map) = self.field.strip_suffix('*') {
            let key = field.strip_prefix(map);
            return key.is_some_and(|key| !key.contains(['.', '[']));
        }
        let mut parts = self.field.split("[]");
        let Some(mut rest) = field.strip_prefix(parts.next().unwrap_or_default()) else {
            return false;
        };
        for part in parts {
            let item = rest
                .strip_prefix('[')
                .and_then(|inside| inside.split_once(']'));
            match item.and_then(|(_, after)| after.strip_prefix(part)) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty() && !field.is_empty()
    }

    /// Applies one value; returns the reason if it is ignored.
    pub(super) fn take(
        &self,
        args: &mut AgentArgs,
        given: &GivenValue,
    ) -> Result<Option<&'static str>, String> {
        let is_empty = given.text.is_empty() && !self.field.ends_with(['*', ']']);
        if is_empty || self.values.is_zero(given) && !self.zero_counts {
            return Ok(None);
        }
        self.values.check(given)?;
        match self.effect {
            SettingEffect::Applied(apply) | SettingEffect::SilentUnless(apply) => {
                apply(args, given)
            }
            SettingEffect::Native | SettingEffect::Silent => Ok(None),
            SettingEffect::Reported => Ok(Some(self.note)),
            SettingEffect::Refused => Err(self.note.to_owned()),
        }
    }
}
