//! The generation number of the kernel's ruleset: each transaction of any program, in any table, increases it by one.
//!
//! If it is the same as after our last write, our tables are unchanged and need not be read, which takes long with many
//! Services. Numbers are those of `include/uapi/linux/netfilter/nf_tables.h`; the kernel counts in
//! `nf_tables_commit` of `net/netfilter/nf_tables_api.c`.

use netlink_pipeline::{AsyncConnection, Attributes, Batch, DecodeError, Error, Message, Request};

/// `NFT_MSG_GETGEN` of the subsystem `NFNL_SUBSYS_NFTABLES`.
const GET: u16 = 0x0a10;
/// `struct nfgenmsg`: `AF_UNSPEC`, version, resource id.
const ANY_FAMILY: [u8; 4] = [0; 4];

const NFTA_GEN_ID: u16 = 1;

/// A generation of the kernel's ruleset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Generation(u32);

impl Generation {
    /// Reads the current generation; `None` if the kernel does not report it.
    pub(super) async fn read(connection: &mut AsyncConnection) -> Result<Option<Self>, Error> {
        let mut batch = Batch::new();
        batch.push(Request::new(GET, 0).with_answer(), &ANY_FAMILY);
        let mut answer = None;
        let read = |_, message: Message<'_>| {
            answer = Self::parse(message.payload)?;
            Ok(())
        };
        connection.execute_with(batch, read).await?;
        Ok(answer)
    }

    /// The generation after one more transaction. The kernel skips 0.
    pub(super) fn next(self) -> Self {
        Self(self.0.wrapping_add(1).max(1))
    }

    /// The generation after a number of transactions.
    pub(super) fn after(self, transactions: usize) -> Self {
        (0..transactions).fold(self, |generation, _| generation.next())
    }

    fn parse(payload: &[u8]) -> Result<Option<Self>, DecodeError> {
        let attributes = payload.get(ANY_FAMILY.len()..).unwrap_or_default();
        for attribute in Attributes::new(attributes) {
            let attribute = attribute?;
            if attribute.number() == NFTA_GEN_ID {
                let number = attribute.value.try_into().ok();
                return Ok(number.map(|bytes| Self(u32::from_be_bytes(bytes))));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of `nf_tables_fill_gen_info`: the resource id is the lower half of the number, and the id and name of
    /// the requesting process follow the number.
    #[test]
    fn the_kernels_answer_is_read_and_other_messages_are_not() {
        let head = [0, 0, 1, 7];
        let number = [8, 0, 1, 0, 0, 0, 1, 7];
        let process = [8, 0, 2, 0, 0, 0, 4, 210, 8, 0, 3, 0, b'n', b'f', b't', 0];
        let parse = |parts: &[&[u8]]| Generation::parse(&parts.concat()).ok();
        assert_eq!(
            parse(&[&head, &number, &process]),
            Some(Some(Generation(263)))
        );
        assert_eq!(parse(&[&head, &process]), Some(None));
        assert_eq!(parse(&[&head, &[6, 0, 1, 0, 1, 7, 0, 0]]), Some(None));
        assert_eq!(parse(&[&[0]]), Some(None));
        assert_eq!(parse(&[&head, &[80, 0, 1, 0]]), None);
    }

    #[test]
    fn none_is_0() {
        assert_eq!(Generation(263).next(), Generation(264));
        assert_eq!(Generation(u32::MAX).next(), Generation(1));
    }
}
