//! The guide shows the example as it is.

#[test]
fn the_guide_quotes_the_example() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let guide = std::fs::read_to_string(format!("{folder}../../docs/new-policy.md")).unwrap();
    let example = std::fs::read_to_string(format!("{folder}src/main.rs")).unwrap();
    let quotes: Vec<&str> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(quotes.len(), 2);
    for quote in quotes {
        assert!(example.contains(quote.trim()), "docs/new-policy.md differs from src/main.rs:\n{quote}");
    }
}
