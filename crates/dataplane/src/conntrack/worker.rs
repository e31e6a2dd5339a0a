//! The thread that processes batches: for each family one read of the table, then the deletions.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Instant;

use netlink_pipeline::{Batch, Connection, Message, Request, RequestError, RequestResult};
use rustix::io::Errno;
use topology_core::model::Family;

use super::batch::{DeletionCounts, Flow, FlowDeletion, FlowDeletionError};
use super::wire::{self, Selection};

/// Processes batches until the channels are closed.
pub(super) fn work(
    mut connection: Connection,
    batches: &Receiver<BTreeSet<Flow>>,
    answers: &SyncSender<FlowDeletion>,
) {
    while let Ok(flows) = batches.recv() {
        if answers.send(clean(&mut connection, &flows)).is_err() {
            return;
        }
    }
}

/// Deletes the entries of each family, of the next one also after a refusal.
fn clean(connection: &mut Connection, flows: &BTreeSet<Flow>) -> FlowDeletion {
    let mut cleanings = Vec::new();
    let mut refusals = Vec::new();
    for selection in selections(flows) {
        let began = Instant::now();
        let decode = |message: Message<'_>| {
            Ok(wire::parse(message.payload).filter(|entry| is_in(flows, &entry.flow)))
        };
        let request = Request::new(wire::GET, 0);
        let entries = connection
            .dump(request, &wire::list(&selection), decode)
            .map_err(failed)?;
        let results = delete(connection, &entries).map_err(failed)?;
        refusals.extend(first_refusal(&results).map(failed));
        cleanings.push(DeletionCounts {
            family: selection.family(),
            deleted: results.iter().filter(|result| result.is_ok()).count(),
            took: began.elapsed(),
        });
    }
    refusals.into_iter().next().map_or(Ok(cleanings), Err)
}

fn failed(error: impl std::fmt::Display) -> FlowDeletionError {
    FlowDeletionError::Kernel(error.to_string())
}

fn is_in(flows: &BTreeSet<Flow>, flow: &Flow) -> bool {
    flows.contains(flow) || flows.contains(&Flow::of_server(flow.server))
}

/// The requests for a batch: one for each family, as narrow as the flows permit.
fn selections(flows: &BTreeSet<Flow>) -> Vec<Selection> {
    let of = |family| {
        let mut services = flows
            .iter()
            .map(|flow| flow.service)
            .filter(|(address, _)| Family::of(*address) == family);
        let (address, port) = services.next()?;
        let first = if address.is_unspecified() {
            Selection::Family(family)
        } else {
            Selection::Port(address, port)
        };
        Some(services.fold(first, |selection, (address, port)| {
            selection.with(address, port)
        }))
    };
    [Family::V4, Family::V6]
        .into_iter()
        .filter_map(of)
        .collect()
}

fn delete(
    connection: &mut Connection,
    entries: &[wire::ConntrackEntry],
) -> Result<Vec<RequestResult>, netlink_pipeline::Error> {
    let mut batch = Batch::new();
    for entry in entries {
        batch.push(Request::new(wire::DELETE, 0), &wire::delete(entry));
    }
    connection.execute(batch)
}

/// The first deletion that failed while the entry exists. `ENOENT` is not a failure: the entry expired meanwhile.
fn first_refusal(results: &[RequestResult]) -> Option<&RequestError> {
    let is_gone = |error: &RequestError| matches!(error, RequestError::Refused(nack) if nack.errno == Errno::NOENT.raw_os_error());
    let mut failures = results
        .iter()
        .filter_map(|result| result.as_ref().err().map(Box::as_ref));
    failures.find(|error| !is_gone(error))
}

#[cfg(test)]
mod tests {
    use netlink_pipeline::{Conversation as _, Limits, Next, Pipeline, Sequence};

    use super::*;

