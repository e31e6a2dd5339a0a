//! Flags with an empty value, such as `--cluster-cidr=`, which installers of kube-proxy write.

use std::ffi::{OsStr, OsString};

use super::proxy_config;

const AGENT: &str = "agent";

/// The agent's own flags that hold lists.
const LISTS: [&str; 3] = ["external-ip-ranges", "node-ip", "service-cidr"];

/// The options before the command that have a value.
const GLOBAL: [&str; 2] = ["--colour", "--color"];

/// The words of a command line without those flags of the agent that have an empty value and are as
/// absent then, as in kube-proxy.
pub fn without_empty_flags(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.into_iter().collect();
    if command(&words).is_some_and(|command| command == AGENT) {
        without(words)
    } else {
        words
    }
}

/// The first word that is neither the program, an option, nor the value of an option.
fn command(words: &[OsString]) -> Option<&OsStr> {
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if GLOBAL.iter().any(|option| word == option) {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return Some(word);
        }
    }
    None
}

fn without(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = words.into_iter().peekable();
    let mut kept: Vec<OsString> = Vec::new();
    while let Some(word) = words.next() {
        match word.to_str().and_then(|text| text.strip_prefix("--")) {
            Some(flag) if flag.strip_suffix('=').is_some_and(may_be_empty) => {}
            Some(flag)
                if may_be_empty(flag) && words.next_if(|value| value.is_empty()).is_some() => {}
            Some(_) | None => kept.push(word),
        }
    }
    kept
}

fn may_be_empty(flag: &str) -> bool {
    LISTS.contains(&flag) || proxy_config::may_be_empty(flag)
}
