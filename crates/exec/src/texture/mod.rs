//! Textures and surfaces: what the host makes of device memory, and the handles that kernels name it by.
//!
//! [`Image`] is memory with a format and an extent, [`Sampler`] says how texels are found and filtered, [`Textures`]
//! has all that exist. [`sample`] fetches a texel; `memory/texture.rs` does so for a warp.

pub mod format;
pub mod image;
pub mod sample;

use std::collections::HashMap;

pub use warploom_isa::AddressMode;
use warploom_isa::Query;

use crate::memory::store::Memory;
pub use format::{ChannelKind, Format};
pub use image::{Image, Layout};

/// How texels are found and filtered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampler {
    /// By axis.
    pub address: [AddressMode; 3],
    /// Neighbouring texels are blended, if they are floating-point numbers.
    pub linear: bool,
    /// Coordinates go from 0 to 1 across the texture.
    pub normalized: bool,
    /// Integers are read as numbers from 0 (or -1) to 1.
    pub normalized_read: bool,
    pub border: [f32; 4],
}

/// Something that a handle names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Object {
    Texture(Image, Sampler),
    Surface(Image),
    Sampler(Sampler),
}

impl Object {
    pub const fn name(&self) -> &'static str {
        match self {
            Object::Texture(..) => "texture",
            Object::Surface(_) => "surface",
            Object::Sampler(_) => "sampler",
        }
    }
}

/// What a handle names, if it does not name what an instruction needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHandle {
    #[error("handle {handle:#x} names no {wanted}")]
    Nothing { wanted: &'static str, handle: u64 },
    #[error("{wanted} {handle} was destroyed")]
    Destroyed { wanted: &'static str, handle: u64 },
    #[error("handle {handle:#x} names a {found}, not a {wanted}")]
    Another { wanted: &'static str, found: &'static str, handle: u64 },
    #[error("the {wanted} reference `{name}` is not bound")]
    Unbound { wanted: &'static str, name: String },
}

/// The textures, surfaces and samplers of a device, by handle. An object's handle is a small number, as CUDA's are; a
/// reference's is the address of its variable.
#[derive(Debug, Default)]
pub struct Textures {
    objects: Vec<Option<Object>>,
    bound: HashMap<u64, Object>,
}

impl Textures {
    /// Makes an object and returns its handle.
    pub fn create(&mut self, object: Object) -> u64 {
        self.objects.push(Some(object));
        self.objects.len() as u64
    }

    /// Returns whether there was such an object. Its handle never names another one.
    pub fn destroy(&mut self, handle: u64) -> bool {
        self.slot(handle).and_then(|at| self.objects[at].take()).is_some()
    }

    /// Binds the reference whose variable is at `address`, or unbinds it.
    pub fn bind(&mut self, address: u64, object: Option<Object>) {
        match object {
            Some(object) => self.bound.insert(address, object),
            None => self.bound.remove(&address),
        };
    }

    fn slot(&self, handle: u64) -> Option<usize> {
        let at = usize::try_from(handle).ok()?.checked_sub(1)?;
        (at < self.objects.len()).then_some(at)
    }

    pub fn get(&self, handle: u64) -> Option<&Object> {
        match self.slot(handle) {
            Some(at) => self.objects[at].as_ref(),
            None => self.bound.get(&handle),
        }
    }

    fn wrong(&self, memory: &Memory, wanted: &'static str, handle: u64) -> BadHandle {
        if let Some(object) = self.get(handle) {
            return BadHandle::Another { wanted, found: object.name(), handle };
        }
        if self.slot(handle).is_some() {
            return BadHandle::Destroyed { wanted, handle };
        }
        match memory.name(handle) {
            Some((name, 0)) => BadHandle::Unbound { wanted, name: name.to_string() },
            _ => BadHandle::Nothing { wanted, handle },
        }
    }

    pub fn texture(&self, memory: &Memory, handle: u64) -> Result<(&Image, &Sampler), BadHandle> {
        match self.get(handle) {
            Some(Object::Texture(image, sampler)) => Ok((image, sampler)),
            _ => Err(self.wrong(memory, "texture", handle)),
        }
    }

    pub fn surface(&self, memory: &Memory, handle: u64) -> Result<&Image, BadHandle> {
        match self.get(handle) {
            Some(Object::Surface(image)) => Ok(image),
            _ => Err(self.wrong(memory, "surface", handle)),
        }
    }

    /// A sampler: one of its own, or that of a texture.
    pub fn sampler(&self, memory: &Memory, handle: u64) -> Result<&Sampler, BadHandle> {
        match self.get(handle) {
            Some(Object::Sampler(sampler) | Object::Texture(_, sampler)) => Ok(sampler),
            _ => Err(self.wrong(memory, "sampler", handle)),
        }
    }

    /// The answer to `txq` or `suq`; with `of_sampler`, about a sampler.
    pub fn query(
        &self,
        memory: &Memory,
        query: Query,
        of_sampler: bool,
        handle: u64,
    ) -> Result<u32, BadHandle> {
        if of_sampler {
            return Ok(of_sampler_state(self.sampler(memory, handle)?, query));
        }
        let (image, sampler) = match self.get(handle) {
            Some(Object::Texture(image, sampler)) => (image, *sampler),
            Some(Object::Surface(image)) => (image, Sampler::default()),
            _ => return Err(self.wrong(memory, "texture", handle)),
        };
        let [width, height, depth] = image.extent;
        Ok(match query {
            Query::Width => width,
            Query::Height => height,
            Query::Depth => depth,
            Query::ArraySize => image.layers / if image.cube { 6 } else { 1 },
            Query::Levels | Query::Samples => 1,
            Query::ChannelType => image.format.channel_type(sampler.normalized_read),
            Query::ChannelOrder => image.format.channel_order(),
            Query::MemoryLayout => u32::from(image.layout == Layout::Blocks),
            query => of_sampler_state(&sampler, query),
        })
    }
}

fn of_sampler_state(sampler: &Sampler, query: Query) -> u32 {
    match query {
        Query::NormalizedCoords => u32::from(sampler.normalized),
        Query::ForceUnnormalizedCoords => u32::from(!sampler.normalized),
        Query::FilterMode => u32::from(sampler.linear),
        // The order in which the manual lists them.
        Query::AddressMode(axis) => match sampler.address[usize::from(axis).min(2)] {
            AddressMode::Wrap => 0,
            AddressMode::Mirror => 1,
            AddressMode::Clamp => 3,
            AddressMode::Border => 4,
        },
        _ => 0,
    }
}
