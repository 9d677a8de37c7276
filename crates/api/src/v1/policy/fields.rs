//! Reads the field names of a shape from its `Deserialize` implementation, so that a new field needs no
//! change here.

use serde::de::value::Error as NamesError;
use serde::de::{Deserializer, Error as _, Visitor};

/// A deserializer that collects the field names of a struct and nothing else.
pub(super) struct FieldNames(pub(super) &'static [&'static str]);

impl<'de> Deserializer<'de> for &mut FieldNames {
    type Error = NamesError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, NamesError> {
        self.0 = fields;
        Err(NamesError::custom("only asked"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NamesError> {
        Err(NamesError::custom("no struct"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
