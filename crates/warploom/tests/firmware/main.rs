//! Firmware on the control processor of the apu.

mod dispatch;
mod support;
mod timing;
