//! Typed device memory. [`Device::buffer`], [`Device::zeros`] and [`Device::uninit`] make buffers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use bytemuck::Pod;

use crate::device::Device;
use crate::error::{Error, Result};

/// Addresses and bytes of dropped buffers. Their device frees them before its next allocation or launch.
pub(crate) type Dropped = Arc<Mutex<Vec<(u64, u64)>>>;

/// `len` elements of type `T` in a device's memory. Dropping the buffer frees the memory.
pub struct Buffer<T: Pod> {
    pub(crate) device: u64,
    pub(crate) address: u64,
    pub(crate) len: usize,
    pub(crate) dropped: Dropped,
    pub(crate) element: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The device address, to be stored inside other buffers or passed with an offset. It is valid while the
    /// buffer lives.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Copies all elements to the host. `device` must be the buffer's own.
    pub fn read(&self, device: &Device) -> Result<Vec<T>> {
        self.read_range(device, 0, self.len)
    }

    /// Copies `len` elements, beginning at element `start`, to the host.
    pub fn read_range(&self, device: &Device, start: usize, len: usize) -> Result<Vec<T>> {
        let at = self.place(device, start, len)?;
        let mut data = vec![T::zeroed(); len];
        device.backend().read(at, bytemuck::cast_slice_mut(&mut data))?;
        Ok(data)
    }

    /// Replaces all elements. `data` must have the buffer's length; [`Buffer::write_range`] writes a part.
    pub fn write(&self, device: &mut Device, data: &[T]) -> Result<()> {
        if data.len() != self.len {
            let message = format!("{} elements for a buffer of {}", data.len(), self.len);
            return Err(Error::Misuse(format!("{message}; write_range writes a part")));
        }
        self.write_range(device, 0, data)
    }

    /// Replaces elements, beginning at element `start`.
    pub fn write_range(&self, device: &mut Device, start: usize, data: &[T]) -> Result<()> {
        let at = self.place(device, start, data.len())?;
        device.backend_mut().write(at, bytemuck::cast_slice(data))
    }

    /// Gives `len` elements from `start` on a name of their own, which messages and profiles show in the place of the
    /// buffer's. Such ranges must not overlap. A real GPU has no use for it.
    pub fn name_range(&self, device: &mut Device, start: usize, len: usize, name: &str) -> Result<()> {
        let at = self.place(device, start, len)?;
        device.backend_mut().name_part(at, (len * size_of::<T>()) as u64, name);
        Ok(())
    }

    /// The address of a range that must lie inside the buffer. Refuses another device than the buffer's own.
    fn place(&self, device: &Device, start: usize, len: usize) -> Result<u64> {
        device.owns("buffer", self.device)?;
        match start.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.address + (start * size_of::<T>()) as u64),
            _ => Err(Error::Misuse(format!("{len} elements from {start} on, of a buffer of {}", self.len))),
        }
    }
}

impl<T: Pod> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Ok(mut dropped) = self.dropped.lock() {
            dropped.push((self.address, size_of::<T>() as u64 * self.len as u64));
        }
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = std::any::type_name::<T>();
        write!(f, "Buffer<{element}>({} elements at {:#x})", self.len, self.address)
    }
}
