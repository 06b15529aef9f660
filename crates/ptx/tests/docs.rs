//! `docs/ptx.md` is generated from the loader's own table.

/// `UPDATE_DOCS=1 cargo test -p warploom-ptx` rewrites the page.
#[test]
fn the_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ptx.md");
    let generated = warploom_ptx::support_page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == generated,
        "docs/ptx.md is out of date: UPDATE_DOCS=1 cargo test -p warploom-ptx rewrites it"
    );
}
