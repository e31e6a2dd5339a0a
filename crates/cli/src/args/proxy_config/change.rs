//! What the file of `--config` asks for after the start (KP-ST-04).

use std::time::Duration;

use tokio::time::sleep;

use crate::args::AgentArgs;

/// How often the file is read. A kubelet takes up to a minute to bring a changed `ConfigMap` to a pod.
const PERIOD: Duration = Duration::from_secs(10);

/// Waits until the file and the flags `given` no longer make `effective`. Returns the reason to exit, so that kubelet or
/// systemd starts the process again. Reports a file that cannot be used once, and waits until it can.
pub async fn wait(given: &AgentArgs, effective: &AgentArgs) -> String {
    // A pipe can be read only once.
    let Some(path) = given.config.as_ref().filter(|path| path.is_file()) else {
        return std::future::pending().await;
    };
    let (mut told, mut last) = (None, effective.clone());
    loop {
        sleep(PERIOD).await;
        let mut asked = given.clone();
        match asked.configure() {
            // At the second look it is not half written any more.
            Ok(_) if asked == *effective || asked != last => (told, last) = (None, asked),
            Ok(_) => {
                return format!(
                    "--config: {}: it asks for something else now; this agent has to be started again for that",
                    path.display()
                );
            }
            Err(failure) => {
                let words = failure.message();
                if told.as_ref() != Some(&words) {
                    tracing::warn!("{words}; what was read at the start stays in force");
                    told = Some(words);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;
    use tokio::time::timeout;

    use super::*;
    use crate::args::{Cli, Command};

    const HEAD: &str =
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

    fn arguments(config: &[&str]) -> AgentArgs {
        let words = ["ipvs-topo", "agent", "--node-name=n1"];
        match Cli::parse_from(words.iter().chain(config)).command {
            Command::Agent(args) => *args,
            other => panic!("another command: {other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn kp_st_04_what_asks_for_something_else_is_a_reason_to_end_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.conf");
        let write = |lines: &str| fs::write(&path, format!("{HEAD}{lines}")).unwrap();
        write("ipvs: {scheduler: wlc}\n");
        let given = arguments(&["--config", path.to_str().unwrap()]);
        let mut effective = given.clone();
        effective.configure().unwrap();
        let mut waiting = Box::pin(wait(&given, &effective));
        let mut goes_on = async || timeout(5 * PERIOD, &mut waiting).await.is_err();

        assert!(goes_on().await);
        write("# The same in other words.\nipvs:\n  scheduler: wlc\n");
        assert!(goes_on().await);
        write("ipvs: {scheduler: 'W L C'}\n");
        assert!(goes_on().await, "what cannot be used");
        fs::remove_file(&path).unwrap();
        assert!(goes_on().await, "what is not there");
        write("ipvs: {scheduler: sh}\n");
        let why = waiting.await;
        assert!(
            why.contains("config.conf: it asks for something else"),
            "{why}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_file_nothing_ends() {
        let given = arguments(&[]);
        timeout(100 * PERIOD, wait(&given, &given))
            .await
            .unwrap_err();
    }
}
