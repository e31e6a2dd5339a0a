//! Many commands at a time, and lost replies.

use ipvs_netlink::{Client, Command, ErrorKind, Service, codec};
use netlink_pipeline::{
    Connection, Dump, Error, Limits, NetlinkProtocol, Options, Pipeline, Request, RequestError,
    Source, Writer,
};

use crate::support::{execute, link, many, nth, run};

#[test]
fn ten_thousand_services_are_written_and_read() {
    let mut client = Client::open().unwrap();
    execute(&mut client, &many(10_000));
    let mut read: Vec<_> = client.services().unwrap();
    read.sort_by_key(|entry| entry.service.id);
    assert_eq!(read.len(), 10_000);
    for (number, entry) in (0..).zip(&read) {
        assert_eq!(entry.service, Service::new(nth(number), "wrr"));
    }
    assert_eq!(run("ipvsadm", "-S -n").lines().count(), 10_000);
}

#[test]
fn two_thousand_destinations_of_one_service_are_written_and_read() {
    link();
    run("ip", "route add 172.16.0.0/12 dev eth7");
    let mut client = Client::open().unwrap();
    let id = nth(1);
    let mut commands = vec![Command::NewService(Service::new(id, "wrr"))];
    for number in 0..2000_u32 {
        let address = std::net::Ipv4Addr::from_bits(0xac10_0001 + number);
        let real = ipvs_netlink::Destination::new(address.into(), 80, number);
        commands.push(Command::NewDest(id, real));
    }
    execute(&mut client, &commands);
    let read = client.destinations(&id).unwrap();
    assert_eq!(read.len(), 2000);
    let total: u32 = read.iter().map(|entry| entry.destination.weight).sum();
    assert_eq!(total, 1999 * 2000 / 2);
}

#[test]
fn failures_among_thousands_affect_their_commands_only() {
    let mut client = Client::open().unwrap();
    execute(&mut client, &many(1000));
    let mut commands = many(3000);
    commands.insert(2000, Command::DelService(nth(999_999)));
    let results = client.execute(&commands).unwrap();
    for (index, result) in results.iter().enumerate() {
        let kind = result.as_ref().err().map(ipvs_netlink::Error::kind);
        let expected = match index {
            0..1000 => Some(ErrorKind::AlreadyExists),
            2000 => Some(ErrorKind::NoSuchService),
            _ => None,
        };
        assert_eq!(kind, expected, "{index}");
    }
    assert_eq!(client.services().unwrap().len(), 3000);
}

/// The window keeps replies from being lost: every command fails, and the receive buffer has the minimum size.
#[test]
fn the_smallest_receive_buffer_loses_no_answer() {
    let mut options = Options::default();
    options.receive_buffer = 1;
    let mut client = Client::with_options(&options).unwrap();
    let commands: Vec<_> = (0..2000).map(|n| Command::DelService(nth(n))).collect();
    for result in client.execute(&commands).unwrap() {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NoSuchService);
    }
    execute(&mut client, &many(3000));
    assert_eq!(client.services().unwrap().len(), 3000);
}

/// Commands as messages of a batch, for a pipeline in the test.
struct Commands(Vec<Vec<u8>>, u16);

impl Commands {
    fn new(commands: &[Command], family: u16) -> Self {
        let datagrams = codec::encode(commands, family, Limits::default(), 1);
        let messages = datagrams
            .iter()
            .flat_map(|d| netlink_pipeline::Messages::new(d));
        Self(
            messages.map(|m| m.unwrap().payload.to_vec()).collect(),
            family,
        )
    }
}

impl Source for Commands {
    fn write_next(
        &mut self,
        datagram: &mut netlink_pipeline::Datagram,
    ) -> Option<Result<(), netlink_pipeline::Unsendable>> {
        let payload = (!self.0.is_empty()).then(|| self.0.remove(0))?;
        let fill = |out: &mut Writer<'_>| out.bytes(&payload);
        Some(datagram.push(Request::new(self.1, 0), fill))
    }
}

