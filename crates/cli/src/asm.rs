//! `warploom asm`: prints listings, from listings or from PTX.

use std::path::Path;

use warploom::isa::{FuncId, Module, print};
use warploom::{Error, ptx, sass};
use warploom_lab::kernel::{KernelFile, Language, entry};

use crate::cli::AsmOptions;
use crate::failure::{Exit, Failure};
use crate::input::{self, reason};
use crate::term;

/// Prints a listing, or writes it to a file.
pub(crate) fn asm(options: &AsmOptions) -> Result<Exit, Failure> {
    let (path, wanted) = match (&options.file, &options.from) {
        (_, Some(from)) => (from, Language::Ptx),
        (Some(file), None) => (file, Language::Sass),
        (None, None) => return Err(Failure::input("there is nothing to assemble")),
    };
    let module = load(path, wanted, options)?;
    let entry = options.entry.as_deref().map(|name| find(&module, name)).transpose()?;
    let text = print::module(&module, entry);
    match &options.out {
        None => term::print(&text)?,
        Some(out) => std::fs::write(out, text)
            .map_err(|e| Failure::input(format!("cannot write `{}`: {}", out.display(), reason(&e))))?,
    }
    Ok(Exit::Good)
}

fn load(path: &Path, wanted: Language, options: &AsmOptions) -> Result<Module, Failure> {
    let KernelFile { text: bytes, name, language, .. } = input::read(path, &options.cuda)?;
    let is_cuda = path.extension().is_some_and(|extension| extension == "cu");
    let module = match (wanted, language) {
        (Language::Sass, Language::Ptx) if !is_cuda => {
            return Err(Failure::input(format!("`{name}` is PTX, not a listing"))
                .help(format!("`warploom asm --from {name}` prints it as one")));
        }
        (_, Language::Ptx) => ptx::load_bytes(&name, &bytes),
        (_, Language::Sass) => sass::load_bytes(&name, &bytes),
    };
    Ok(module.map_err(Error::from)?)
}

fn find(module: &Module, name: &str) -> Result<FuncId, Failure> {
    let kernels = || module.functions.iter().enumerate().filter(|(_, f)| f.is_kernel);
    let known: Vec<String> = kernels().map(|(_, f)| f.name.clone()).collect();
    let symbol = match entry::matching(&known, name)[..] {
        [symbol] => symbol.to_string(),
        [] => return Err(Error::NoKernel { name: name.to_string(), known }.into()),
        ref several => {
            let message = format!("`{name}` names {} kernels: {}", several.len(), several.join(", "));
            return Err(Failure::input(message).help("give more of the name, or the symbol"));
        }
    };
    let found = kernels().find(|(_, f)| f.name == symbol).map(|(i, _)| FuncId(i as u32));
    Ok(found.ok_or(Error::NoKernel { name: symbol, known })?)
}
