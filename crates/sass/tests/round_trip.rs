//! Every PTX kernel of the repository, printed as a listing and read back, links to the same program.

use std::fs;
use std::path::PathBuf;

use warploom_isa::{AddressMap, FuncId, ImmId, Inst, Kernel, Module, Op, Operand, link, print, spell};

fn kernels() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels"))
}

/// All PTX files below a folder.
fn texts(folder: PathBuf, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            texts(path, out);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            out.push(path);
        }
    }
}

/// An instruction in the form in which a listing preserves it. An address that is not in a register has no width.
fn canonical(inst: &Inst) -> Inst {
    let mut inst = *inst;
    if let (
        false,
        Op::Ld { access, .. }
        | Op::St(access)
        | Op::LdLock(access)
        | Op::StUnlock(access)
        | Op::Atom(_, access),
    ) = (matches!(inst.src[0], Operand::Reg(_)), &mut inst.op)
    {
        access.wide_address = false;
    }
    inst.op = spell::canonical(inst.op);
    inst
}

/// The instruction and the values of its 64-bit immediates, which the two kernels may number differently.
fn with_values(kernel: &Kernel, inst: &Inst) -> (Inst, Vec<u64>) {
    let mut inst = canonical(inst);
    let mut values = Vec::new();
    for operand in &mut inst.src {
        if let Operand::Imm64(id) = operand {
            values.push(kernel.imms[id.index()]);
            *id = ImmId(0);
        }
    }
    (inst, values)
}

fn addresses(module: &Module) -> AddressMap {
    AddressMap {
        variables: (0..module.variables.len() as u64).map(|i| 0x1_0000_0000 + i * 0x1000).collect(),
        ..AddressMap::default()
    }
}

fn assert_same(name: &str, a: &Kernel, b: &Kernel) {
    assert_eq!(a.code.len(), b.code.len(), "{name}");
    for (pc, (x, y)) in a.code.iter().zip(&b.code).enumerate() {
        assert_eq!(with_values(a, x), with_values(b, y), "{name}: {}: instruction {pc}\n{a}", a.name);
    }
    assert_eq!(a.functions, b.functions, "{name}");
    assert_eq!(a.tables, b.tables, "{name}");
    assert_eq!(a.vectors, b.vectors, "{name}");
    assert_eq!(a.calls, b.calls, "{name}");
    assert_eq!(a.params, b.params, "{name}");
    assert_eq!(a.shared, b.shared, "{name}");
    assert_eq!(
        (
            a.registers,
            a.param_bytes,
            a.local_bytes,
            a.static_shared_bytes,
            a.dynamic_shared_offset,
            a.recursive
        ),
        (
            b.registers,
            b.param_bytes,
            b.local_bytes,
            b.static_shared_bytes,
            b.dynamic_shared_offset,
            b.recursive
        ),
        "{name}"
    );
    assert_eq!(a.bounds, b.bounds, "{name}");
    let looser = LOOSER.iter().any(|(file, kernel)| name.ends_with(file) && a.name == *kernel);
    assert_eq!(a.loops != b.loops, looser, "{name}: {}\n{:#?}\n{:#?}\n{a}", a.name, a.loops, b.loops);
}

/// Kernels whose listing has more spin loops than its PTX. A stale value in a register that is reused looks like one
/// that the loop carries.
const LOOSER: [(&str, &str); 3] =
    [("nw_pipe.ptx", "nw_grid4"), ("nw_pipe.ptx", "nw_grid8"), ("nw_pipe.ptx", "nw_grid16")];

/// Whether a listing can express an operation. Matrices, for instance, it only shows.
fn has_mnemonic(op: Op) -> bool {
    let text = spell::mnemonic(op);
    let mut words = text.split('.').map(str::to_string);
    let name = words.next().unwrap_or_default();
    spell::operation(&name, &words.collect::<Vec<_>>()).is_some()
}

#[test]
fn every_ptx_text() {
    let mut paths = Vec::new();
    texts(kernels(), &mut paths);
    assert!(paths.len() > 30, "{}", paths.len());
    let mut shown_only = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        // Files that the PTX front end refuses are tested there.
        let Ok(module) = warploom_ptx::load_bytes(&name, &fs::read(&path).unwrap()) else { continue };
        let mut bodies = module.functions.iter().filter_map(|function| function.body.as_ref());
        if !bodies.all(|body| body.insts.iter().all(|inst| has_mnemonic(inst.op))) {
            shown_only.push(name);
            continue;
        }
        let text = print::module(&module, None);
        let again = warploom_sass::load("listing.sass", &text)
            .unwrap_or_else(|e| panic!("{name}:\n{}", e.render(false)));
        assert_eq!(module.variables.len(), again.variables.len());
        let (map, map_again) = (addresses(&module), addresses(&again));
        for (i, function) in module.functions.iter().enumerate() {
            if function.is_kernel && function.body.is_some() {
                let id = FuncId(i as u32);
                let first = link(&module, id, &map).unwrap();
                let second = link(&again, id, &map_again).unwrap();
                assert_same(&name, &first, &second);
            }
        }
        // The first line names the dialect, which differs.
        let lines = |text: &str| text.lines().skip(1).map(str::to_string).collect::<Vec<_>>();
        for (a, b) in lines(&print::module(&again, None)).iter().zip(lines(&text)) {
            assert_eq!(*a, b, "{name}");
        }
    }
    assert!(shown_only.iter().all(|name| name.contains("/triton/")), "{shown_only:?}");
}
