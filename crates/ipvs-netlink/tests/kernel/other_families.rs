//! The transport with other netlink protocols.

use netlink_pipeline::{
    Batch, Connection, Error, NetlinkProtocol, Options, Request, RequestError, Subscription, Writer,
};

use crate::support::run;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
/// `NLM_F_CREATE | NLM_F_EXCL`.
const NEW: u16 = 0x600;
/// `RTNLGRP_LINK` and `RTNLGRP_IPV4_ROUTE`.
const LINKS: u32 = 1;
const ROUTES: u32 = 7;

fn route() -> Connection {
    Connection::open(NetlinkProtocol::ROUTE, &Options::default()).unwrap()
}

/// A `local` route for one address by `lo`, marked with a protocol number of our own.
fn local_route(number: u32, prefix: u8) -> Vec<u8> {
    const OWN_PROTOCOL: u8 = 177;
    let mut payload = vec![2, prefix, 0, 0, 255, OWN_PROTOCOL, 254, 2, 0, 0, 0, 0];
    let address = (0x0a60_0000 + number).to_be_bytes();
    payload.extend_from_slice(&[8, 0, 1, 0]);
    payload.extend_from_slice(&address);
    payload.extend_from_slice(&[8, 0, 4, 0, 1, 0, 0, 0]);
    payload
}

#[test]
fn ten_thousand_routes_have_an_outcome_each() {
    let mut connection = route();
    let mut batch = Batch::new();
    for number in 0..10_000 {
        // Every hundredth exists already.
        let number = if number % 100 == 99 {
            number - 1
        } else {
            number
        };
        batch.push(Request::new(RTM_NEWROUTE, NEW), &local_route(number, 32));
    }
    let outcomes = connection.execute(batch).unwrap();
    assert_eq!(outcomes.len(), 10_000);
    for (number, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Ok(()) => assert_ne!(number % 100, 99),
            Err(failure) => {
                assert_eq!(number % 100, 99);
                let RequestError::Refused(nack) = &**failure else {
                    panic!("{failure}");
                };
                assert_eq!(nack.errno, libc::EEXIST);
            }
        }
    }
    let get = Request::new(RTM_GETROUTE, 0);
    let routes = connection
        .dump(get, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], |message| {
            Ok((message.payload[5] == 177).then_some(()))
        })
        .unwrap();
    assert_eq!(routes.len(), 9_900);
    let shown = run("ip", "route show table local proto 177");
    assert_eq!(shown.lines().count(), 9_900);
}

#[test]
fn a_strict_dump_is_filtered_by_the_kernel() {
    let mut batch = Batch::new();
    batch.push(Request::new(RTM_NEWROUTE, NEW), &local_route(1, 32));
    assert!(route().execute(batch).unwrap()[0].is_ok());
    let listed = |strict, protocol: u8, table: u8| {
        let mut options = Options::default();
        options.strict = strict;
        let mut connection = Connection::open(NetlinkProtocol::ROUTE, &options).unwrap();
        let get = Request::new(RTM_GETROUTE, 0);
        let filter = [2, 0, 0, 0, table, protocol, 0, 0, 0, 0, 0, 0];
        let protocols = connection.dump(get, &filter, |message| Ok(Some(message.payload[5])));
        protocols.unwrap()
    };
    assert_eq!(listed(true, 177, 255), [177]);
    assert!(listed(true, 0, 255).len() > 1, "those of lo as well");
    assert!(
        listed(false, 177, 255).len() > 1,
        "the fields of the request are no filter"
    );
}

#[test]
fn the_kernels_own_message_is_kept() {
    let mut batch = Batch::new();
    batch.push(Request::new(RTM_NEWROUTE, NEW), &local_route(1, 33));
    let outcomes = route().execute(batch).unwrap();
    let Err(failure) = &outcomes[0] else {
        panic!("a prefix of 33 bits was taken");
    };
    let RequestError::Refused(nack) = &**failure else {
        panic!("{failure}");
    };
    assert_eq!(nack.errno, libc::EINVAL);
    assert_eq!(nack.message.as_deref(), Some("Invalid prefix length"));
    assert!(failure.to_string().contains("Invalid prefix length"));
}

