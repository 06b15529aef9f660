//! Writes all generated PTX into a folder: `cargo run -p warploom-lab --example export_ptx -- DIR [PROGRAMS]`.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("which folder?")?);
    let programs = args.next().map_or(Ok(64), |n| n.parse())?;
    for file in warploom_lab::conform::export_ptx(&dir, programs)? {
        println!("{}", file.display());
    }
    Ok(())
}
