//! What tests that start programs need.

use std::path::PathBuf;

/// The library that cargo has built for these tests.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let places = [folder.join("libwarploom_cudart.so"), folder.join("../libwarploom_cudart.so")];
    places.into_iter().find(|path| path.is_file()).expect("cargo builds the library before its tests")
}
