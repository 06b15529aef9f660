//! The library's constructor, and what happens when the program ends.

use super::{PROCESS, redirect, show_printed};
use crate::core::process::complain;

/// Runs before the program's own constructors, which register its kernels, if the library is preloaded.
extern "C" fn on_load() {
    if let Err(reason) = redirect::redirect() {
        complain(reason);
        std::process::exit(2);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// Has the table of kernels printed when the program ends.
pub(super) fn at_exit() {
    // Sound: the function takes and returns nothing. If it cannot be registered there is no table.
    unsafe { libc::atexit(on_exit) };
}

extern "C" fn on_exit() {
    // The program may end inside of a call: because of its settings, or while another thread launches.
    let Ok(mut process) = PROCESS.try_lock() else { return };
    // A kernel that fails now is told of: no call is left that could give its error.
    let _ = process.check().and_then(|()| process.settle());
    show_printed(&mut process);
    // What the program has printed comes before the table. Sound: null stands for all streams of C.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    let quiet = process.settings.quiet;
    if let Some(open) = process.opened()
        && let Err(error) = open.write_profiles()
    {
        complain(format!("the profile cannot be written: {error}"));
    }
    if let Some(missed) = process.missed_timing() {
        complain(missed);
    }
    let table = process.opened().map(|open| open.table()).unwrap_or_default();
    if !quiet && !table.is_empty() {
        eprint!("{table}");
    }
}