    /// The results of deletions that the kernel answers with these error numbers, 0 for success.
    fn results(errnos: &[i32]) -> Vec<RequestResult> {
        let mut batch = Batch::new();
        for _ in errnos {
            batch.push(Request::new(wire::DELETE, 0), &[0; 4]);
        }
        let mut pipeline = Pipeline::new(batch, Limits::default(), 1 << 20, |_, _| Ok(()));
        assert!(matches!(pipeline.next(&mut Sequence::new()), Next::Send(_)));
        for (sequence, errno) in (1_u32..).zip(errnos) {
            // `struct nlmsghdr` of `NLMSG_ERROR`, then the negative error number.
            let mut error = 20_u32.to_ne_bytes().to_vec();
            error.extend([2_u16.to_ne_bytes(), [0; 2]].concat());
            error.extend([sequence.to_ne_bytes(), [0; 4], (-errno).to_ne_bytes()].concat());
            pipeline.received(&error).unwrap();
        }
        pipeline.into_results()
    }

    #[test]
    fn an_expired_entry_is_no_failure_and_any_other_refusal_is() {
        let [gone, busy] = [Errno::NOENT, Errno::BUSY].map(Errno::raw_os_error);
        assert_eq!(first_refusal(&results(&[0, gone, 0])), None);
        let refused = results(&[0, gone, busy, gone]);
        let refusal = first_refusal(&refused).unwrap().to_string();
        assert!(refusal.contains("resource busy"), "{refusal}");
        let unknown = [Ok(()), Err(Box::new(RequestError::Unknown))];
        assert_eq!(first_refusal(&unknown), Some(&RequestError::Unknown));
    }

    fn flow(service: &str, port: u16) -> Flow {
        Flow {
            service: (service.parse().unwrap(), port),
            server: ([10, 244, 1, 1].into(), port),
        }
    }

    #[test]
    fn d13_a_batch_is_one_dump_per_family_for_any_number_of_ports() {
        let ports = 1..=2_000;
        let one: BTreeSet<Flow> = ports.clone().map(|port| flow("10.96.0.10", port)).collect();
        let v4 = "10.96.0.10".parse().unwrap();
        assert_eq!(selections(&one), [Selection::Address(v4)]);
        let mut all = one;
        all.extend(ports.map(|port| flow("fd00::a", port)));
        all.insert(flow("10.96.0.11", 53));
        let whole = [Family::V4, Family::V6].map(Selection::Family);
        assert_eq!(selections(&all)[0], whole[0]);
        assert_eq!(
            selections(&all)[1],
            Selection::Address("fd00::a".parse().unwrap())
        );
        all.insert(flow("fd00::b", 53));
        assert_eq!(selections(&all), whole);
    }

    #[test]
    fn the_flows_of_a_server_are_in_a_batch_with_any_destination() {
        let dns = flow("10.96.0.10", 53);
        let all = BTreeSet::from([Flow::of_server(dns.server)]);
        assert_eq!(selections(&all), [Selection::Family(Family::V4)]);
        assert!(is_in(&all, &dns) && is_in(&all, &flow("192.0.2.1", 53)));
        assert!(!is_in(&all, &flow("10.96.0.10", 54)));
        let one = BTreeSet::from([dns]);
        assert!(is_in(&one, &dns) && !is_in(&one, &flow("192.0.2.1", 53)));
        let both = BTreeSet::from([dns, Flow::of_server(dns.server)]);
        assert_eq!(selections(&both), [Selection::Family(Family::V4)]);
    }

    #[test]
    fn a_single_port_is_selected_by_its_number() {
        let two = BTreeSet::from([
            flow("10.96.0.10", 53),
            Flow {
                server: ([10, 244, 1, 2].into(), 53),
                ..flow("10.96.0.10", 53)
            },
        ]);
        let port = Selection::Port("10.96.0.10".parse().unwrap(), 53);
        assert_eq!(selections(&two), [port]);
        assert_eq!(selections(&BTreeSet::new()), []);
    }
}
