//! Sizes of types and places of fields, as the compilers of kernels have them.

/// A field of an element: a variable, or an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub ty: String,
    pub name: String,
    /// The length of an array.
    pub length: Option<u32>,
}

impl Field {
    pub(crate) fn new(ty: &str, name: &str) -> Field {
        Field { ty: ty.to_string(), name: name.to_string(), length: None }
    }

    pub(crate) fn declared(&self) -> String {
        match self.length {
            Some(length) => format!("{} {}[{length}];", self.ty, self.name),
            None => format!("{} {};", self.ty, self.name),
        }
    }
}

/// Bytes of a scalar type, or `None` for one that cannot be in an element.
pub(crate) fn bytes_of(ty: &str) -> Option<u32> {
    if ty.ends_with('*') {
        return Some(8);
    }
    let words: Vec<&str> = ty.split(' ').filter(|word| !matches!(*word, "const" | "volatile")).collect();
    let has = |word| words.contains(&word);
    Some(match &words[..] {
        _ if has("struct") || has("void") => return None,
        _ if has("char") || has("bool") || has("_Bool") => 1,
        _ if has("short") => 2,
        _ if has("long") || has("double") || has("size_t") => 8,
        _ if ["int", "unsigned", "signed", "float"].iter().any(|word| has(word)) => 4,
        _ => return None,
    })
}

/// The first bytes of the fields, and the bytes of all of them.
pub(crate) fn place(fields: &[Field]) -> (Vec<u32>, u32) {
    let (mut at, mut widest) = (0u32, 4);
    let mut starts = Vec::new();
    for field in fields {
        let bytes = bytes_of(&field.ty).unwrap_or(8);
        widest = widest.max(bytes);
        at = at.next_multiple_of(bytes);
        starts.push(at);
        at = at.saturating_add(bytes.saturating_mul(field.length.unwrap_or(1)));
    }
    (starts, at.next_multiple_of(widest))
}
