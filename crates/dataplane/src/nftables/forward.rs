//! Looks for chains that drop forwarded packets by default.
//!
//! Replies of endpoints to pods are forwarded, so such a chain ends connections through Services unless one of its rules
//! accepts them. Docker sets that policy. Chains are listed over netlink, in a task of their own, and only after a change
//! of the ruleset. A chain that accepts by default and ends with a rule that drops is not found, because rules are not
//! read. Numbers are those of `include/uapi/linux/netfilter/nf_tables.h` and `include/uapi/linux/netfilter.h`.

use std::path::Path;
use std::time::Duration;

use netlink_pipeline::{
    AsyncConnection, Attributes, DecodeError, Error, Message, NetlinkProtocol, Options, Request,
};
use tokio::sync::watch;

use super::foreign::family_name;
use super::generation::Generation;
use super::legacy;

/// `NFT_MSG_GETCHAIN` of the subsystem `NFNL_SUBSYS_NFTABLES`.
const GET: u16 = 0x0a04;
/// `struct nfgenmsg`: `AF_UNSPEC`, version, resource id.
const ANY_FAMILY: [u8; 4] = [0; 4];

const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_HOOK_HOOKNUM: u16 = 1;

/// `NF_INET_FORWARD`.
const FORWARD: u32 = 2;
/// `NF_DROP`.
const DROP: u32 = 0;
/// `NFPROTO_INET`, `NFPROTO_IPV4` and `NFPROTO_IPV6`.
const IP_FAMILIES: [u8; 3] = [1, 2, 10];

/// Where the kernel lists the tables of legacy iptables.
const NET: &str = "/proc/net";
/// The programs of legacy iptables are found on the `PATH`.
const ON_PATH: &str = "";

/// Most chains that a warning names.
const MOST_NAMES: usize = 3;

/// Looks every `period` until `news` has no receiver, and sends the warnings, one line each.
pub async fn watch_forwarding(period: Duration, news: watch::Sender<Vec<String>>) {
    let opened = AsyncConnection::open(NetlinkProtocol::NETFILTER, &Options::default());
    // Without netfilter there are no chains.
    let Ok(mut connection) = opened else {
        return news.closed().await;
    };
    let (mut seen, mut chains) = (None, Vec::new());
    while !news.is_closed() {
        let generation = Generation::read(&mut connection).await.ok().flatten();
        if generation.is_none() || generation != seen {
            // A list that fails says nothing, and the next check tries again.
            if let Ok(dropping) = dropping(&mut connection).await {
                (seen, chains) = (generation, dropping);
            }
        }
        let mut lines: Vec<String> = line(&chains).into_iter().collect();
        lines.extend(legacy::lines(Path::new(NET), ON_PATH).await);
        news.send_if_modified(|last| {
            let differs = *last != lines;
            *last = lines;
            differs
        });
        tokio::time::sleep(period).await;
    }
}

/// The chains in the notation of `nft`: `ip filter FORWARD`.
async fn dropping(connection: &mut AsyncConnection) -> Result<Vec<String>, Error> {
    let request = Request::new(GET, 0);
    let mut chains = connection.dump(request, &ANY_FAMILY, parse).await?;
    chains.sort_unstable();
    Ok(chains)
}

fn line(chains: &[String]) -> Option<String> {
    let first = chains.first()?;
    let names = chains.iter().take(MOST_NAMES);
    let names: Vec<String> = names.map(|chain| format!("`{chain}`")).collect();
    let more = match chains.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "forwarded packets are dropped by default, by the policy of the chain {}{more}: connections of pods to Services \
         fail, unless a rule of it accepts replies; see `nft list chain {first}`, and accept them, for example with \
         `nft insert rule {first} ct state established,related accept`",
        names.join(", ")
    ))
}

/// The chain, if it is at the hook `forward` of an IP family and its policy is `drop`.
fn parse(message: Message<'_>) -> Result<Option<String>, DecodeError> {
    let Some((&[family, ..], attributes)) = message.payload.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let (mut table, mut name, mut hook, mut policy) = (None, None, None, None);
    for attribute in Attributes::new(attributes) {
        let attribute = attribute?;
        let value = attribute.value;
        match attribute.number() {
            NFTA_CHAIN_TABLE => table = Some(text(value)),
            NFTA_CHAIN_NAME => name = Some(text(value)),
            NFTA_CHAIN_HOOK => hook = hook_number(value)?,
            NFTA_CHAIN_POLICY => policy = number(value),
            _ => {}
        }
    }
    let (Some(table), Some(name)) = (table, name) else {
        return Ok(None);
    };
    let drops = IP_FAMILIES.contains(&family) && hook == Some(FORWARD) && policy == Some(DROP);
    Ok(drops.then(|| format!("{} {table} {name}", family_name(family))))
}

fn hook_number(nested: &[u8]) -> Result<Option<u32>, DecodeError> {
    for attribute in Attributes::new(nested) {
        let attribute = attribute?;
        if attribute.number() == NFTA_HOOK_HOOKNUM {
            return Ok(number(attribute.value));
        }
    }
    Ok(None)
}

fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

fn text(value: &[u8]) -> String {
    let text = value.strip_suffix(&[0]).unwrap_or(value);
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use netlink_pipeline::Writer;

    use super::*;

    /// The kernel's description of a chain `filter FORWARD` (`nf_tables_fill_chain_info`).
    fn read(family: u8, hook: Option<u32>, policy: u32) -> Option<String> {
        let mut payload = vec![family, 0, 0, 7];
        let mut out = Writer::new(&mut payload);
        out.text(NFTA_CHAIN_TABLE, "filter");
        out.text(NFTA_CHAIN_NAME, "FORWARD");
        if let Some(hook) = hook {
            out.nested(NFTA_CHAIN_HOOK, |out| {
                out.fixed(NFTA_HOOK_HOOKNUM, hook.to_be_bytes());
                out.fixed(2, 0_u32.to_be_bytes());
            });
            out.fixed(NFTA_CHAIN_POLICY, policy.to_be_bytes());
        }
        let length = u32::try_from(16 + payload.len()).unwrap().to_ne_bytes();
        let datagram = [&length[..], &[0; 12], &payload].concat();
        let message = netlink_pipeline::Messages::new(&datagram).next();
        parse(message.unwrap().unwrap()).unwrap()
    }

    #[test]
    fn only_chains_that_drop_forwarded_ip_packets_are_reported() {
        let chain = |family: &str| Some(format!("{family} filter FORWARD"));
        assert_eq!(read(2, Some(FORWARD), DROP), chain("ip"));
        assert_eq!(read(10, Some(FORWARD), DROP), chain("ip6"));
        assert_eq!(read(1, Some(FORWARD), DROP), chain("inet"));
        assert_eq!(read(2, Some(FORWARD), 1), None, "accept");
        assert_eq!(read(2, Some(1), DROP), None, "the hook input");
        assert_eq!(read(7, Some(FORWARD), DROP), None, "a bridge");
        assert_eq!(read(2, None, DROP), None, "a chain that others jump to");
    }

    #[test]
    fn the_warning_names_three_chains_and_a_remedy() {
        assert_eq!(line(&[]), None);
        let chains = ["ip a b", "ip c d", "ip e f", "ip g h"].map(str::to_owned);
        let text = line(&chains).unwrap();
        assert!(
            text.contains("`ip a b`, `ip c d`, `ip e f` and 1 more"),
            "{text}"
        );
        assert!(text.contains("nft insert rule ip a b ct state"), "{text}");
    }
}
