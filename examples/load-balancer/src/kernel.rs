//! Reads virtual servers from the kernel and applies commands to it.

use anyhow::bail;
use ipvs_netlink::{Client, Command, Error, ErrorKind, ServiceId};

use crate::config::{VirtualServer, VirtualServers};

/// The virtual servers among `ids` that the kernel has.
pub fn observe(
    ipvs: &mut Client,
    ids: impl Iterator<Item = ServiceId>,
) -> Result<VirtualServers, Error> {
    let mut observed = VirtualServers::new();
    for id in ids {
        let service = match ipvs.service(&id) {
            Ok(entry) => entry.service,
            Err(error) if error.kind() == ErrorKind::NoSuchService => continue,
            Err(error) => return Err(error),
        };
        let entries = ipvs.destinations(&id)?.into_iter();
        let real_servers = entries.map(|entry| (entry.destination.id(), entry.destination));
        let real_servers = real_servers.collect();
        observed.insert(
            id,
            VirtualServer {
                service,
                real_servers,
            },
        );
    }
    Ok(observed)
}

/// How a list of commands ended.
#[derive(Debug)]
pub struct Applied {
    /// The number of commands that succeeded.
    pub done: usize,
    /// An error that names every command that failed.
    pub result: anyhow::Result<()>,
}

/// Executes the commands. One that fails does not stop those after it.
pub fn apply(ipvs: &mut Client, commands: &[Command]) -> Applied {
    let results = match ipvs.execute(commands) {
        Ok(results) => results,
        Err(error) => {
            return Applied {
                done: 0,
                result: Err(error.into()),
            };
        }
    };
    let errors = results.into_iter().filter_map(Result::err);
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    Applied {
        done: commands.len().saturating_sub(errors.len()),
        result: all_succeeded(&errors),
    }
}

fn all_succeeded(errors: &[String]) -> anyhow::Result<()> {
    if !errors.is_empty() {
        bail!("{}", errors.join("\n"));
    }
    Ok(())
}
