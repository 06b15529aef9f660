//! Every PTX file in `kernels/` loads, and its kernels link.

use std::fs;
use std::path::{Path, PathBuf};

use isa::{AddressMap, FuncId, Guard, Op, Value, Windows};
use warploom_isa as isa;

/// Files that call functions without a body.
const UNLINKED: &[&str] = &["gather.ptx"];

fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            found.push(path);
        }
    }
}

#[test]
fn every_kernel_file_loads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels");
    let mut paths = Vec::new();
    texts(Path::new(folder), &mut paths);
    paths.sort();
    let mut failures = String::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        let unlinked = UNLINKED.iter().any(|name| path.ends_with(name));
        match super::load(&text) {
            Ok(module) => {
                assert!(!unlinked, "{}", path.display());
                check(&module);
                link(&module);
            }
            Err(error) if unlinked && error.to_string().contains("no body for") => {}
            Err(error) => failures += &format!("{}:\n{}\n", path.display(), error.render(false)),
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Checks the invariants of lowered bodies.
pub(super) fn check(module: &isa::Module) {
    for function in &module.functions {
        let Some(body) = &function.body else { continue };
        assert_eq!(body.insts.len(), body.origins.len());
        let last = body.insts.last().unwrap();
        assert!(last.guard == Guard::Always && matches!(last.op, Op::Ret | Op::Exit | Op::Bra | Op::Brx));
        for inst in &body.insts {
            if let Some(target) = inst.branch_target() {
                assert!(target.index() < body.insts.len(), "{}", function.name);
            }
            inst.for_each_use(body, |value| {
                if let Value::Reg(reg, width) = value {
                    assert!(width.words() <= body.registers[reg.index()].words(), "{inst:?} reads {reg:?}");
                }
            });
            inst.for_each_def(body, |value| {
                if let Value::Reg(reg, width) = value {
                    assert_eq!(width, body.registers[reg.index()], "{inst:?} writes {reg:?}");
                }
            });
        }
        let inside = |(_, offset, bytes): &(String, u32, u32)| offset + bytes <= body.frame_bytes;
        assert!(body.frame_vars.iter().all(inside), "{}", function.name);
    }
}

fn link(module: &isa::Module) {
    let variables = (0..module.variables.len() as u64).map(|i| 0x1000_0000 + (i << 16)).collect();
    let addresses = AddressMap { variables, windows: Windows::default(), lock_bits: false, optimise: false };
    for (i, function) in module.functions.iter().enumerate() {
        if function.is_kernel {
            let kernel = isa::link(module, FuncId(i as u32), &addresses).unwrap();
            assert!(!kernel.code.is_empty());
        }
    }
}
