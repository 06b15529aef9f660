//! Tables as Parquet, which data frames read with the columns' types, without guessing.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::{Cell, SweepError, Table};

/// Readers work on one row group at a time.
const ROWS_PER_GROUP: usize = 100_000;

impl Table {
    /// The table as the bytes of a Parquet file: the same bytes for the same table.
    pub fn parquet(&self) -> Result<Vec<u8>, SweepError> {
        self.written().map_err(|error| {
            SweepError::new(format!("the table `{}` cannot be written as Parquet: {error}", self.name))
        })
    }

    fn written(&self) -> Result<Vec<u8>, ParquetError> {
        let version = concat!("warploom ", env!("CARGO_PKG_VERSION"));
        let properties = WriterProperties::builder().set_created_by(version.to_string()).build();
        let mut file = SerializedFileWriter::new(Vec::new(), self.schema()?, properties.into())?;
        for rows in self.rows.chunks(ROWS_PER_GROUP) {
            let mut group = file.next_row_group()?;
            for at in 0..self.columns.len() {
                let Some(mut column) = group.next_column()? else { break };
                let cells = rows.iter().map(|row| row[at].as_ref());
                match self.kind(at) {
                    Physical::INT64 => write::<Int64Type>(&mut column, cells, whole),
                    Physical::DOUBLE => write::<DoubleType>(&mut column, cells, Cell::number),
                    Physical::BOOLEAN => write::<BoolType>(&mut column, cells, flag),
                    _ => write::<ByteArrayType>(&mut column, cells, text),
                }?;
                column.close()?;
            }
            group.close()?;
        }
        file.into_inner()
    }

    fn schema(&self) -> Result<TypePtr, ParquetError> {
        let fields = self.columns.iter().enumerate().map(|(at, name)| {
            let kind = self.kind(at);
            let logical = (kind == Physical::BYTE_ARRAY).then_some(LogicalType::String);
            let field = Type::primitive_type_builder(name, kind).with_logical_type(logical);
            field.with_repetition(Repetition::OPTIONAL).build().map(TypePtr::new)
        });
        let fields = fields.collect::<Result<_, _>>()?;
        Ok(TypePtr::new(Type::group_type_builder(&self.name).with_fields(fields).build()?))
    }

    /// All cells of a column have the type of its first. One without values is text: that of `message`, if all is well.
    fn kind(&self, column: usize) -> Physical {
        match self.rows.iter().find_map(|row| row[column].as_ref()) {
            Some(Cell::Number(_)) => Physical::INT64,
            Some(Cell::Float(_)) => Physical::DOUBLE,
            Some(Cell::Flag(_)) => Physical::BOOLEAN,
            Some(Cell::Text(_)) | None => Physical::BYTE_ARRAY,
        }
    }
}

fn write<'a, T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Option<&'a Cell>>,
    value: fn(&Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let cells: Vec<Option<T::T>> = cells.map(|cell| cell.and_then(value)).collect();
    // 1 where there is a value, 0 where there is none.
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}

fn whole(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Number(number) => Some(*number),
        _ => None,
    }
}

fn flag(cell: &Cell) -> Option<bool> {
    match cell {
        Cell::Flag(flag) => Some(*flag),
        _ => None,
    }
}

fn text(cell: &Cell) -> Option<ByteArray> {
    match cell {
        Cell::Text(text) => Some(ByteArray::from(text.as_str())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::Scratch;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    /// The table as a reader of files sees it.
    fn read(table: &Table, name: &str) -> SerializedFileReader<std::fs::File> {
        let scratch = Scratch::new(name);
        let path = scratch.path().join("table.parquet");
        std::fs::write(&path, table.parquet().unwrap()).unwrap();
        SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let columns = ["size", "share", "fast", "sched", "message"].map(String::from).to_vec();
        let row = |size, share, fast, sched: Option<&str>| {
            let sched = sched.map(|sched| Cell::Text(sched.to_string()));
            vec![Some(Cell::Number(size)), share, Some(Cell::Flag(fast)), sched, None]
        };
        let mut rows =
            vec![row(-3, None, true, Some("gto")), row(i64::MAX, Some(Cell::Float(0.1)), false, None)];
        rows.resize(ROWS_PER_GROUP + 1, row(7, Some(Cell::Float(-1e300)), true, Some("µ")));
        let table = Table { name: "runs".to_string(), columns, rows };
        assert_eq!(table.parquet().unwrap(), table.parquet().unwrap());
        let file = read(&table, "parquet");
        assert_eq!(file.metadata().num_row_groups(), 2);
        let read: Vec<String> =
            file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(read.len(), ROWS_PER_GROUP + 1);
        assert_eq!(read[0], "{size: -3, share: null, fast: true, sched: \"gto\", message: null}");
        let second = format!("{{size: {}, share: 0.1, fast: false, sched: null, message: null}}", i64::MAX);
        assert_eq!(read[1], second);
        assert_eq!(read[ROWS_PER_GROUP], "{size: 7, share: -1E300, fast: true, sched: \"µ\", message: null}");
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        let table = Table { name: "runs".to_string(), columns: vec!["run".to_string()], rows: Vec::new() };
        let file = read(&table, "parquet-empty");
        let schema = file.metadata().file_metadata().schema();
        assert_eq!((schema.get_fields()[0].name(), file.metadata().num_row_groups()), ("run", 0));
    }
}
