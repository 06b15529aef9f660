//! The heap of kernels: `malloc` and `free` in device code are functions without a body, which CUDA's driver links in.
//! Here they are PTX, too (`heap.ptx`), and are added to modules that call them. Each such module has a heap.

use std::borrow::Cow;

/// Bytes of the heap, unless the program sets another limit: as in CUDA.
pub const HEAP_BYTES: u64 = 8 << 20;

const TEXT: &str = include_str!("heap.ptx");

/// The heap's functions, if one of the texts needs them.
pub fn needed(texts: &[&str], bytes: u64) -> Option<String> {
    let calls = texts.iter().any(|text| is_declared(text, "malloc") || is_declared(text, "free"));
    let bytes = bytes.next_multiple_of(32);
    calls.then(|| TEXT.replace("HEAP_BYTES", &bytes.to_string()))
}

/// A text with the heap's functions behind it, if it needs them. Its own lines stay where they are.
pub(crate) fn added(text: &str) -> Cow<'_, str> {
    let Some(heap) = needed(&[text], HEAP_BYTES) else { return text.into() };
    // The header of the text counts.
    let functions = heap.split_once(".address_size 64").map_or(heap.as_str(), |(_, functions)| functions);
    format!("{text}\n{functions}").into()
}

/// Whether a text declares a function that it does not define.
fn is_declared(text: &str, name: &str) -> bool {
    let declarations = text.split(".extern").skip(1).filter_map(|rest| rest.split(';').next());
    let functions = declarations.filter(|declaration| declaration.trim_start().starts_with(".func"));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == '.';
    functions.into_iter().any(|declaration| declaration.split(|c| !is_word(c)).any(|word| word == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modules_that_call_it_have_a_heap() {
        let calls = ".extern .func (.param .b64 func_retval0) malloc\n(\n.param .b64 malloc_param_0\n)\n;";
        assert!(needed(&["", calls], 100).is_some_and(|text| text.contains("__warploom_heap[128]")));
        assert!(needed(&[".extern .func  free\n(.param .b64 a);"], 32).is_some());
        for other in
            [".extern .func my_malloc();", ".extern .global .u32 free;", ".visible .func free() { ret; }"]
        {
            assert!(needed(&[other], 32).is_none(), "{other}");
        }
    }
}
