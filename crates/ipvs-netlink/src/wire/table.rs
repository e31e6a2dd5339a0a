//! The description of a set of attributes: their numbers for writing, and how they are read.

/// Makes a constant with the number of each attribute, a struct with one optional field for each, and
/// [`Value`](super::value::Value) for it.
///
/// Each line is `KERNEL_NAME = NUMBER => field: Type`. Attributes without a line are kept in `unknown`.
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
            pub(crate) unknown: Vec<$crate::wire::Attribute<'a>>,
        }

        impl<'a> $crate::wire::value::Value<'a> for $name<'a> {
            fn read(bytes: &'a [u8], _: &'static str) -> Result<Self, $crate::wire::DecodeError> {
                let mut table = Self::default();
                for attribute in $crate::wire::Attributes::new(bytes) {
                    let attribute = attribute?;
                    match attribute.number() {
                        $($kernel => {
                            let value = $crate::wire::value::Value::read(
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
