//! The thread that processes batches: for each family one read of the table, then the deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Instant;

use netlink_pipeline::{Batch, Connection, Message, Request, RequestError, RequestResult};
use rustix::io::Errno;
use topology_core::model::Family;

use super::batch::{DeletedFlows, DeletionCounts, Flow, FlowDeletion, FlowDeletionError};
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

/// Deletes the entries of each family.
fn clean(connection: &mut Connection, flows: &BTreeSet<Flow>) -> FlowDeletion {
    let mut deleted = DeletedFlows::default();
    for selection in selections(flows) {
        let began = Instant::now();
        let decode = |message: Message<'_>| {
            let entry = wire::parse(message.payload);
            Ok(entry.filter(|entry| requested(flows, &entry.flow).next().is_some()))
        };
        let request = Request::new(wire::GET, 0);
        let entries = connection
            .dump(request, &wire::list(&selection), decode)
            .map_err(failed)?;
        let results = delete(connection, &entries).map_err(failed)?;
        deleted.refused.extend(refused(flows, &entries, &results));
        deleted.counts.push(DeletionCounts {
            family: selection.family(),
            deleted: results.iter().filter(|result| result.is_ok()).count(),
            took: began.elapsed(),
        });
    }
    Ok(deleted)
}

fn failed(error: impl std::fmt::Display) -> FlowDeletionError {
    FlowDeletionError::Kernel(error.to_string())
}

/// The flows of a batch that have the entry of this flow.
fn requested(flows: &BTreeSet<Flow>, flow: &Flow) -> impl Iterator<Item = Flow> {
    let either = [*flow, Flow::of_server(flow.server)].into_iter();
    either.filter(move |flow| flows.contains(flow))
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

/// The flows of a batch with an entry that the kernel did not delete.
fn refused(
    flows: &BTreeSet<Flow>,
    entries: &[wire::ConntrackEntry],
    results: &[RequestResult],
) -> BTreeMap<Flow, String> {
    let results = entries.iter().zip(results);
    let refusals = results.filter_map(|(entry, result)| Some((entry, refusal(result)?)));
    let refused = refusals.flat_map(|(entry, error)| {
        let error = error.to_string();
        requested(flows, &entry.flow).map(move |flow| (flow, error.clone()))
    });
    refused.collect()
}

/// Why an entry still exists. `ENOENT` is not a failure: it expired meanwhile.
fn refusal(result: &RequestResult) -> Option<&RequestError> {
    let is_gone = |error: &RequestError| matches!(error, RequestError::Refused(nack) if nack.errno == Errno::NOENT.raw_os_error());
    let error = result.as_ref().err()?;
    Some(error.as_ref()).filter(|error| !is_gone(error))
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
        let flows: BTreeSet<Flow> = (1..=4).map(|port| flow("10.96.0.10", port)).collect();
        let entries: Vec<_> = flows
            .iter()
            .copied()
            .map(wire::ConntrackEntry::of)
            .collect();
        let failed = |results: &[RequestResult]| refused(&flows, &entries, results);
        assert_eq!(failed(&results(&[0, gone, 0, 0])), BTreeMap::new());
        let third = flow("10.96.0.10", 3);
        let one = failed(&results(&[0, gone, busy, gone]));
        assert_eq!(one.keys().collect::<Vec<_>>(), [&third]);
        assert!(one[&third].contains("resource busy"), "{one:?}");
        let unknown = Err(Box::new(RequestError::Unknown));
        assert_eq!(refusal(&unknown), Some(&RequestError::Unknown));
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
        let requested =
            |flows: &BTreeSet<Flow>, flow: &Flow| -> Vec<Flow> { requested(flows, flow).collect() };
        let any = Flow::of_server(dns.server);
        assert_eq!(requested(&all, &dns), [any]);
        assert_eq!(requested(&all, &flow("192.0.2.1", 53)), [any]);
        assert_eq!(requested(&all, &flow("10.96.0.10", 54)), []);
        let one = BTreeSet::from([dns]);
        assert_eq!(requested(&one, &dns), [dns]);
        assert_eq!(requested(&one, &flow("192.0.2.1", 53)), []);
        let both = BTreeSet::from([dns, any]);
        assert_eq!(requested(&both, &dns), [dns, any]);
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
