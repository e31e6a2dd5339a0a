//! Generic netlink: the header of its messages, and the lookup of a family by name.

use std::borrow::Cow;

use crate::decode_error::DecodeError;
use crate::value::{AttributeValue, require};
use crate::writer::Writer;

/// `GENL_ID_CTRL`: the message type of the controller, which resolves family names.
pub const CONTROLLER: u16 = 0x10;

const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_VERSION: u8 = 1;
/// Bytes of `struct genlmsghdr`: command, version, two reserved.
const HEADER: usize = 4;

attribute_table! {
    /// The controller's description of a family.
    FamilyAttributes {
        CTRL_ATTR_FAMILY_ID = 1 => id: u16,
        CTRL_ATTR_FAMILY_NAME = 2 => name: Cow<'a, str>,
    }
}

/// Appends the header of a generic-netlink message.
pub fn write_header(command: u8, version: u8, out: &mut Writer<'_>) {
    out.bytes(&[command, version, 0, 0]);
}

/// Returns the attributes after the header of a generic-netlink message.
pub fn attributes(payload: &[u8]) -> Result<&[u8], DecodeError> {
    payload.get(HEADER..).ok_or(DecodeError::Short {
        what: "a generic-netlink message",
        need: HEADER,
        have: payload.len(),
    })
}

/// Appends the request for a family's number. The kernel loads the family's module if needed.
pub fn write_family_query(name: &str, out: &mut Writer<'_>) {
    write_header(CTRL_CMD_GETFAMILY, CTRL_VERSION, out);
    out.text(CTRL_ATTR_FAMILY_NAME, name);
}

/// Reads the family's number from the controller's reply.
pub fn read_family(payload: &[u8]) -> Result<u16, DecodeError> {
    let table = FamilyAttributes::read(attributes(payload)?, "CTRL_CMD_NEWFAMILY")?;
    require(table.id, "CTRL_ATTR_FAMILY_ID")
}
