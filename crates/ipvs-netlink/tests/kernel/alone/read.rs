//! This crate reads what `ipvsadm` writes.

use std::collections::BTreeMap;

use ipvs_netlink::{Client, Command, Destination, Service, ServiceId, Stats};

use crate::options::rows;
use crate::support::{execute, feed, link, saved};

type Table = BTreeMap<ServiceId, (Option<Service>, Vec<Destination>)>;

/// The meaning of the rows, by service.
fn expected() -> Table {
    let mut table = Table::new();
    for row in rows() {
        match row.meaning {
            Command::NewService(service) => {
                let id = service.id;
                table.entry(id).or_default().0 = Some(service);
            }
            Command::NewDest(id, real) => table.entry(id).or_default().1.push(real),
            other => panic!("{other:?} makes nothing"),
        }
    }
    sorted(table)
}

fn sorted(mut table: Table) -> Table {
    for (_, reals) in table.values_mut() {
        reals.sort();
    }
    table
}

fn restore() {
    let line = |row: &crate::options::Row| format!("{} {}\n", row.saved, row.more);
    feed(
        "ipvsadm",
        "-R",
        &rows().iter().map(line).collect::<String>(),
    );
}

#[test]
fn every_option_that_ipvsadm_writes_is_read_by_us() {
    link();
    restore();
    let mut table = Table::new();
    for (service, reals) in Client::open().unwrap().dump().unwrap() {
        assert_eq!(service.stats, Stats::default());
        let reals = reals.into_iter().map(|entry| entry.destination);
        let id = service.service.id;
        table.insert(id, (Some(service.service), reals.collect()));
    }
    assert_eq!(sorted(table), expected());
}

#[test]
fn one_service_and_its_destinations_are_read_by_key() {
    link();
    restore();
    let mut client = Client::open().unwrap();
    for (id, (service, reals)) in expected() {
        assert_eq!(Some(client.service(&id).unwrap().service), service);
        let read = client.destinations(&id).unwrap().into_iter();
        let mut read: Vec<_> = read.map(|entry| entry.destination).collect();
        read.sort();
        assert_eq!(read, reals, "{id}");
    }
}

/// Writing what was read into an empty table restores the table.
#[test]
fn a_table_survives_being_read_and_written_again() {
    link();
    restore();
    let mut client = Client::open().unwrap();
    let before = saved();
    let everything = client.dump().unwrap();
    execute(&mut client, &[Command::Flush]);
    let mut commands = Vec::new();
    for (service, reals) in everything {
        let id = service.service.id;
        commands.push(Command::NewService(service.service));
        let reals = reals.into_iter();
        commands.extend(reals.map(|real| Command::NewDest(id, real.destination)));
    }
    execute(&mut client, &commands);
    assert_eq!(saved(), before);
}
