//! Kernel arguments: [`args!`](crate::args!) collects them; [`pack`] checks them against the kernel's
//! parameters and writes the parameter buffer.

use std::marker::PhantomData;

use bytemuck::Pod;
use smallvec::SmallVec;
use warploom_isa::{Param, Ty};

use crate::buffer::Buffer;
use crate::kernel::{KernelInfo, declared, signature};

/// Collects the arguments of a launch: `args![&buffer, 7u32, 1.5f32]`.
///
/// Buffers go by reference, numbers by value; [`Arg::of`] passes a struct. Each argument must have the size of
/// its parameter, and floating-point numbers fit only floating-point or untyped (`b32`, `b64`) parameters. A
/// literal without a suffix is an `i32` or an `f64`, as everywhere in Rust.
///
/// ```
/// use warploom::{Arg, Device, args};
///
/// # fn main() -> Result<(), warploom::Error> {
/// let mut gpu = Device::sim("gtx480")?;
/// let out = gpu.zeros::<f32>(64)?;
/// let args = args![&out, 64u32, 0.5f32, Arg::of(&[1u32, 2, 3])];
/// assert_eq!(args.len(), 4);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => { [$($crate::Arg::from($arg)),*] };
}

/// One argument of a launch. It borrows the buffer it points to, so that the buffer is not dropped before the launch.
#[derive(Clone, Debug)]
pub struct Arg<'a> {
    kind: ArgKind,
    bytes: SmallVec<[u8; 8]>,
    device: Option<u64>,
    buffer: PhantomData<&'a ()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgKind {
    Buffer,
    /// The untyped `b8` … `b64` fit integer and floating-point parameters alike.
    Scalar(Ty),
    Bytes,
}

impl Arg<'_> {
    /// Passes the bytes of a plain value, for a parameter that is a struct or an array.
    pub fn of<T: Pod>(value: &T) -> Arg<'static> {
        Arg::bytes(bytemuck::bytes_of(value))
    }

    /// Passes bytes unchanged, for a parameter of exactly that size.
    pub fn bytes(bytes: &[u8]) -> Arg<'static> {
        Arg { kind: ArgKind::Bytes, bytes: SmallVec::from_slice(bytes), device: None, buffer: PhantomData }
    }

    /// Passes a number of type `ty`, given as little-endian bytes. If `bytes` does not have the size of `ty`,
    /// it counts as [`Arg::bytes`].
    pub fn scalar(ty: Ty, bytes: &[u8]) -> Arg<'static> {
        let kind = if bytes.len() == ty.bytes() as usize { ArgKind::Scalar(ty) } else { ArgKind::Bytes };
        Arg { kind, ..Arg::bytes(bytes) }
    }

    /// The device that owns the buffer, if the argument is one.
    pub(crate) fn device(&self) -> Option<u64> {
        self.device
    }

    /// For error messages: "a buffer", "an f64 (8 bytes)".
    fn describe(&self) -> String {
        match self.kind {
            ArgKind::Buffer => "a buffer".to_string(),
            ArgKind::Scalar(ty) => article(ty.name(), ty.bytes()),
            ArgKind::Bytes => format!("{} bytes", self.bytes.len()),
        }
    }

    /// The bytes to store for `param`, or `None` if the argument does not fit.
    fn fit(&self, param: &Param, address_bits: u8) -> Option<&[u8]> {
        let is_array = param.bytes != param.ty.bytes();
        match self.kind {
            ArgKind::Buffer if is_array || param.ty.is_float() => None,
            // 32-bit code can only address the first 4 GB.
            ArgKind::Buffer if address_bits == 32 => {
                (param.bytes == 4 && self.bytes[4..] == [0; 4]).then_some(&self.bytes[..4])
            }
            ArgKind::Scalar(ty) if !is_array && !alike(ty, param.ty) => None,
            _ => (self.bytes.len() == param.bytes as usize).then_some(&self.bytes),
        }
    }
}

/// Whether a value of type `given` may be passed where `declared` stands. Sizes are checked elsewhere.
fn alike(given: Ty, declared: Ty) -> bool {
    let untyped = |ty| matches!(ty, Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64);
    untyped(given) || untyped(declared) || given.is_float() == declared.is_float()
}

impl<'a, T: Pod> From<&'a Buffer<T>> for Arg<'a> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        let bytes = SmallVec::from_slice(&buffer.address.to_le_bytes());
        Arg { kind: ArgKind::Buffer, bytes, device: Some(buffer.device), buffer: PhantomData }
    }
}

macro_rules! arg_from {
    ($($number:ty => $ty:ident),*) => {$(
        impl From<$number> for Arg<'_> {
            fn from(value: $number) -> Self {
                Arg::scalar(Ty::$ty, &value.to_le_bytes())
            }
        }
    )*};
}

arg_from!(i8 => S8, i16 => S16, i32 => S32, i64 => S64, u8 => U8, u16 => U16, u32 => U32, u64 => U64);
arg_from!(f32 => F32, f64 => F64);

