//! Loading and unloading of the module. No other test runs at the same time.

use std::fs;
use std::process::Command as Program;

use ipvs_netlink::{Client, Command, ErrorKind, Service};

use crate::support::{eventually, execute, many, nth, run};

/// The kernel's path to the program that loads modules; restored when the test ends, even after a panic.
struct Modprobe(String);

const MODPROBE: &str = "/proc/sys/kernel/modprobe";

impl Modprobe {
    fn hide() -> Self {
        let path = fs::read_to_string(MODPROBE).unwrap();
        fs::write(MODPROBE, "/nowhere").unwrap();
        Self(path)
    }
}

impl Drop for Modprobe {
    fn drop(&mut self) {
        fs::write(MODPROBE, &self.0).unwrap();
    }
}

/// Unloads IPVS with its schedulers. The kernel dismantles the previous test's namespace with a delay, and until then
/// its services use the module.
fn unload() {
    let modules = fs::read_to_string("/proc/modules").unwrap();
    let names = modules.lines().filter_map(|line| line.split(' ').next());
    let schedulers = names.filter(|name| name.starts_with("ip_vs_"));
    for name in schedulers.chain(["ip_vs"]) {
        eventually("the module can be unloaded", || {
            let done = Program::new("rmmod").arg(name).output().unwrap();
            done.status.success()
        });
    }
}

#[test]
fn a_missing_module_is_named_with_its_remedy() {
    let mut old = Client::open().unwrap();
    unload();
    let hidden = Modprobe::hide();
    let error = Client::open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ModuleMissing);
    assert_eq!(
        error.to_string(),
        "cannot open the kernel's IPVS: the kernel's IPVS module is not loaded (errno 2); \
         load it: modprobe ip_vs"
    );
    // An existing client returns the same error for every request.
    let error = old.execute(&many(3)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ModuleMissing);
    assert_eq!(old.services().unwrap_err().kind(), ErrorKind::ModuleMissing);
    assert_eq!(old.info().unwrap_err().kind(), ErrorKind::ModuleMissing);
    drop(hidden);
    // The kernel loads the module itself if it can, and the existing client continues to work.
    execute(&mut old, &many(3));
    assert_eq!(Client::open().unwrap().services().unwrap().len(), 3);
}

#[test]
fn clients_survive_a_reload_of_the_module() {
    let mut writer = Client::open().unwrap();
    let mut reader = Client::open().unwrap();
    let mut asker = Client::open().unwrap();
    let before = writer.family_id();
    unload();
    // Another family may get the old number.
    run("modprobe", "ip_vs");
    let mut commands = many(300);
    commands.insert(
        150,
        Command::NewService(Service::new(nth(5000), "nonsense")),
    );
    commands.push(Command::DelService(nth(9999)));
    let results = writer.execute(&commands).unwrap();
    for (index, result) in results.iter().enumerate() {
        let kind = result.as_ref().err().map(ipvs_netlink::Error::kind);
        let expected = match index {
            150 => Some(ErrorKind::UnknownScheduler),
            301 => Some(ErrorKind::NoSuchService),
            _ => None,
        };
        assert_eq!(kind, expected, "{index}");
    }
    assert_ne!(writer.family_id(), before);
    assert_eq!(reader.services().unwrap().len(), 300);
    assert_eq!(
        asker.service(&nth(7)).unwrap().service,
        Service::new(nth(7), "wrr")
    );
    execute(&mut writer, &[Command::Flush]);
}

#[test]
fn the_kernel_loads_the_schedulers_module_by_itself() {
    unload();
    let mut client = Client::open().unwrap();
    let service = Service::new(nth(1), "ovf");
    execute(&mut client, &[Command::NewService(service)]);
    assert!(fs::metadata("/sys/module/ip_vs_ovf").is_ok());
    execute(&mut client, &[Command::Flush]);
}
