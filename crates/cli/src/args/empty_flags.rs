//! Flags with an empty value, such as `--cluster-cidr=`, which installers of kube-proxy write.

use std::ffi::OsString;

use super::proxy_config;

const AGENT: &str = "agent";

/// The agent's own flags that hold lists.
const LISTS: [&str; 3] = ["external-ip-ranges", "node-ip", "service-cidr"];

/// The words of a command line without those flags of the agent that have an empty value and are as
/// absent then, as in kube-proxy.
pub fn without_empty_flags(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.into_iter().peekable();
    let mut kept: Vec<OsString> = Vec::new();
    while let Some(word) = words.next() {
        let is_of_agent = kept.iter().any(|earlier| *earlier == *AGENT);
        let flag = word.to_str().and_then(|text| text.strip_prefix("--"));
        match flag.filter(|_| is_of_agent) {
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
