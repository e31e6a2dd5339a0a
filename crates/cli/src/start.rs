//! `ipvs-topo agent`: converts the command line to the agent's options, and runs the agent.

mod configz;

use std::time::Instant;

use agent::agent_config::AgentConfig;
use agent::start::{self, AgentOptions};
use telemetry::log::{self, Verbosity};

use crate::args::proxy_config::change;
use crate::args::values::NodeSourceArg;
use crate::args::{AgentArgs, OOM_SCORE_ADJ};
use crate::exit::{ExitStatus, Failure};
use crate::origin::Origin;
use crate::runtime;

pub(crate) use self::configz::configz;

/// Runs the agent until SIGTERM or SIGINT. The kernel continues to serve without it.
///
/// # Errors
/// The input cannot be read, another agent runs, or IPVS cannot be used. Later: the settings in the
/// file of `--config` change.
pub fn run(args: &AgentArgs) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let given = args;
    let mut args = given.clone();
    let unfollowed = args.configure()?;
    let verbosity = Verbosity {
        level: args.log_level(),
        crates: &["agent", "cli", "cluster", "dataplane", "kube_io"],
    };
    log::start(args.log_format, verbosity);
    for line in unfollowed {
        tracing::warn!("{line}");
    }
    telemetry::raise_file_limit();
    adjust_oom_score(args.oom_score_adj);
    let superseded = change::wait(given, &args);
    runtime::block_on(work(&args, superseded, started))
}

/// A pod without `CAP_SYS_RESOURCE` keeps the value of kubelet, which is the usual case.
fn adjust_oom_score(given: Option<i16>) {
    let value = given.unwrap_or(OOM_SCORE_ADJ);
    let Err(error) = telemetry::adjust_oom_score(value) else {
        return;
    };
    if given.is_some() {
        tracing::warn!(
            "oomScoreAdj: {value} cannot be set: {error}; the value of kubelet stays; set a priority class instead, or \
             add CAP_SYS_RESOURCE"
        );
    } else {
        tracing::debug!("oom_score_adj stays as it is: {error}");
    }
}

async fn work(
    args: &AgentArgs,
    superseded: impl Future<Output = String>,
    started: Instant,
) -> Result<ExitStatus, Failure> {
    let origin = args.origin.get();
    // Reports errors of the command line before errors of the machine.
    let source = origin.watch(args.watch_options())?;
    let options = options(args, origin, started)?;
    let ended = start::run(options, source, superseded).await;
    match ended.map_err(Failure::trouble)? {
        None => Ok(ExitStatus::Fine),
        Some(why) => Err(Failure::trouble(why)),
    }
}

fn options(args: &AgentArgs, origin: Origin, started: Instant) -> Result<AgentOptions, Failure> {
    Ok(AgentOptions {
        config: config(args)?,
        source: origin.to_string(),
        access: match origin {
            Origin::Api(access) => Some(access),
            Origin::Files(_) => None,
        },
        socket: args.socket.clone(),
        healthz_address: args.healthz_bind_address.0,
        metrics_address: args.metrics_bind_address.0,
        bind_hard_fail: args.bind_address_hard_fail,
        configz: configz(args),
        started,
    })
}

fn config(args: &AgentArgs) -> Result<AgentConfig, Failure> {
    Ok(AgentConfig {
        node: args.node().into(),
        mapped: args.origin.cluster.is_none() && args.node_source == NodeSourceArg::Map,
        service_cidrs: args.service.service_cidr.clone(),
        node_ips: args.node_ip.clone(),
        cluster_cidrs: args.clients.cluster_cidr.clone(),
        detect_local: args.clients.detect_local()?,
        masquerade_all: args.clients.masquerade_all,
        strict_arp: args.host.strict_arp(),
        estimation: args.host.estimation.into(),
        ipvs_timeouts: args.host.ipvs(),
        conntrack: args.host.conntrack(args.config.is_some()),
        node_port_addresses: args.service.node_port_addresses(),
        mark_mask: args.service.fwmark_mask,
        scheduler: args.service.scheduler,
        check_period: args.check_period.0,
        drain_timeout: args.drain_timeout.0,
        state_dir: args.state_dir.clone(),
        sysctl_dir: args.sysctl_dir.clone(),
        adopt: args.adopt,
        ports: [args.healthz_bind_address, args.metrics_bind_address]
            .into_iter()
            .filter_map(|bind| Some(bind.0?.port()))
            .collect(),
        crash_after: args.crash_after,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::*;
    use crate::args::{Cli, Command};

    fn args(more: &[&str]) -> Result<AgentArgs, String> {
        let start = ["ipvs-topo", "agent", "--node", "n1"];
        let parsed = Cli::try_parse_from(start.iter().chain(more));
        match parsed.map_err(|error| error.to_string())?.command {
            Command::Agent(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn d7_the_mask_of_firewall_marks_is_configured_checked_and_shown_in_configz() {
        let shown = |more: &[&str]| {
            let args = args(more)?;
            let bits = config(&args).unwrap().mark_mask.bits();
            let shown = configz(&args)["ipvs-topo"]["fwmarkMask"].clone();
            Ok::<_, String>((bits, shown))
        };
        assert_eq!(shown(&[]), Ok((0x20ff_ffff, json!("0x20ffffff"))));
        let other = shown(&["--fwmark-mask", "0xF00000"]);
        assert_eq!(other, Ok((0xf0_0000, json!("0xf00000"))));
        let one_bit = shown(&["--fwmark-mask", "0x4000"]).unwrap_err();
        assert!(one_bit.contains("less than two bits"), "{one_bit}");
        let decimal = shown(&["--fwmark-mask", "16384"]).unwrap_err();
        assert!(
            decimal.contains("write for example 0x20ffffff"),
            "{decimal}"
        );
    }
}
