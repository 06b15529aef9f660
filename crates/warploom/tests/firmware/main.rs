//! Firmware on the control processor of the `apu` chip.

mod coherence;
mod dispatch;
mod hang;
mod support;
mod timing;
mod wavefront;
mod yielding;
