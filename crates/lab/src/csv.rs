//! Comma-separated values.

/// A line of cells, quoted where necessary, with its end.
pub(crate) fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().map(cell).collect();
    cells.join(",") + "\n"
}

/// Quotes a cell where CSV requires it.
fn cell(text: String) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_necessary() {
        let cells = ["a", "b,c", "d\ne", "say \"f\"", ""].map(String::from);
        assert_eq!(line(cells), "a,\"b,c\",\"d\ne\",\"say \"\"f\"\"\",\n");
    }
}
