//! Unknown attributes on their way in and out.

use super::Attribute;
use crate::{UnknownAttribute, UnknownAttributes};

/// For writing.
pub(super) fn borrowed(unknown: &UnknownAttributes) -> Vec<Attribute<'_>> {
    fn attribute(unknown: &UnknownAttribute) -> Attribute<'_> {
        Attribute {
            kind: unknown.kind,
            value: &unknown.value,
        }
    }
    unknown.iter().map(attribute).collect()
}

/// For keeping.
pub(super) fn owned(attributes: &[Attribute<'_>]) -> UnknownAttributes {
    let unknown = |attribute: &Attribute<'_>| UnknownAttribute {
        kind: attribute.kind,
        value: attribute.value.into(),
    };
    attributes.iter().map(unknown).collect::<Vec<_>>().into()
}
