//! The one description of a set of attributes, from which reading and writing both follow.

/// Makes a struct with one optional field per attribute, and [`Value`](super::value::Value) for it.
///
/// Each line is `KERNEL_NAME = NUMBER => field: Type`. Attributes are written in the order of the lines; a field that
/// is `None` is not written. Attributes without a line are kept in `unknown` and written last.
macro_rules! attribute_table {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($kernel:ident = $number:literal => $field:ident: $value:ty,)*
        }
    ) => {
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
                        $($number => {
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

            fn write(&self, number: u16, out: &mut $crate::wire::Writer<'_>) {
                out.nested(number, |out| self.write_all(out));
            }
        }

        impl $name<'_> {
            /// Appends every attribute there is.
            pub(crate) fn write_all(&self, out: &mut $crate::wire::Writer<'_>) {
                $(if let Some(value) = &self.$field {
                    $crate::wire::value::Value::write(value, $number, out);
                })*
                for attribute in &self.unknown {
                    out.attribute(attribute.kind, attribute.value);
                }
            }
        }
    };
}
