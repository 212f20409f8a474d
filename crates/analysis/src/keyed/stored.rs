//! A table as a sequence of its rows, in the order of their keys, and back.
//!
//! Equal tables have equal bytes, spilled or not. Reading demands that keys ascend, so a row costs bytes even where
//! keys and values have none, and the memory taken is in proportion to the bytes read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{KeyTable, TableKey, TableValue};

impl<K: TableKey, V: TableValue> Serialize for KeyTable<K, V> {
    /// Rows that were put aside are read twice, because their number comes first.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.count_rows().map_err(S::Error::custom)?;
        let mut sequence = serializer.serialize_seq(Some(count))?;
        for row in self.rows() {
            sequence.serialize_element(&row.map_err(S::Error::custom)?)?;
        }
        sequence.end()
    }
}

impl<'de, K: TableKey, V: TableValue> Deserialize<'de> for KeyTable<K, V> {
    /// The table has no [`crate::Room`] yet; it gets that of the table that it is merged into, or one that is set.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RowsVisitor(PhantomData))
    }
}

struct RowsVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: TableKey, V: TableValue> Visitor<'de> for RowsVisitor<K, V> {
    type Value = KeyTable<K, V>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rows whose keys ascend")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut table = KeyTable::default();
        let mut last: Option<K> = None;
        while let Some((key, value)) = sequence.next_element::<(K, V)>()? {
            if last.is_some_and(|last| last >= key) {
                return Err(A::Error::custom("the keys of a table's rows do not ascend"));
            }
            last = Some(key.clone());
            *table.entry(key) = value;
        }
        Ok(table)
    }
}
