//! Which kernel is meant, and which argument is for which parameter.

use std::fmt::Write;

use warploom::isa::{Param, Ty};
use warploom::{Kernel, Module};

use super::entry;
use super::file::{FileError, KernelFile};

/// The kernel of that name, or the only one.
pub fn choose(module: &Module, file: &KernelFile, wanted: Option<&str>) -> Result<Kernel, FileError> {
    let names = module.kernel_names();
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|name| match entry::demangled(name) {
                plain if plain == *name => plain,
                plain => format!("{plain} ({name})"),
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = match (wanted, all.as_slice()) {
        (Some(wanted), _) => match entry::matching(&names, wanted)[..] {
            // An unknown one is refused below.
            [] => wanted,
            [symbol] => symbol,
            ref several => {
                let count = several.len();
                return Err(FileError::new(format!("`{wanted}` names {count} kernels: {}", list(several)))
                    .help("give more of the name, or the symbol"));
            }
        },
        (None, [only]) => only,
        (None, []) => return Err(FileError::new(format!("`{}` has no kernel (.entry)", file.given))),
        (None, several) => {
            let count = several.len();
            return Err(FileError::new(format!("`{}` has {count} kernels: {}", file.given, list(several)))
                .help(format!(
                    "choose one, such as --entry {} (in a plan: `entry`)",
                    entry::plain(several[0])
                )));
        }
    };
    module.kernel(name).map_err(|error| FileError::new(error.to_string()))
}

/// Brings arguments into the order of the parameters: those with a name go to theirs, the others to those that are
/// left, one after the other.
pub fn arrange<T>(
    given: Vec<(Option<String>, T)>,
    kernel: &Kernel,
    names: &[String],
) -> Result<Vec<T>, FileError> {
    let count = given.len();
    let mut places: Vec<Option<T>> = names.iter().map(|_| None).collect();
    let mut unnamed = Vec::new();
    for (name, value) in given {
        let Some(name) = name else {
            unnamed.push(value);
            continue;
        };
        let Some(at) = names.iter().position(|known| *known == name) else {
            return Err(FileError::new(format!(
                "kernel `{}` has no parameter `{name}`",
                entry::plain(kernel.name())
            ))
            .help(format!("its parameters are {}", names.join(", "))));
        };
        if places[at].replace(value).is_some() {
            return Err(FileError::new(format!("parameter `{name}` is given twice")));
        }
    }
    let mut unnamed = unnamed.into_iter();
    for place in places.iter_mut().filter(|place| place.is_none()) {
        *place = unnamed.next();
    }
    let all: Option<Vec<T>> = places.into_iter().collect();
    match (all, unnamed.next()) {
        (Some(all), None) => Ok(all),
        _ => Err(wrong_count(kernel, names, count)),
    }
}

/// Says which arguments a kernel takes.
fn wrong_count(kernel: &Kernel, names: &[String], given: usize) -> FileError {
    let params = &kernel.info().params;
    let plural = if params.len() == 1 { "" } else { "s" };
    let takes = format!("{} argument{plural}", params.len());
    let mut message = format!("kernel `{}` takes {takes}, {given} given", entry::plain(kernel.name()));
    for (i, (param, name)) in params.iter().zip(names).enumerate() {
        let _ = write!(message, "\n  {i}  {:<8} {name}", warploom::declared(param));
    }
    let error = FileError::new(message).help(format!(
        "give one for each, in this order or by name: {}",
        example_args(kernel, names).join(" ")
    ));
    match params.iter().any(|p| p.ty.bytes() == 8 && !p.ty.is_float()) {
        true => error.help("a 64-bit parameter is mostly a pointer: give it a buffer"),
        false => error,
    }
}

/// Arguments that a kernel would take, by name.
fn example_args(kernel: &Kernel, names: &[String]) -> Vec<String> {
    let params = kernel.info().params.iter().zip(names);
    params.map(|(param, name)| format!("--arg {name}={}", example_arg(param))).collect()
}

fn example_arg(param: &Param) -> String {
    match param.ty {
        _ if param.bytes != param.ty.bytes() => format!("bytes:{}", "00".repeat(param.bytes as usize)),
        Ty::F32 | Ty::F64 | Ty::F16 => format!("{}:1.0", param.ty),
        ty if ty.bytes() == 8 => "buf:f32:1024=iota".to_string(),
        ty if ty.bytes() == 1 => format!("{ty}:1"),
        ty => format!("{ty}:1024"),
    }
}
