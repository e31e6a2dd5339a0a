//! `IPVS_CMD_ATTR_TIMEOUT_*` and `IPVS_INFO_ATTR_*`.

use netlink_pipeline::{AttributeValue, DecodeError, attribute_table, require};

use super::command::CommandAttributes;
use crate::{Info, Timeouts};

attribute_table! {
    /// The attributes of the reply about the kernel's version. Their numbers overlap with the outermost ones.
    InfoAttributes {
        IPVS_INFO_ATTR_VERSION = 1 => version: u32,
        IPVS_INFO_ATTR_CONN_TAB_SIZE = 2 => connection_table_size: u32,
    }
}

/// Decodes the timeouts in a reply.
pub(crate) fn timeouts(table: &CommandAttributes<'_>) -> Timeouts {
    Timeouts {
        tcp: table.timeout_tcp,
        tcp_fin: table.timeout_tcp_fin,
        udp: table.timeout_udp,
    }
}

/// Decodes the version and table size in a reply.
pub(crate) fn info(attributes: &[u8]) -> Result<Info, DecodeError> {
    let table = InfoAttributes::read(attributes, "IPVS_CMD_SET_INFO")?;
    Ok(Info {
        version: require(table.version, "IPVS_INFO_ATTR_VERSION")?,
        connection_table_size: require(
            table.connection_table_size,
            "IPVS_INFO_ATTR_CONN_TAB_SIZE",
        )?,
    })
}
