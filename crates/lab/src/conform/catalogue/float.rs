//! f32 and f64 arithmetic.

pub(super) const SINGLE: &[&str] = &[
    "{add,sub,mul}{,.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 T = T T",
    "{fma,mad}<rnd>{,.ftz}{,.sat}.f32 T = T T T",
    "div<rnd>{,.ftz}.f32 T = T T",
    "{rcp,sqrt}<rnd>{,.ftz}.f32 T = T",
    "{abs,neg}{,.ftz}.f32 T = T",
    "{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f32 T = T T",
    "testp.{finite,infinite,number,notanumber,normal,subnormal}.f32 p = T",
    "copysign.f32 T = T T",
];

pub(super) const DOUBLE: &[&str] = &[
    "{add,sub,mul}{,.rn,.rz,.rm,.rp}.f64 T = T T",
    "{fma,mad}<rnd>.f64 T = T T T",
    "div<rnd>.f64 T = T T",
    "{rcp,sqrt}<rnd>.f64 T = T",
    "{abs,neg}.f64 T = T",
    "{min,max}.f64 T = T T",
    "testp.{finite,infinite,number,notanumber,normal,subnormal}.f64 p = T",
    "copysign.f64 T = T T",
];
