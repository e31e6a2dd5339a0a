//! Forms of flags that Go's pflag accepts and clap does not: an empty value, such as
//! `--cluster-cidr=`, which installers of kube-proxy write, and `-v 2` or `-v2` for `-v=2`.

use std::ffi::{OsStr, OsString};

use super::proxy_config;

const AGENT: &str = "agent";

/// The agent's own flags that hold lists.
const LISTS: [&str; 3] = ["external-ip-ranges", "node-ip", "service-cidr"];

/// The options before the command that have a value.
const GLOBAL: [&str; 2] = ["--colour", "--color"];

/// The words of a command line for clap: of the agent without those flags that have an empty value
/// and are as absent then, as in kube-proxy, and with `-v=2` for `-v 2` and `-v2`.
pub fn words_for_clap(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.into_iter().collect();
    if command(&words).is_some_and(|command| command == AGENT) {
        rewritten(words)
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

fn rewritten(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = words.into_iter().peekable();
    let mut kept: Vec<OsString> = Vec::new();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let flag = text.strip_prefix("--").unwrap_or_default();
        let is_empty = flag.strip_suffix('=').is_some_and(may_be_empty)
            || may_be_empty(flag) && words.next_if(|value| value.is_empty()).is_some();
        if is_empty {
            continue;
        }
        let level = match text.strip_prefix("-v") {
            Some("") => words.next_if(is_level),
            Some(level) => Some(OsString::from(level)).filter(is_level),
            None => None,
        };
        kept.push(level.map_or(word, |level| {
            let mut flag = OsString::from("-v=");
            flag.push(level);
            flag
        }));
    }
    kept
}

fn is_level(word: &OsString) -> bool {
    !word.is_empty() && word.as_encoded_bytes().iter().all(u8::is_ascii_digit)
}

fn may_be_empty(flag: &str) -> bool {
    LISTS.contains(&flag) || proxy_config::may_be_empty(flag)
}