#[test]
fn lost_answers_are_unknown_outcomes_and_the_connection_continues() {
    let mut client = Client::open().unwrap();
    let mut options = Options::default();
    options.receive_buffer = 1;
    let mut small = Connection::open(NetlinkProtocol::GENERIC, &options).unwrap();
    // The pipeline assumes a larger buffer than there is, so the kernel's replies do not fit.
    let failing: Vec<_> = (0..500).map(|n| Command::DelService(nth(n))).collect();
    let mut commands = failing;
    commands.extend(many(200));
    let source = Commands::new(&commands, client.family_id());
    let mut pipeline = Pipeline::new(source, Limits::default(), 8 << 20, |_, _| Ok(()));
    small.converse(&mut pipeline).unwrap();
    let outcomes = pipeline.into_results();
    assert_eq!(outcomes.len(), 700);
    let lost = |outcome: &&netlink_pipeline::RequestResult| matches!(outcome, Err(failure) if **failure == RequestError::Unknown);
    assert!(outcomes.iter().filter(lost).count() > 100);
    assert!(
        outcomes[..500].iter().all(Result::is_err),
        "a failure passed for a success"
    );
    // All commands were carried out.
    assert_eq!(client.services().unwrap().len(), 200);
    // The connection still works.
    let source = Commands::new(&[Command::DelService(nth(0))], client.family_id());
    assert_eq!(small.execute(source).unwrap(), [Ok(())]);
    assert_eq!(client.services().unwrap().len(), 199);
}

#[test]
fn a_dump_is_whole_although_the_receive_buffer_is_the_smallest() {
    let mut client = Client::open().unwrap();
    execute(&mut client, &many(2000));
    let mut options = Options::default();
    options.receive_buffer = 1;
    let mut small = Client::with_options(&options).unwrap();
    assert_eq!(small.services().unwrap().len(), 2000);
}

/// A dump that was abandoned half-way would make the next one fail with `EBUSY`.
#[test]
fn an_abandoned_dump_does_not_disturb_later_calls() {
    let mut client = Client::open().unwrap();
    execute(&mut client, &many(2000));
    let mut connection = Connection::open(NetlinkProtocol::GENERIC, &Options::default()).unwrap();
    let request = Request::new(client.family_id(), 0);
    let get_service = |out: &mut Writer<'_>| out.bytes(&[4, 1, 0, 0]);
    let mut fails = 3;
    let mut refusing = Dump::new(request, get_service, 1, |_| {
        fails -= 1;
        let error = netlink_pipeline::DecodeError::Missing { what: "patience" };
        if fails == 0 { Err(error) } else { Ok(Some(())) }
    })
    .unwrap();
    let error = connection.converse(&mut refusing).unwrap_err();
    assert!(matches!(error, Error::Malformed(_)));
    let whole = connection
        .dump(request, &[4, 1, 0, 0], |_| Ok(Some(())))
        .unwrap();
    assert_eq!(whole.len(), 2000);
}

/// The method of a benchmark: prepared datagrams and a simple loop.
#[test]
fn finished_datagrams_can_be_sent_by_a_bare_loop() {
    let mut client = Client::open().unwrap();
    let options = Options::default();
    let socket = netlink_pipeline::Socket::open(NetlinkProtocol::GENERIC, &options).unwrap();
    let datagrams = client.encode(&many(1000), 1);
    assert_eq!(datagrams.len(), 8);
    let mut buffer = Vec::with_capacity(4096);
    for datagram in &datagrams {
        socket.send(datagram).unwrap();
        let length = socket.receive(&mut buffer).unwrap();
        assert_eq!(
            (length, &buffer[16..20]),
            (36, &[0; 4][..]),
            "an acknowledgement"
        );
    }
    assert_eq!(client.services().unwrap().len(), 1000);
}
