//! Timeouts, version, daemons.

use ipvs_netlink::{Client, Command, Daemon, DaemonState, ErrorKind, Timeouts};

use crate::support::{execute, link, run};

#[test]
fn timeouts_are_written_and_read() {
    let mut client = Client::open().unwrap();
    let before = client.timeouts().unwrap();
    let some = Timeouts {
        tcp: Some(1200),
        tcp_fin: None,
        udp: Some(77),
    };
    execute(&mut client, &[Command::SetTimeouts(some)]);
    let fin = before.tcp_fin.unwrap();
    assert_eq!(
        run("ipvsadm", "-L --timeout"),
        format!("Timeout (tcp tcpfin udp): 1200 {fin} 77\n")
    );
    run("ipvsadm", "--set 901 121 301");
    let read = client.timeouts().unwrap();
    let seconds = (read.tcp, read.tcp_fin, read.udp);
    assert_eq!(seconds, (Some(901), Some(121), Some(301)));
}

#[test]
fn the_kernels_version_is_read() {
    let info = Client::open().unwrap().info().unwrap();
    assert_eq!(info.version_parts(), (1, 2, 1));
}

#[test]
fn daemons_are_started_read_and_stopped() {
    link();
    let mut client = Client::open().unwrap();
    let mut primary = Daemon::new(DaemonState::Primary, "eth7", 7);
    primary.max_length = Some(1000);
    primary.group = Some("224.0.0.99".parse().unwrap());
    primary.port = Some(9000);
    primary.ttl = Some(4);
    let mut backup = Daemon::new(DaemonState::Backup, "eth7", 8);
    backup.group = Some("ff02::81".parse().unwrap());
    let start = [&primary, &backup].map(|daemon| Command::NewDaemon(daemon.clone()));
    execute(&mut client, &start);
    let shown = run("ipvsadm", "-L --daemon");
    let expected = "master sync daemon (mcast=eth7, syncid=7, maxlen=1000, group=224.0.0.99, port=9000, ttl=4)";
    assert!(shown.contains(expected), "{shown}");
    let mut read = client.daemons().unwrap();
    read.sort_by_key(|daemon| daemon.state);
    assert_eq!(read.len(), 2);
    assert_eq!(read[0], primary);
    assert_eq!(
        (read[1].state, read[1].group),
        (DaemonState::Backup, backup.group)
    );
    assert_eq!((read[1].port, read[1].ttl), (Some(8848), Some(1)));
    let again = client.execute(&start).unwrap();
    for result in again {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::AlreadyExists);
    }
    let stop = [DaemonState::Primary, DaemonState::Backup].map(Command::DelDaemon);
    execute(&mut client, &stop);
    assert_eq!(client.daemons().unwrap(), []);
    assert_eq!(run("ipvsadm", "-L --daemon"), "");
}

#[test]
fn daemons_that_ipvsadm_starts_are_read() {
    link();
    run(
        "ipvsadm",
        "--start-daemon backup --mcast-interface eth7 --syncid 250 --sync-maxlen 1400",
    );
    let read = Client::open().unwrap().daemons().unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!((read[0].state, read[0].sync_id), (DaemonState::Backup, 250));
    assert_eq!(
        (read[0].interface.as_str(), read[0].max_length),
        ("eth7", Some(1400))
    );
    run("ipvsadm", "--stop-daemon backup");
}
