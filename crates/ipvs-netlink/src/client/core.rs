//! Implements the calls of both clients once.

use std::mem;

use super::connection::NetlinkConnection;
use super::keyed::{Keyed, has_repeats};
use crate::codec::{self, CommandSource};
use crate::error::{Attempt, AttemptObject, Cause, Verb};
use crate::wire::command::{self, Query};
use crate::{Command, Daemon, DestinationEntry, Error, Info, ServiceEntry, ServiceId, Timeouts};
use netlink_pipeline::{
    Batch, DecodeError, Dump, Message, Pipeline, Request, RequestError, RequestResult, Writer,
    generic,
};

/// `IPVS_GENL_NAME`.
const FAMILY: &str = "IPVS";

/// A connection and the number of the IPVS family.
#[derive(Debug)]
pub(super) struct Core<T> {
    connection: T,
    family: u16,
}

impl<T: NetlinkConnection> Core<T> {
    pub(super) async fn open(mut connection: T) -> Result<Self, Error> {
        let attempt = || Attempt::new(Verb::Open, AttemptObject::Family);
        match resolve(&mut connection).await {
            Ok(family) => Ok(Self { connection, family }),
            Err(cause) => Err(Error::new(attempt(), cause)),
        }
    }

    pub(super) const fn family(&self) -> u16 {
        self.family
    }

    pub(super) fn encode(&self, commands: &[Command], first: u32) -> Vec<Vec<u8>> {
        codec::encode(
            commands,
            self.family,
            self.connection.options().limits,
            first,
        )
    }

    pub(super) async fn execute(
        &mut self,
        commands: &[Command],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let outcomes = self.send(commands).await?;
        let mut results: Vec<_> = outcomes
            .into_iter()
            .zip(commands)
            .map(|(outcome, command)| outcome.map_err(|failure| describe(command, *failure)))
            .collect();
        let stale = |result: &Result<(), Error>| {
            result
                .as_ref()
                .is_err_and(|error| error.errno() == Some(libc::ENOENT))
        };
        if results.iter().any(stale) && self.family_changed().await? {
            self.resend(commands, &mut results, stale).await?;
        }
        Ok(results)
    }

    /// Sends those commands again that failed because the family was missing, and replaces their results.
    async fn resend(
        &mut self,
        commands: &[Command],
        results: &mut [Result<(), Error>],
        stale: impl Fn(&Result<(), Error>) -> bool,
    ) -> Result<(), Error> {
        let pairs = commands.iter().zip(results.iter_mut());
        let (again, places): (Vec<_>, Vec<_>) = pairs
            .filter(|(_, result)| stale(result))
            .map(|(command, result)| (command.clone(), result))
            .unzip();
        let outcomes = self.send(&again).await?;
        for ((outcome, command), place) in outcomes.into_iter().zip(&again).zip(places) {
            *place = outcome.map_err(|failure| describe(command, *failure));
        }
        Ok(())
    }

    async fn send(&mut self, commands: &[Command]) -> Result<Vec<RequestResult>, Error> {
        let source = CommandSource::new(commands, self.family);
        let limits = self.connection.options().limits;
        let buffer = self.connection.socket().receive_buffer();
        let mut pipeline = Pipeline::new(source, limits, buffer, |_, _| Ok(()));
        match self.connection.converse(&mut pipeline).await {
            Ok(()) => Ok(pipeline.into_results()),
            Err(error) => {
                let object = AttemptObject::Commands(commands.len());
                let attempt = Attempt::new(Verb::Send, object);
                Err(Error::new(attempt, Cause::from(error)))
            }
        }
    }

    pub(super) async fn services(&mut self) -> Result<Vec<ServiceEntry>, Error> {
        let attempt = Attempt::new(Verb::Read, AttemptObject::Services);
        self.dump(Query::Services, attempt, |payload| {
            codec::decode_service(payload)
        })
        .await
    }

    pub(super) async fn service(&mut self, id: &ServiceId) -> Result<ServiceEntry, Error> {
        let attempt = Attempt::new(Verb::Read, AttemptObject::Service(*id));
        self.request(Query::Service(*id), attempt, codec::decode_service)
            .await
    }

    pub(super) async fn destinations(
        &mut self,
        id: &ServiceId,
    ) -> Result<Vec<DestinationEntry>, Error> {
        let destinations = self.destinations_if_any(id).await?;
        if destinations.is_empty() {
            // For a service that does not exist the kernel replies with an empty list.
            self.service(id).await?;
        }
        Ok(destinations)
    }

    pub(super) async fn dump_all(
        &mut self,
    ) -> Result<Vec<(ServiceEntry, Vec<DestinationEntry>)>, Error> {
        let services = self.services().await?;
        let mut everything = Vec::with_capacity(services.len());
        for service in services {
            let destinations = self.destinations_if_any(&service.service.id).await?;
            everything.push((service, destinations));
        }
        Ok(everything)
    }

    async fn destinations_if_any(
        &mut self,
        id: &ServiceId,
    ) -> Result<Vec<DestinationEntry>, Error> {
        let attempt = Attempt::new(Verb::Read, AttemptObject::Destinations(*id));
        let family = id.family();
        self.dump(Query::Destinations(*id), attempt, |payload| {
            codec::decode_destination(payload, family)
        })
        .await
    }

    pub(super) async fn daemons(&mut self) -> Result<Vec<Daemon>, Error> {
        let attempt = Attempt::new(Verb::Read, AttemptObject::Daemons);
        self.dump(Query::Daemons, attempt, codec::decode_daemon)
            .await
    }

