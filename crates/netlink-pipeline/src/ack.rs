//! Decodes errors and acknowledgements (`struct nlmsgerr`), with the texts of extended acknowledgements.

use netlink_packet_core::{NLM_F_ACK_TLVS, NLM_F_CAPPED};

use crate::Nack;
use crate::attribute::{Attributes, align};
use crate::decode_error::DecodeError;
use crate::message::{HEADER, Message};
use crate::value::AttributeValue;

/// Bytes of the error number.
const ERRNO: usize = 4;

const NLMSGERR_ATTR_MSG: u16 = 1;
const NLMSGERR_ATTR_OFFS: u16 = 2;
const NLMSGERR_ATTR_MISS_TYPE: u16 = 5;

/// Decodes an `NLMSG_ERROR`; `None` for an acknowledgement.
pub(crate) fn read_error(message: &Message<'_>) -> Result<Option<Nack>, DecodeError> {
    let Some(mut nack) = errno(message, "NLMSG_ERROR")? else {
        return Ok(None);
    };
    if message.flags & NLM_F_ACK_TLVS != 0 {
        add_extended_ack(&mut nack, tlvs_of_error(message));
    }
    Ok(Some(nack))
}

/// Decodes an `NLMSG_DONE`; `None` if the dump is complete.
pub(crate) fn read_done(message: &Message<'_>) -> Result<Option<Nack>, DecodeError> {
    if message.payload.is_empty() {
        return Ok(None);
    }
    let Some(mut nack) = errno(message, "NLMSG_DONE")? else {
        return Ok(None);
    };
    if message.flags & NLM_F_ACK_TLVS != 0 {
        add_extended_ack(&mut nack, message.payload.get(ERRNO..).unwrap_or_default());
    }
    Ok(Some(nack))
}

/// Reads the error number, which the kernel sends as a negative number. `NLMSG_DONE` may carry a positive one, a
/// length.
fn errno(message: &Message<'_>, what: &'static str) -> Result<Option<Nack>, DecodeError> {
    let number = u32::read(message.payload, what)?.cast_signed();
    Ok((number < 0).then(|| Nack {
        errno: number.saturating_neg(),
        message: None,
        offset: None,
        missing: None,
    }))
}

/// Returns the attributes after the refused message, which the kernel repeats with or without its payload.
fn tlvs_of_error<'a>(message: &Message<'a>) -> &'a [u8] {
    let refused = message.payload.get(ERRNO..).unwrap_or_default();
    let length = if message.flags & NLM_F_CAPPED != 0 {
        HEADER
    } else {
        let length = u32::read(refused, "NLMSG_ERROR").unwrap_or(0);
        align(
            usize::try_from(length)
                .unwrap_or(usize::MAX)
                .min(refused.len()),
        )
    };
    refused.get(length..).unwrap_or_default()
}

/// Adds the kernel's explanations. They are informative only, so attributes that cannot be decoded are left out.
fn add_extended_ack(nack: &mut Nack, tlvs: &[u8]) {
    for attribute in Attributes::new(tlvs).map_while(Result::ok) {
        match attribute.number() {
            NLMSGERR_ATTR_MSG => {
                let text = attribute.value.split(|byte| *byte == 0).next();
                let text = String::from_utf8_lossy(text.unwrap_or_default());
                nack.message = Some(text.into());
            }
            NLMSGERR_ATTR_OFFS => nack.offset = u32::read(attribute.value, "").ok(),
            NLMSGERR_ATTR_MISS_TYPE => nack.missing = u32::read(attribute.value, "").ok(),
            _ => {}
        }
    }
}
