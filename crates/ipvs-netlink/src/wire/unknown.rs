//! Unknown attributes on their way in.

use super::Attribute;
use crate::{UnknownAttribute, UnknownAttributes};

/// For keeping.
pub(super) fn owned(attributes: &[Attribute<'_>]) -> UnknownAttributes {
    let unknown = |attribute: &Attribute<'_>| UnknownAttribute {
        kind: attribute.kind,
        value: attribute.value.into(),
    };
    attributes.iter().map(unknown).collect::<Vec<_>>().into()
}
