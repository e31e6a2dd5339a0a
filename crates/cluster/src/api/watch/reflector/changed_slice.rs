//! Sends changed objects; of an EndpointSlice also when the cause of its change was.

use object_tree::Node;

use super::Reflector;
use crate::convert;
use crate::event::{EndpointTrigger, Event};
use crate::object::{Object, ObjectKey};

impl Reflector {
    /// Sends an object that changed, as the server wrote it in `node`.
    pub(super) fn send_changed(
        &mut self,
        key: &ObjectKey,
        object: Object,
        was_sent: bool,
        node: &Node,
    ) {
        let trigger = self.trigger(&object, node);
        self.send_or_hold(key, object, was_sent);
        self.events.extend(trigger.map(Event::Triggered));
    }

    /// The cause of a change after the first list.
    fn trigger(&self, object: &Object, node: &Node) -> Option<EndpointTrigger> {
        let Object::EndpointSlice(slice) = object else {
            return None;
        };
        self.completeness?;
        Some(EndpointTrigger {
            family: slice.family,
            at: convert::trigger_time(node)?,
        })
    }
}
