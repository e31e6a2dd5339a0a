//! Tables that change during a dump.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use ipvs_netlink::{Client, Command, ErrorKind, Service};

use crate::support::{execute, many, nth};

/// A service that is added during a dump shifts the kernel's count, and others are listed twice.
#[test]
fn no_service_ever_comes_twice_while_others_are_added() {
    execute(&mut Client::open().unwrap(), &many(3000));
    let ended = AtomicBool::new(false);
    let (mut whole, mut given_up) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = Client::open().unwrap();
            let new = |number| Command::NewService(Service::new(nth(number), "wrr"));
            for start in (3000..12_000).step_by(10) {
                let some: Vec<_> = (start..start + 10).map(new).collect();
                execute(&mut writer, &some);
            }
            ended.store(true, Ordering::Relaxed);
        });
        let mut reader = Client::open().unwrap();
        while !ended.load(Ordering::Relaxed) {
            match reader.services() {
                Ok(services) => {
                    let ids: BTreeSet<_> = services.iter().map(|s| s.service.id).collect();
                    assert_eq!(ids.len(), services.len());
                    let there_all_the_time = (0..3000).map(nth);
                    assert!(there_all_the_time.into_iter().all(|id| ids.contains(&id)));
                    whole += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
                    given_up += 1;
                }
            }
        }
    });
    assert!(whole + given_up > 0, "nothing was read meanwhile");
    assert_eq!(Client::open().unwrap().services().unwrap().len(), 12_000);
}
