//! Errors and their explanations.

use netlink_packet_core::NLMSG_ERROR;

use super::kernel::reply;
use crate::message::header;
use crate::{Message, Messages, Nack, ack};

const CAPPED: u16 = 0x100;
const TLVS: u16 = 0x200;

fn read(message: &[u8]) -> Option<Nack> {
    let message: Message<'_> = Messages::new(message).next().unwrap().unwrap();
    ack::read_error(&message).unwrap()
}

/// The attributes of an extended acknowledgement: a text, an offset and the type of a missing attribute.
fn words() -> Vec<u8> {
    let mut tlvs = vec![9, 0, 1, 0];
    tlvs.extend_from_slice(b"oops\0\0\0\0");
    tlvs.extend_from_slice(&[8, 0, 2, 0, 20, 0, 0, 0]);
    tlvs.extend_from_slice(&[8, 0, 5, 0, 3, 0, 0, 0]);
    tlvs
}

#[test]
fn the_kernels_words_are_found_behind_a_request_without_payload() {
    let mut payload = (-22_i32).to_ne_bytes().to_vec();
    payload.extend_from_slice(&header(400, 0x22, 5, 1));
    payload.extend_from_slice(&words());
    let nack = read(&reply(NLMSG_ERROR, CAPPED | TLVS, 1, &payload)).unwrap();
    assert_eq!((nack.errno, nack.message.as_deref()), (22, Some("oops")));
    assert_eq!((nack.offset, nack.missing), (Some(20), Some(3)));
}

#[test]
fn the_kernels_words_are_found_behind_a_request_with_payload() {
    let mut payload = (-22_i32).to_ne_bytes().to_vec();
    payload.extend_from_slice(&header(21, 0x22, 5, 1));
    payload.extend_from_slice(&[1, 2, 3, 4, 5, 0, 0, 0]);
    payload.extend_from_slice(&words());
    let nack = read(&reply(NLMSG_ERROR, TLVS, 1, &payload)).unwrap();
    assert_eq!(nack.message.as_deref(), Some("oops"));
}

#[test]
fn words_that_cannot_be_read_do_not_hide_the_refusal() {
    let mut payload = (-1_i32).to_ne_bytes().to_vec();
    payload.extend_from_slice(&header(16, 0x22, 5, 1));
    payload.extend_from_slice(&[200, 0, 1, 0]);
    let nack = read(&reply(NLMSG_ERROR, CAPPED | TLVS, 1, &payload)).unwrap();
    assert_eq!((nack.errno, nack.message), (1, None));
}

#[test]
fn an_error_number_of_zero_is_an_acknowledgement() {
    assert_eq!(read(&super::kernel::error(0, 1)), None);
}

#[test]
fn the_smallest_number_there_is_does_not_overflow() {
    let mut payload = i32::MIN.to_ne_bytes().to_vec();
    payload.extend_from_slice(&header(16, 0, 0, 1));
    assert_eq!(
        read(&reply(NLMSG_ERROR, 0, 1, &payload)).unwrap().errno,
        i32::MAX
    );
}
