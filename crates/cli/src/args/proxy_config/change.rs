//! Watches the file of `--config` after the start (KP-ST-04).

use std::time::Duration;

use tokio::time::sleep;

use crate::args::AgentArgs;

/// Interval of reads. Kubelet takes up to a minute to update a `ConfigMap` in a pod.
const PERIOD: Duration = Duration::from_secs(10);

/// Waits until the file and the flags `given` no longer result in `effective`. Returns the reason
/// to exit, so that kubelet or systemd restarts the process. Reports an invalid file once, and
/// waits until it is valid.
pub async fn wait(given: &AgentArgs, effective: &AgentArgs) -> String {
    // A pipe can be read only once.
    let Some(path) = given.config.as_ref().filter(|path| path.is_file()) else {
        return std::future::pending().await;
    };
    let (mut reported, mut last) = (None, effective.clone());
    loop {
        sleep(PERIOD).await;
        let mut asked = given.clone();
        match asked.configure() {
            // An unchanged second read means that the file is written completely.
            Ok(_) if asked == *effective || asked != last => (reported, last) = (None, asked),
            Ok(_) => {
                return format!(
                    "--config: {}: the settings changed; the agent exits, to start with the new ones",
                    path.display()
                );
            }
            Err(failure) => {
                let words = failure.message();
                if reported.as_ref() != Some(&words) {
                    tracing::warn!("{words}; the settings read at the start stay in force");
                    reported = Some(words);
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
    async fn kp_st_04_only_changed_settings_are_a_reason_to_exit() {
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
        assert!(goes_on().await, "an invalid file");
        fs::remove_file(&path).unwrap();
        assert!(goes_on().await, "a missing file");
        write("ipvs: {scheduler: sh}\n");
        let why = waiting.await;
        assert!(why.contains("config.conf: the settings changed"), "{why}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_file_it_waits_forever() {
        let given = arguments(&[]);
        timeout(100 * PERIOD, wait(&given, &given))
            .await
            .unwrap_err();
    }
}
