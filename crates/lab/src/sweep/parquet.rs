//! Tables as Parquet files: every column optional, in one row group, without compression.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::{Cell, Table};

/// What all cells of a column can be: whole numbers become floats beside floats, and anything else is text.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Float,
    Flag,
    Text,
}

impl Kind {
    fn of(cell: &Cell) -> Kind {
        match cell {
            Cell::Number(_) => Kind::Number,
            Cell::Float(_) => Kind::Float,
            Cell::Flag(_) => Kind::Flag,
            Cell::Text(_) => Kind::Text,
        }
    }

    fn join(self, other: Kind) -> Kind {
        match (self, other) {
            (a, b) if a == b => a,
            (Kind::Number, Kind::Float) | (Kind::Float, Kind::Number) => Kind::Float,
            _ => Kind::Text,
        }
    }
}

impl Table {
    /// The table as a Parquet file.
    pub fn parquet(&self) -> Result<Vec<u8>> {
        let cells = |column: usize| self.rows.iter().map(move |row| row[column].as_ref());
        let kinds: Vec<Kind> = (0..self.columns.len())
            .map(|column| cells(column).flatten().map(Kind::of).reduce(Kind::join).unwrap_or(Kind::Text))
            .collect();
        let fields = self.columns.iter().zip(&kinds).map(|(name, kind)| {
            let (physical, logical) = match kind {
                Kind::Number => (Physical::INT64, None),
                Kind::Float => (Physical::DOUBLE, None),
                Kind::Flag => (Physical::BOOLEAN, None),
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?))
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(Type::group_type_builder(self.name).with_fields(fields).build()?);
        let mut file = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut file, schema, Arc::new(WriterProperties::builder().build()))?;
        let mut group = writer.next_row_group()?;
        for (column, kind) in kinds.iter().enumerate() {
            let Some(mut out) = group.next_column()? else { break };
            let levels: Vec<i16> = cells(column).map(|cell| i16::from(cell.is_some())).collect();
            let there = cells(column).flatten();
            match kind {
                Kind::Number => {
                    let values: Vec<i64> =
                        there.filter_map(|cell| if let Cell::Number(n) = cell { Some(*n) } else { None }).collect();
                    out.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
                Kind::Float => {
                    let values: Vec<f64> = there.filter_map(Cell::number).collect();
                    out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
                Kind::Flag => {
                    let values: Vec<bool> = there.map(|cell| *cell == Cell::Flag(true)).collect();
                    out.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
                }
                Kind::Text => {
                    let values: Vec<ByteArray> =
                        there.map(|cell| ByteArray::from(cell.to_string().into_bytes())).collect();
                    out.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
            }
            out.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn what_is_written_is_read() {
        let text = |text: &str| Some(Cell::Text(text.to_string()));
        let columns = ["run", "cycles", "share", "flag", "bows", "nothing"].map(String::from).to_vec();
        let rows = vec![
            vec![text("a"), Some(Cell::Number(7)), Some(Cell::Float(0.5)), Some(Cell::Flag(true)), text("off"), None],
            vec![text("b"), None, Some(Cell::Number(2)), None, Some(Cell::Number(1000)), None],
        ];
        let table = Table { name: "runs", columns, rows };
        let file = SerializedFileReader::new(bytes::Bytes::from(table.parquet().unwrap())).unwrap();
        let rows: Vec<String> = file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(rows, [
            "{run: \"a\", cycles: 7, share: 0.5, flag: true, bows: \"off\", nothing: null}",
            "{run: \"b\", cycles: null, share: 2.0, flag: null, bows: \"1000\", nothing: null}"
        ]);
    }
}