    pub(super) async fn timeouts(&mut self) -> Result<Timeouts, Error> {
        let attempt = Attempt::new(Verb::Read, AttemptObject::Timeouts);
        self.request(Query::Timeouts, attempt, codec::decode_timeouts)
            .await
    }

    pub(super) async fn info(&mut self) -> Result<Info, Error> {
        let attempt = Attempt::new(Verb::Read, AttemptObject::Info);
        self.request(Query::Info, attempt, codec::decode_info).await
    }

    /// Sends a query that has one reply.
    async fn request<R: Send>(
        &mut self,
        query: Query,
        attempt: Attempt,
        decode: fn(&[u8]) -> Result<R, DecodeError>,
    ) -> Result<R, Error> {
        let mut result = request_once(&mut self.connection, self.family, &query, decode).await;
        if is_missing(&result) && self.family_changed().await? {
            result = request_once(&mut self.connection, self.family, &query, decode).await;
        }
        result.map_err(|cause| Error::new(attempt, cause))
    }

    /// Sends a query that dumps a table.
    async fn dump<R: Keyed + Send>(
        &mut self,
        query: Query,
        attempt: Attempt,
        decode: impl Fn(&[u8]) -> Result<R, DecodeError> + Send + Sync,
    ) -> Result<Vec<R>, Error> {
        let mut result = dump_once(&mut self.connection, self.family, &query, &decode).await;
        if is_missing(&result) && self.family_changed().await? {
            result = dump_once(&mut self.connection, self.family, &query, &decode).await;
        }
        result.map_err(|cause| Error::new(attempt, cause))
    }

    /// Looks up the family's number again; returns whether it changed, as after a reload of the module.
    async fn family_changed(&mut self) -> Result<bool, Error> {
        match resolve(&mut self.connection).await {
            Ok(family) => Ok(mem::replace(&mut self.family, family) != family),
            Err(cause) => {
                let attempt = Attempt::new(Verb::Open, AttemptObject::Family);
                Err(Error::new(attempt, cause))
            }
        }
    }
}

/// Looks up the number of the IPVS family. The kernel loads the module if it can.
async fn resolve(connection: &mut impl NetlinkConnection) -> Result<u16, Cause> {
    let request = Request::new(generic::CONTROLLER, 0).with_answer();
    let fill = |out: &mut Writer<'_>| generic::write_family_query(FAMILY, out);
    match exchange(connection, request, fill, generic::read_family).await {
        Err(Cause::Refused(nack)) if nack.errno == libc::ENOENT => Err(Cause::NoFamily),
        result => result,
    }
}

async fn request_once<R: Send>(
    connection: &mut impl NetlinkConnection,
    family: u16,
    query: &Query,
    decode: fn(&[u8]) -> Result<R, DecodeError>,
) -> Result<R, Cause> {
    let request = Request::new(family, 0).with_answer();
    exchange(
        connection,
        request,
        |out| command::write_query(query, out),
        decode,
    )
    .await
}

/// Dumps a table, and repeats the dump if the kernel reports a change or an entry came twice, because then the table
/// changed meanwhile. Both count as attempts.
async fn dump_once<R: Keyed + Send>(
    connection: &mut impl NetlinkConnection,
    family: u16,
    query: &Query,
    decode: &(impl Fn(&[u8]) -> Result<R, DecodeError> + Send + Sync),
) -> Result<Vec<R>, Cause> {
    let attempts = connection.options().dump_attempts.max(1);
    let mut failure = netlink_pipeline::Error::Interrupted { attempts };
    for _ in 0..attempts {
        let fill = |out: &mut Writer<'_>| command::write_query(query, out);
        let decode_message = |message: Message<'_>| decode(message.payload).map(Some);
        let mut dump = Dump::new(Request::new(family, 0), fill, 1, decode_message)
            .map_err(Cause::Unsendable)?;
        match connection.converse(&mut dump).await {
            Ok(()) => {}
            Err(netlink_pipeline::Error::Interrupted { .. }) => continue,
            Err(error @ netlink_pipeline::Error::Overrun) => {
                failure = error;
                continue;
            }
            Err(error) => return Err(Cause::from(error)),
        }
        let in_parts = dump.is_multipart();
        let items = dump.into_items();
        if !in_parts || !has_repeats(&items) {
            return Ok(items);
        }
    }
    Err(Cause::Transport(failure))
}

/// Sends a request and returns its one reply.
async fn exchange<R: Send>(
    connection: &mut impl NetlinkConnection,
    request: Request,
    fill: impl FnOnce(&mut Writer<'_>),
    decode: fn(&[u8]) -> Result<R, DecodeError>,
) -> Result<R, Cause> {
    let mut payload = Vec::new();
    fill(&mut Writer::new(&mut payload));
    let mut batch = Batch::new();
    batch.push(request, &payload);
    let mut answer = None;
    let limits = connection.options().limits;
    let buffer = connection.socket().receive_buffer();
    let mut pipeline = Pipeline::new(batch, limits, buffer, |_, message: Message<'_>| {
        answer = Some(decode(message.payload)?);
        Ok(())
    });
    connection
        .converse(&mut pipeline)
        .await
        .map_err(Cause::from)?;
    let outcome = pipeline.into_results().pop();
    match outcome {
        Some(Err(failure)) => Err(Cause::from(*failure)),
        _ => answer.ok_or(Cause::NoAnswer),
    }
}

/// Whether the kernel reports that something does not exist, which may be the family.
fn is_missing<R>(result: &Result<R, Cause>) -> bool {
    match result {
        Err(Cause::Refused(nack)) => nack.errno == libc::ENOENT,
        _ => false,
    }
}

fn describe(command: &Command, failure: RequestError) -> Error {
    Error::new(Attempt::of(command), Cause::from(failure))
}

#[cfg(test)]
mod tests;