// PTX has no 16-bit floating-point parameters: compilers declare `b16` or an array of bytes.
impl From<half::f16> for Arg<'_> {
    fn from(value: half::f16) -> Self {
        Arg::scalar(Ty::B16, &value.to_le_bytes())
    }
}

impl From<half::bf16> for Arg<'_> {
    fn from(value: half::bf16) -> Self {
        Arg::scalar(Ty::B16, &value.to_le_bytes())
    }
}

impl From<bool> for Arg<'_> {
    fn from(value: bool) -> Self {
        Arg::scalar(Ty::U8, &[value as u8])
    }
}

/// Why the arguments of a launch do not fit the kernel's parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgError {
    #[error("kernel `{kernel}` takes {}, {given} given\n  signature  {signature}", counted(*needed))]
    Count { kernel: String, signature: String, given: usize, needed: usize },
    /// An argument of the wrong type or size.
    #[error(
        "argument {index} of kernel `{kernel}` is `{name}`, {declared}; {given} is given\n  signature  {signature}"
    )]
    Type {
        kernel: String,
        signature: String,
        /// Counted from 0.
        index: usize,
        /// The parameter's name.
        name: String,
        /// The parameter's type and size, in words.
        declared: String,
        /// The argument, in words.
        given: String,
    },
}

fn counted(n: usize) -> String {
    if n == 1 { "1 argument".to_string() } else { format!("{n} arguments") }
}

/// "a u32 (4 bytes)".
fn article(name: &str, bytes: u32) -> String {
    let article = if name.starts_with('f') || name.starts_with('s') { "an" } else { "a" };
    format!("{article} {name} ({bytes} byte{})", if bytes == 1 { "" } else { "s" })
}

/// Checks the arguments and lays them out as the kernel's parameter buffer.
pub(crate) fn pack(kernel: &KernelInfo, args: &[Arg<'_>]) -> Result<Vec<u8>, Box<ArgError>> {
    let signature = || signature(&kernel.name, &kernel.params);
    if args.len() != kernel.params.len() {
        return Err(Box::new(ArgError::Count {
            kernel: kernel.name.clone(),
            signature: signature(),
            given: args.len(),
            needed: kernel.params.len(),
        }));
    }
    let mut buffer = vec![0; kernel.param_bytes as usize];
    for (index, (param, arg)) in kernel.params.iter().zip(args).enumerate() {
        let Some(bytes) = arg.fit(param, kernel.address_bits) else {
            return Err(Box::new(ArgError::Type {
                kernel: kernel.name.clone(),
                signature: signature(),
                index,
                name: param.name.clone(),
                declared: article(&declared(param), param.bytes),
                given: arg.describe(),
            }));
        };
        buffer[param.offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(params: &[(&str, Ty, u32)]) -> KernelInfo {
        let mut at = 0u32;
        let params = params.iter().map(|&(name, ty, bytes)| {
            let offset = at.next_multiple_of(ty.bytes());
            at = offset + bytes;
            Param { name: name.into(), ty, bytes, align: ty.bytes(), offset, pointer: None }
        });
        let params = params.collect();
        KernelInfo {
            name: "k".into(),
            params,
            param_bytes: at,
            address_bits: 64,
            registers: 1,
            static_shared_bytes: 0,
            local_bytes: 0,
            bounds: Default::default(),
        }
    }

    #[test]
    fn packs_at_the_offsets() {
        let kernel = kernel(&[("a", Ty::U8, 1), ("b", Ty::U32, 4), ("c", Ty::F64, 8)]);
        let bytes = pack(&kernel, &args![7u8, -2i32, 1.0]).unwrap();
        assert_eq!(bytes[..8], [7, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(bytes[8..], 1.0f64.to_le_bytes());
    }

    #[test]
    fn structs_and_bit_patterns() {
        let kernel = kernel(&[("s", Ty::B8, 12), ("f", Ty::F32, 4)]);
        let bits = Arg::scalar(Ty::B32, &1.5f32.to_le_bytes());
        assert!(pack(&kernel, &[Arg::of(&[1u32, 2, 3]), bits]).is_ok());
        assert!(pack(&kernel, &[Arg::of(&[1u32, 2]), 1.5f32.into()]).is_err());
    }

    #[test]
    fn misfits_name_the_parameter() {
        let kernel = kernel(&[("n", Ty::U32, 4), ("x", Ty::F32, 4)]);
        let message = |args: &[Arg<'_>]| pack(&kernel, args).unwrap_err().to_string();
        assert_eq!(message(&args![5]), "kernel `k` takes 2 arguments, 1 given\n  signature  k(u32 n, f32 x)");
        assert_eq!(
            message(&args![5, 1.5]),
            "argument 1 of kernel `k` is `x`, an f32 (4 bytes); an f64 (8 bytes) is given\n  signature  k(u32 n, f32 x)"
        );
        assert_eq!(
            message(&args![5, 7u32]),
            "argument 1 of kernel `k` is `x`, an f32 (4 bytes); a u32 (4 bytes) is given\n  signature  k(u32 n, f32 x)"
        );
        assert!(message(&args![5u64, 1f32]).starts_with("argument 0 of kernel `k` is `n`, a u32 (4 bytes)"));
    }
}
