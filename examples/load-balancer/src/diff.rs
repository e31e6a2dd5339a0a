//! Compares the desired virtual servers with the observed ones, and lists the commands between them.

use ipvs_netlink::{Command, Destination, Forward, Service, ServiceFlags};

use crate::config::{VirtualServer, VirtualServers};

/// Returns the commands that make the kernel hold `desired`. Real servers that stay are not changed, and new ones are
/// added before old ones are deleted, so a virtual server never lacks real servers.
pub fn commands(desired: &VirtualServers, observed: &VirtualServers) -> Vec<Command> {
    let mut commands = Vec::new();
    for (id, server) in desired {
        if let Some(present) = observed.get(id) {
            change(server, present, &mut commands);
        } else {
            commands.push(Command::NewService(server.service.clone()));
            let real_servers = server.real_servers.values().cloned();
            commands.extend(real_servers.map(|real| Command::NewDest(*id, real)));
        }
    }
    commands
}

/// Returns the commands that delete every observed virtual server.
pub fn removal(observed: &VirtualServers) -> Vec<Command> {
    observed.keys().copied().map(Command::DelService).collect()
}

fn change(desired: &VirtualServer, observed: &VirtualServer, commands: &mut Vec<Command>) {
    let id = desired.service.id;
    let service = changed_service(&desired.service, &observed.service);
    if service != observed.service {
        commands.push(Command::SetService(service));
    }
    for (address, real) in &desired.real_servers {
        match observed.real_servers.get(address) {
            Some(present) => {
                let changed = changed_real_server(real, present);
                if changed != *present {
                    commands.push(Command::SetDest(id, changed));
                }
            }
            None => commands.push(Command::NewDest(id, real.clone())),
        }
    }
    let leaving = observed.real_servers.keys();
    let leaving = leaving.filter(|address| !desired.real_servers.contains_key(address));
    commands.extend(leaving.map(|address| Command::DelDest(id, *address)));
}

/// Returns the observed service with the values of the file; keeps everything that a file cannot set.
fn changed_service(desired: &Service, observed: &Service) -> Service {
    let mut changed = observed.clone();
    changed.scheduler.clone_from(&desired.scheduler);
    changed.timeout = desired.timeout;
    if desired.persistence().is_some() {
        changed.flags.insert(ServiceFlags::PERSISTENT);
    } else {
        changed.flags.remove(ServiceFlags::PERSISTENT);
    }
    changed
}

/// Does the same for a real server. The kernel forwards to its own addresses as `Local`, whatever a command sets.
fn changed_real_server(desired: &Destination, observed: &Destination) -> Destination {
    let mut changed = observed.clone();
    changed.weight = desired.weight;
    if observed.forward != Forward::Local {
        changed.forward = desired.forward;
    }
    changed
}

#[cfg(test)]
mod tests {
    use ipvs_netlink::{Protocol, ServiceId};

    use super::*;
    use crate::config::parse;

    fn servers(scheduler: &str, weights: &[u32]) -> VirtualServers {
        let real = |(number, weight): (usize, &u32)| {
            format!(
                "[[virtual-server.real-server]]\naddress = \"10.0.0.{number}:8080\"\nweight = {weight}\n"
            )
        };
        let reals: Vec<String> = weights.iter().enumerate().map(real).collect();
        let text = format!(
            "[[virtual-server]]\naddress = \"192.0.2.10:80\"\nscheduler = \"{scheduler}\"\n{}",
            reals.concat()
        );
        parse(&text).unwrap()
    }

    fn id() -> ServiceId {
        ServiceId::address(Protocol::TCP, "192.0.2.10".parse().unwrap(), 80)
    }

    fn real(number: u8, weight: u32) -> Destination {
        Destination::new([10, 0, 0, number].into(), 8080, weight)
    }

    #[test]
    fn an_empty_kernel_gets_everything_and_a_right_one_nothing() {
        let desired = servers("wrr", &[80, 20]);
        assert_eq!(
            commands(&desired, &VirtualServers::new()),
            [
                Command::NewService(Service::new(id(), "wrr")),
                Command::NewDest(id(), real(0, 80)),
                Command::NewDest(id(), real(1, 20)),
            ]
        );
        assert_eq!(commands(&desired, &desired), []);
    }

    #[test]
    fn only_what_differs_changes_and_the_new_come_before_the_old_go() {
        let mut observed = servers("wrr", &[80, 20, 5]);
        let mut desired = servers("wlc", &[80, 30]);
        let new = real(9, 1);
        let server = desired.get_mut(&id()).unwrap();
        server.real_servers.insert(new.id(), new.clone());
        assert_eq!(
            commands(&desired, &observed),
            [
                Command::SetService(Service::new(id(), "wlc")),
                Command::SetDest(id(), real(1, 30)),
                Command::NewDest(id(), new),
                Command::DelDest(id(), real(2, 5).id()),
            ]
        );
        observed.clear();
        assert_eq!(commands(&VirtualServers::new(), &observed), []);
    }

    #[test]
    fn what_a_file_cannot_say_stays() {
        let desired = servers("wrr", &[80]);
        let mut observed = servers("rr", &[70]);
        let server = observed.get_mut(&id()).unwrap();
        server.service.flags.insert(ServiceFlags::SCHEDULER_1);
        let limited = real(0, 70)
            .with_forward(Forward::Local)
            .with_thresholds(9, 5);
        server.real_servers.insert(limited.id(), limited);
        let service = Service::new(id(), "wrr").with_flags(ServiceFlags::SCHEDULER_1);
        let kept = real(0, 80)
            .with_forward(Forward::Local)
            .with_thresholds(9, 5);
        assert_eq!(
            commands(&desired, &observed),
            [Command::SetService(service), Command::SetDest(id(), kept)]
        );
    }

    #[test]
    fn persistence_comes_and_goes() {
        let plain = servers("wrr", &[]);
        let mut persistent = plain.clone();
        let server = persistent.get_mut(&id()).unwrap();
        server.service = server.service.clone().with_persistence(60);
        let set = |servers: &VirtualServers| [Command::SetService(servers[&id()].service.clone())];
        assert_eq!(commands(&persistent, &plain), set(&persistent));
        assert_eq!(commands(&plain, &persistent), set(&plain));
    }

    #[test]
    fn a_removal_names_what_the_kernel_has() {
        assert_eq!(removal(&servers("wrr", &[80])), [Command::DelService(id())]);
        assert_eq!(removal(&VirtualServers::new()), []);
    }
}
