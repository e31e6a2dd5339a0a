//! Keeps attributes of newer kernels without decoding them.

use crate::attribute::Attribute;

/// An attribute that this version of the crate does not know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnknownAttribute {
    /// The attribute's number, with the nested and byte-order bits as received.
    pub kind: u16,
    /// The attribute's value as received.
    pub value: Box<[u8]>,
}

/// The unknown attributes of one object, in the order received. Takes no heap memory while empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnknownAttributes(Box<[UnknownAttribute]>);

impl UnknownAttributes {
    /// Iterates over the attributes.
    pub fn iter(&self) -> std::slice::Iter<'_, UnknownAttribute> {
        self.0.iter()
    }

    /// Whether there are none, as with every kernel that this version was written for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&[Attribute<'_>]> for UnknownAttributes {
    fn from(attributes: &[Attribute<'_>]) -> Self {
        let unknown = |attribute: &Attribute<'_>| UnknownAttribute {
            kind: attribute.kind,
            value: attribute.value.into(),
        };
        attributes.iter().map(unknown).collect::<Vec<_>>().into()
    }
}

impl From<Vec<UnknownAttribute>> for UnknownAttributes {
    fn from(attributes: Vec<UnknownAttribute>) -> Self {
        Self(attributes.into_boxed_slice())
    }
}

impl<'a> IntoIterator for &'a UnknownAttributes {
    type Item = &'a UnknownAttribute;
    type IntoIter = std::slice::Iter<'a, UnknownAttribute>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
