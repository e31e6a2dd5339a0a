//! Describes a set of attributes: their numbers for writing, and their types for reading.

/// Defines a constant for the number of each attribute, a struct with one optional field for each, and an
/// implementation of [`AttributeValue`](crate::AttributeValue) for the struct.
///
/// Each line is `KERNEL_NAME = NUMBER => field: Type`. Attributes without a line are kept in `unknown`.
///
/// ```
/// use netlink_pipeline::{AttributeValue, Writer, attribute_table};
///
/// attribute_table! {
///     /// The attributes of a generic-netlink family.
///     Family {
///         CTRL_ATTR_FAMILY_ID = 1 => id: u16,
///         CTRL_ATTR_FAMILY_NAME = 2 => name: std::borrow::Cow<'a, str>,
///     }
/// }
///
/// let mut bytes = Vec::new();
/// let mut out = Writer::new(&mut bytes);
/// out.fixed(CTRL_ATTR_FAMILY_ID, 28_u16.to_ne_bytes());
/// out.text(CTRL_ATTR_FAMILY_NAME, "IPVS");
/// let family = Family::read(&bytes, "a family").unwrap();
/// assert_eq!((family.id, family.name.as_deref()), (Some(28), Some("IPVS")));
/// assert!(family.unknown.is_empty());
/// ```
#[macro_export]
macro_rules! attribute_table {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($kernel:ident = $number:literal => $field:ident: $value:ty,)*
        }
    ) => {
        $(pub(crate) const $kernel: u16 = $number;)*

        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name<'a> {
            $(pub(crate) $field: Option<$value>,)*
            pub(crate) unknown: Vec<$crate::Attribute<'a>>,
        }

        impl<'a> $crate::AttributeValue<'a> for $name<'a> {
            fn read(bytes: &'a [u8], _: &'static str) -> Result<Self, $crate::DecodeError> {
                let mut table = Self::default();
                for attribute in $crate::Attributes::new(bytes) {
                    let attribute = attribute?;
                    match attribute.number() {
                        $($kernel => {
                            let value = $crate::AttributeValue::read(
                                attribute.value,
                                stringify!($kernel),
                            )?;
                            table.$field = Some(value);
                        })*
                        _ => table.unknown.push(attribute),
                    }
                }
                Ok(table)
            }
        }
    };
}
