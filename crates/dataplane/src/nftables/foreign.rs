//! Lists the names of the kernel's tables over netlink: `status` shows foreign ones, and must not wait for a process.
//!
//! Numbers are those of `include/uapi/linux/netfilter/nf_tables.h` and `include/uapi/linux/netfilter.h`.

use netlink_pipeline::{AsyncConnection, Attributes, DecodeError, Error, Message, Request};

use super::table::TABLE;

/// `NFT_MSG_GETTABLE` of the subsystem `NFNL_SUBSYS_NFTABLES`.
const GET: u16 = 0x0a01;
/// `struct nfgenmsg`: `AF_UNSPEC`, version, resource id.
const ANY_FAMILY: [u8; 4] = [0; 4];

const NFTA_TABLE_NAME: u16 = 1;

/// Tables of other programs in every family, in the notation of `nft list tables`: `ip kube-proxy`.
pub(super) async fn foreign(connection: &mut AsyncConnection) -> Result<Vec<String>, Error> {
    let names = connection
        .dump(Request::new(GET, 0), &ANY_FAMILY, parse)
        .await?;
    let foreign = names.into_iter().filter(|(_, name)| name != TABLE);
    Ok(foreign
        .map(|(family, name)| format!("{family} {name}"))
        .collect())
}

/// Names of the family and the table; `None` for a message without a name.
fn parse(message: Message<'_>) -> Result<Option<(String, String)>, DecodeError> {
    let Some((&[family, ..], attributes)) = message.payload.split_first_chunk::<4>() else {
        return Ok(None);
    };
    for attribute in Attributes::new(attributes) {
        let attribute = attribute?;
        if attribute.number() == NFTA_TABLE_NAME {
            let name = attribute
                .value
                .strip_suffix(&[0])
                .unwrap_or(attribute.value);
            return Ok(Some((
                family_name(family),
                String::from_utf8_lossy(name).into_owned(),
            )));
        }
    }
    Ok(None)
}

/// The name that `nft` uses for an `NFPROTO_` number, or the number.
pub(super) fn family_name(family: u8) -> String {
    let name = match family {
        1 => "inet",
        2 => "ip",
        3 => "arp",
        5 => "netdev",
        7 => "bridge",
        10 => "ip6",
        other => return other.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tables_family_and_name_are_read_and_other_messages_are_none() {
        let head = |family: u8| [family, 0, 0, 7];
        let name = [8, 0, 1, 0, b'n', b'a', b't', 0];
        let flags = [8, 0, 2, 0, 0, 0, 0, 0];
        let read = |parts: &[&[u8]]| {
            let payload = parts.concat();
            let datagram = [
                &u32::try_from(16 + payload.len()).unwrap().to_ne_bytes()[..],
                &[0; 12],
                &payload,
            ]
            .concat();
            let message = netlink_pipeline::Messages::new(&datagram).next();
            parse(message.unwrap().unwrap()).ok()
        };
        let table = |family: &str| Some(Some((family.to_owned(), "nat".to_owned())));
        assert_eq!(read(&[&head(2), &flags, &name]), table("ip"));
        assert_eq!(read(&[&head(1), &name]), table("inet"));
        assert_eq!(read(&[&head(200), &name]), table("200"));
        assert_eq!(read(&[&head(2), &flags]), Some(None));
        assert_eq!(read(&[&[2, 0]]), Some(None));
        assert_eq!(read(&[&head(2), &[80, 0, 1, 0]]), None);
    }
}
