//! Generic netlink: the header of its messages, and the lookup of a family by name.

use std::borrow::Cow;

use crate::decode_error::DecodeError;
use crate::value::{Value, require};
use crate::writer::Writer;

/// `GENL_ID_CTRL`: the message type of the family that knows the families.
pub const CONTROLLER: u16 = 0x10;

const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_VERSION: u8 = 1;
/// Bytes of `struct genlmsghdr`: command, version, two reserved.
const HEADER: usize = 4;

attribute_table! {
    /// What the controller says about a family.
    FamilyAttributes {
        CTRL_ATTR_FAMILY_ID = 1 => id: u16,
        CTRL_ATTR_FAMILY_NAME = 2 => name: Cow<'a, str>,
    }
}

/// Appends the header of a generic-netlink message.
pub fn write_header(command: u8, version: u8, out: &mut Writer<'_>) {
    out.bytes(&[command, version, 0, 0]);
}

/// The attributes after the header of a generic-netlink message.
pub fn attributes(payload: &[u8]) -> Result<&[u8], DecodeError> {
    payload.get(HEADER..).ok_or(DecodeError::Short {
        what: "a generic-netlink message",
        need: HEADER,
        have: payload.len(),
    })
}

/// Appends the question for a family's number. The kernel loads the family's module if it must.
pub fn write_family_query(name: &str, out: &mut Writer<'_>) {
    write_header(CTRL_CMD_GETFAMILY, CTRL_VERSION, out);
    out.text(CTRL_ATTR_FAMILY_NAME, name);
}

/// The family's number in an answer of the controller.
pub fn read_family(payload: &[u8]) -> Result<u16, DecodeError> {
    let table = FamilyAttributes::read(attributes(payload)?, "CTRL_CMD_NEWFAMILY")?;
    require(table.id, "CTRL_ATTR_FAMILY_ID")
}