#[test]
fn single_answers_reach_their_request() {
    run("ip", "link add eth7 type dummy");
    let mut batch = Batch::new();
    let indices = [1_u32, 999_999, 1];
    for index in indices {
        let mut payload = vec![0; 16];
        payload[4..8].copy_from_slice(&index.to_ne_bytes());
        batch.push(Request::new(RTM_GETLINK, 0).with_answer(), &payload);
    }
    let mut answers = Vec::new();
    let outcomes = route()
        .execute_with(batch, |index, message| {
            let link = u32::from_ne_bytes(message.payload[4..8].try_into().unwrap());
            answers.push((index, message.kind, link));
            Ok(())
        })
        .unwrap();
    assert_eq!(answers, [(0, RTM_NEWLINK, 1), (2, RTM_NEWLINK, 1)]);
    assert!(outcomes[0].is_ok() && outcomes[1].is_err() && outcomes[2].is_ok());
}

#[test]
fn connection_tracking_can_be_read_and_changed() {
    const CT_GET: u16 = 0x0101;
    const CT_DELETE: u16 = 0x0102;
    let mut connection = Connection::open(NetlinkProtocol::NETFILTER, &Options::default()).unwrap();
    let ipv4 = [2, 0, 0, 0];
    let table = connection.dump(Request::new(CT_GET, 0), &ipv4, |_| Ok(Some(())));
    assert!(table.is_ok(), "{table:?}");
    // Deleting a connection that does not exist.
    let mut payload = Vec::new();
    let mut scratch =
        netlink_pipeline::Datagram::new(netlink_pipeline::Limits::default(), usize::MAX);
    let fill = |out: &mut Writer<'_>| {
        out.bytes(&ipv4);
        out.nested(1, |out| {
            out.nested(1, |out| {
                out.attribute(1, &[192, 0, 2, 1]);
                out.attribute(2, &[192, 0, 2, 2]);
            });
            out.nested(2, |out| {
                out.attribute(1, &[17]);
                out.attribute(2, &[0, 53]);
                out.attribute(3, &[0, 53]);
            });
        });
    };
    scratch.push(Request::new(CT_DELETE, 0), fill).unwrap();
    payload.extend_from_slice(&scratch.seal(1)[16..]);
    let mut batch = Batch::new();
    batch.push(Request::new(CT_DELETE, 0), &payload);
    let outcomes = connection.execute(batch).unwrap();
    let Err(failure) = &outcomes[0] else {
        panic!("a connection that does not exist was deleted");
    };
    assert!(matches!(&**failure, RequestError::Refused(nack) if nack.errno == libc::ENOENT));
}

#[test]
fn notifications_arrive_and_their_loss_is_reported() {
    let mut options = Options::default();
    let mut links = Subscription::open(NetlinkProtocol::ROUTE, &[LINKS], &options).unwrap();
    run("ip", "link add eth7 type dummy");
    let message = links.receive().unwrap().next().unwrap().unwrap();
    assert_eq!((message.kind, message.sequence != 1), (RTM_NEWLINK, true));

    options.receive_buffer = 1;
    let mut routes = Subscription::open(NetlinkProtocol::ROUTE, &[ROUTES], &options).unwrap();
    let mut batch = Batch::new();
    for number in 0..200 {
        batch.push(Request::new(RTM_NEWROUTE, NEW), &local_route(number, 32));
    }
    route().execute(batch).unwrap();
    assert!(matches!(routes.receive(), Err(Error::Overrun)));
    // Notifications that were queued before the loss, and then those after it.
    assert!(routes.receive().is_ok());
}
