//! Textures and surfaces on both models, against the formulas of the CUDA programming guide. Filters are compared with
//! a real chip where they are computed (`exec`).

use warploom::texture::{AddressMode, ChannelKind, Format, Image, Layout, Object, Sampler};
use warploom::{Chip, Device, Error, Launch, SimModel, SimOptions, args};

/// A device of each model.
fn devices(chip: &str) -> [Device; 2] {
    [SimModel::Functional, SimModel::Timing].map(|model| {
        let chip = Chip::load(chip, &["sm.count=1".to_string()]).unwrap();
        Device::sim_with(chip, SimOptions { model, ..SimOptions::default() })
    })
}

/// A kernel in which every thread has four words `%r0` to `%r3` of its own and the handles `%h` and `%s`, and stores
/// `%o0` to `%o3`.
fn kernel(declarations: &str, body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n{declarations}\n\
         .visible .entry k(.param .u64 at, .param .u64 out, .param .u64 h, .param .u64 s) {{\n\
         .reg .b32 %r<9>; .reg .b32 %o<4>; .reg .b64 %d<9>; .reg .b64 %h, %s; .reg .pred %p;\n\
         ld.param.u64 %d0, [at]; ld.param.u64 %d1, [out]; ld.param.u64 %h, [h]; ld.param.u64 %s, [s];\n\
         mov.u32 %r8, %tid.x; mul.wide.u32 %d2, %r8, 16; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;\n\
         ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%d3];\n\
         mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;\n\
         {body}\n\
         st.global.v4.b32 [%d4], {{%o0, %o1, %o2, %o3}};\nret;\n}}\n"
    )
}

/// Runs the kernel with a thread for each four words.
fn run(gpu: &mut Device, text: &str, at: &[[u32; 4]], handles: [u64; 2]) -> Result<Vec<[u32; 4]>, Error> {
    let module = gpu.load_ptx(text)?;
    let at = gpu.buffer(at.as_flattened())?;
    let out = gpu.zeros::<u32>(at.len())?;
    let launch = Launch::grid(1).block(at.len() as u32 / 4);
    gpu.launch(module.kernel("k")?, launch, args![&at, &out, handles[0], handles[1]])?;
    Ok(out.read(gpu)?.chunks(4).map(|words| words.try_into().unwrap()).collect())
}

fn floats(values: &[[f32; 3]]) -> Vec<[u32; 4]> {
    values.iter().map(|&[x, y, z]| [x.to_bits(), y.to_bits(), z.to_bits(), 0]).collect()
}

fn f32s(words: &[[u32; 4]], channel: usize) -> Vec<f32> {
    words.iter().map(|each| f32::from_bits(each[channel])).collect()
}

const R32F: Format = Format { channels: 1, bits: 32, kind: ChannelKind::Float };

/// An array with the texels of `value(x, y, slice)`, written through its layout.
fn array(
    gpu: &mut Device,
    extent: [u32; 3],
    layers: u32,
    cube: bool,
    value: impl Fn([u32; 3]) -> f32,
) -> Image {
    let mut image = Image { address: 0, format: R32F, extent, layers, cube, layout: Layout::Blocks };
    let mut bytes = vec![0; image.bytes() as usize];
    for slice in 0..extent[2].max(layers).max(1) {
        for y in 0..extent[1].max(1) {
            for x in 0..extent[0] {
                let at = image.texel(x, y, slice) as usize;
                bytes[at..at + 4].copy_from_slice(&value([x, y, slice]).to_le_bytes());
            }
        }
    }
    image.address = gpu.allocate(image.bytes(), "array").unwrap();
    gpu.write_bytes(image.address, &bytes).unwrap();
    image
}

const TEX: &str = "{%o0, %o1, %o2, %o3}";

#[test]
fn one_dimension_follows_the_guides_formulas() {
    for chip in ["gtx480", "gtx1080ti", "h200", "apu"] {
        for mut gpu in devices(chip) {
            let image = array(&mut gpu, [4, 0, 0], 0, false, |[x, ..]| [10.0, 20.0, 40.0, 80.0][x as usize]);
            let text = kernel("", &format!("tex.1d.v4.f32.f32 {TEX}, [%h, {{%r0}}];"));
            let mut fetch = |sampler: Sampler, at: &[f32]| {
                let handle = gpu.create_texture(Object::Texture(image, sampler)).unwrap();
                let at: Vec<[f32; 3]> = at.iter().map(|&x| [x, 0.0, 0.0]).collect();
                let found = run(&mut gpu, &text, &floats(&at), [handle, 0]).unwrap();
                assert_eq!(f32s(&found, 1), vec![0.0; at.len()], "the format has one channel");
                f32s(&found, 0)
            };
            let sampler = |mode| Sampler { address: [mode; 3], ..Sampler::default() };
            let clamp = sampler(AddressMode::Clamp);
            let places = [0.0, 0.99, 1.0, 3.5, 4.0, 1e30, -0.01, -1e30, f32::NAN, f32::INFINITY];
            let nearest = [10.0, 10.0, 20.0, 80.0, 80.0, 80.0, 10.0, 10.0, 10.0, 80.0];
            assert_eq!(fetch(clamp, &places), nearest, "{chip}");
            // tex(x) = (1 - a) T[i] + a T[i + 1], with i and a the whole part and the fraction of x - 0.5.
            let linear = Sampler { linear: true, ..clamp };
            assert_eq!(fetch(linear, &[0.5, 1.0, 2.25, 3.5, 9.0, 0.0]), [10.0, 15.0, 35.0, 80.0, 80.0, 10.0]);
            // 8 bits of fraction: 1/512 is rounded up, less than that down.
            assert_eq!(fetch(linear, &[0.5 + 1.0 / 512.0, 0.5 + 1.0 / 513.0]), [10.0 + 10.0 / 256.0, 10.0]);
            let normalized = |mode, linear| Sampler { normalized: true, linear, ..sampler(mode) };
            let wrap = normalized(AddressMode::Wrap, false);
            assert_eq!(fetch(wrap, &[0.25, 1.25, -0.25, 5.0, -0.001]), [20.0, 20.0, 80.0, 10.0, 80.0]);
            let mirror = normalized(AddressMode::Mirror, false);
            assert_eq!(fetch(mirror, &[0.25, 1.3, -0.3, 1.001, 2.0]), [20.0, 40.0, 20.0, 80.0, 10.0]);
            assert_eq!(fetch(normalized(AddressMode::Wrap, true), &[0.0, 1.0]), [45.0, 45.0]);
            let border = Sampler { border: [-1.0; 4], ..sampler(AddressMode::Border) };
            assert_eq!(fetch(border, &[-0.5, 0.0, 3.9, 4.0]), [-1.0, 10.0, 80.0, -1.0]);
            // A line is an image of one row, fetched at its upper edge.
            let linear_border = Sampler { linear: true, ..border };
            assert_eq!(fetch(linear_border, &[0.0, 4.0]), [1.75, 19.25]);
            let address = [AddressMode::Border, AddressMode::Clamp, AddressMode::Clamp];
            assert_eq!(fetch(Sampler { address, ..linear_border }, &[0.0, 4.0]), [4.5, 39.5]);
            // Without normalized coordinates there is nothing to repeat.
            assert_eq!(fetch(sampler(AddressMode::Wrap), &[-3.0, 9.0]), [10.0, 80.0]);
        }
    }
}

#[test]
fn two_and_three_dimensions_layers_and_cubes() {
    for mut gpu in devices("h200") {
        let sampler = Sampler { linear: true, ..Sampler::default() };
        let flat = array(&mut gpu, [8, 4, 0], 0, false, |[x, y, _]| (x + 100 * y) as f32);
        let deep = array(&mut gpu, [4, 4, 4], 0, false, |[x, y, z]| (x + 10 * y + 100 * z) as f32);
        let stack = array(&mut gpu, [4, 4, 0], 3, false, |[x, y, z]| (x + 10 * y + 100 * z) as f32);
        let rows = array(&mut gpu, [4, 0, 0], 3, false, |[x, _, z]| (x + 100 * z) as f32);
        let cube = array(&mut gpu, [2, 2, 0], 12, true, |[_, _, z]| z as f32);
        let mut fetch = |image: Image, instruction: &str, at: &[[u32; 4]]| {
            let handle = gpu.create_texture(Object::Texture(image, sampler)).unwrap();
            let text = kernel("", &format!("{instruction} {TEX}, [%h, {{%r0, %r1, %r2, %r3}}];"));
            f32s(&run(&mut gpu, &text, at, [handle, 0]).unwrap(), 0)
        };
        let at = floats(&[[0.5, 0.5, 0.0], [1.0, 0.5, 0.0], [1.0, 1.0, 0.0], [7.5, 9.0, 0.0]]);
        assert_eq!(fetch(flat, "tex.2d.v4.f32.f32", &at), [0.0, 0.5, 50.5, 307.0]);
        let at = floats(&[[0.5, 0.5, 0.5], [1.0, 1.0, 1.0], [0.5, 0.5, 2.0]]);
        assert_eq!(fetch(deep, "tex.3d.v4.f32.f32", &at), [0.0, 55.5, 150.0]);
        let layer = |layer: u32, x: f32, y: f32| [layer, x.to_bits(), y.to_bits(), 0];
        let at = [layer(0, 0.5, 0.5), layer(2, 1.0, 1.5), layer(7, 0.5, 0.5), layer(u32::MAX, 0.5, 0.5)];
        assert_eq!(fetch(stack, "tex.a2d.v4.f32.f32", &at), [0.0, 210.5, 200.0, 0.0], "layers are clamped");
        let at = [layer(1, 0.5, 0.0), layer(2, 3.0, 0.0)];
        assert_eq!(fetch(rows, "tex.a1d.v4.f32.f32", &at), [100.0, 202.5]);
        let at = floats(&[
            [1.0, 0.1, 0.2],
            [-1.0, 0.0, 0.0],
            [0.0, 2.0, 0.0],
            [0.0, -1.0, 0.5],
            [0.1, 0.0, 3.0],
            [0.0, 0.0, -1.0],
        ]);
        assert_eq!(
            fetch(Image { layers: 6, ..cube }, "tex.cube.v4.f32.f32", &at),
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        );
        let cubes: Vec<[u32; 4]> = at.iter().map(|&[x, y, z, _]| [1, x, y, z]).collect();
        assert_eq!(fetch(cube, "tex.acube.v4.f32.f32", &cubes), [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
    }
}

#[test]
fn offsets_levels_and_gathers() {
    for mut gpu in devices("h200") {
        let image = array(&mut gpu, [8, 8, 0], 0, false, |[x, y, _]| (x + 100 * y) as f32);
        let handle = gpu.create_texture(Object::Texture(image, Sampler::default())).unwrap();
        let mut fetch = |instruction: &str| {
            let at = floats(&[[3.5, 3.5, 0.0]]);
            run(&mut gpu, &kernel("", instruction), &at, [handle, 0]).unwrap()[0].map(f32::from_bits)
        };
        assert_eq!(fetch(&format!("tex.2d.v4.f32.f32 {TEX}, [%h, {{%r0, %r1}}], {{2, -1}};"))[0], 205.0);
        assert_eq!(fetch(&format!("tex.level.2d.v4.f32.f32 {TEX}, [%h, {{%r0, %r1}}], %r2;"))[0], 303.0);
        let derivatives = "{%r2, %r2}, {%r2, %r2}";
        assert_eq!(
            fetch(&format!("tex.grad.2d.v4.f32.f32 {TEX}, [%h, {{%r0, %r1}}], {derivatives};"))[0],
            303.0
        );
        // The footprint of a linear filter, counter-clockwise from the lower left.
        let text = format!("tld4.r.2d.v4.f32.f32 {TEX}, [%h, {{%r0, %r1}}];");
        assert_eq!(fetch(&text), [403.0, 404.0, 304.0, 303.0]);
        assert_eq!(
            fetch(
                "tex.2d.v4.f32.f32 {%o0, _, _, _}|%p, [%h, {%r0, %r1}]; selp.b32 %o1, 0f3f800000, 0f00000000, %p;"
            )[..2],
            [303.0, 1.0]
        );
    }
}

#[test]
fn integers_are_read_as_they_are_or_as_fractions() {
    for mut gpu in devices("gtx480") {
        let format = |bits, kind| Format { channels: 4, bits, kind };
        let bytes = [0u8, 128, 255, 127, 1, 2, 3, 129];
        let address = gpu.allocate(8, "texels").unwrap();
        gpu.write_bytes(address, &bytes).unwrap();
        let mut fetch = |format: Format, width: u32, normalized_read: bool, ty: &str| {
            let layout = Layout::Rows(8);
            let image = Image { address, format, extent: [width, 0, 0], layers: 0, cube: false, layout };
            let sampler = Sampler { normalized_read, ..Sampler::default() };
            let handle = gpu.create_texture(Object::Texture(image, sampler)).unwrap();
            let text = kernel("", &format!("tex.1d.v4.{ty}.s32 {TEX}, [%h, %r0];"));
            run(&mut gpu, &text, &[[0; 4], [1, 0, 0, 0], [2, 0, 0, 0], [u32::MAX, 0, 0, 0]], [handle, 0])
                .unwrap()
        };
        let unsigned = fetch(format(8, ChannelKind::Unsigned), 2, false, "u32");
        assert_eq!(unsigned, [[0, 128, 255, 127], [1, 2, 3, 129], [0; 4], [0; 4]], "beyond its ends is 0");
        let signed = fetch(format(8, ChannelKind::Signed), 2, false, "s32");
        assert_eq!(signed[0].map(|word| word as i32), [0, -128, -1, 127]);
        let unit = fetch(format(8, ChannelKind::Unsigned), 2, true, "f32");
        assert_eq!(unit[0].map(f32::from_bits), [0.0, 128.0 / 255.0, 1.0, 127.0 / 255.0]);
        let signed = fetch(format(8, ChannelKind::Signed), 2, true, "f32");
        assert_eq!(signed[0].map(f32::from_bits), [0.0, -1.0, -1.0 / 127.0, 1.0]);
        let short = fetch(format(16, ChannelKind::Unsigned), 1, false, "u32");
        assert_eq!(short[0], [0x8000, 0x7fff, 0x0201, 0x8103]);
    }
}

#[test]
fn references_and_samplers_of_their_own() {
    let declarations = ".global .texref t;\n\
        .global .samplerref near = { addr_mode_0 = clamp_to_edge, force_unnormalized_coords = 1 };\n\
        .global .samplerref blend = { addr_mode_0 = wrap, filter_mode = linear };";
    for mut gpu in devices("gtx480") {
        let image = array(&mut gpu, [4, 0, 0], 0, false, |[x, ..]| x as f32);
        let text = kernel(
            declarations,
            "tex.1d.v4.f32.f32 {%o0, _, _, _}, [t, {%r0}];\n\
             tex.1d.v4.f32.f32 {%o1, _, _, _}, [t, near, {%r0}];\n\
             mov.u64 %d5, t; tex.1d.v4.f32.f32 {%o2, _, _, _}, [%d5, blend, {%r1}];\n\
             txq.width.b32 %o3, [t];",
        );
        let at = floats(&[[2.75, 0.5, 0.0]]);
        let module = gpu.load_ptx(&text).unwrap();
        let (input, out) = (gpu.buffer(at.as_flattened()).unwrap(), gpu.zeros::<u32>(4).unwrap());
        let kernel = module.kernel("k").unwrap();
        let unbound =
            gpu.launch(&kernel, Launch::grid(1).block(1), args![&input, &out, 0u64, 0u64]).unwrap_err();
        let message = unbound.to_string();
        assert!(message.contains("the texture reference `t` is not bound"), "{message}");
        assert!(
            message.contains("thread       (0,0,0) of CTA (0,0,0)") && message.contains("[t, {%r0}]"),
            "{message}"
        );
        let (address, _) = module.global("t").unwrap();
        gpu.bind_texture(address, Some(Object::Texture(image, Sampler::default()))).unwrap();
        gpu.launch(&kernel, Launch::grid(1).block(1), args![&input, &out, 0u64, 0u64]).unwrap();
        let out = out.read(&gpu).unwrap();
        assert_eq!([0, 1, 2].map(|at| f32::from_bits(out[at])), [2.0, 2.0, 1.5]);
        assert_eq!(out[3], 4);
    }
}

#[test]
fn properties_are_asked_for() {
    let body = "txq.width.b32 %o0, [%h]; txq.height.b32 %o1, [%h]; txq.depth.b32 %o2, [%h];\n\
        txq.filter_mode.b32 %o3, [%h]; suq.width.b32 %r4, [%s]; shl.b32 %r4, %r4, 8; add.u32 %o3, %o3, %r4;";
    for mut gpu in devices("gtx480") {
        let image = array(&mut gpu, [5, 6, 7], 0, false, |_| 0.0);
        let sampler = Sampler { linear: true, ..Sampler::default() };
        let texture = gpu.create_texture(Object::Texture(image, sampler)).unwrap();
        let surface = gpu.create_texture(Object::Surface(image)).unwrap();
        let found = run(&mut gpu, &kernel("", body), &[[0; 4]], [texture, surface]).unwrap();
        assert_eq!(found, [[5, 6, 7, 0x501]]);
    }
}

#[test]
fn surfaces_are_loaded_stored_and_added_to() {
    let body = "shl.b32 %r4, %r0, 2;\n\
        suld.b.2d.b32.zero %o0, [%h, {%r4, %r1}];\n\
        sust.b.2d.b32.zero [%h, {%r4, %r1}], %r2;\n\
        suld.b.2d.b32.clamp %o1, [%s, {%r4, %r1}];\n\
        sured.b.add.2d.u32.zero [%s, {%r4, %r1}], 1000;";
    for chip in ["gtx480", "h200", "apu"] {
        for mut gpu in devices(chip) {
            let values = |[x, y, _]: [u32; 3]| f32::from_bits(x + 10 * y);
            let [first, second] = [(); 2].map(|()| array(&mut gpu, [4, 3, 0], 0, false, values));
            let handles = [first, second].map(|image| gpu.create_texture(Object::Surface(image)).unwrap());
            let outside = -1i32 as u32;
            let at = [[1, 2, 77, 0], [4, 0, 78, 0], [outside, 1, 79, 0], [3, 9, 80, 0]];
            let found = run(&mut gpu, &kernel("", body), &at, handles).unwrap();
            assert_eq!(found.iter().map(|each| each[0]).collect::<Vec<_>>(), [21, 0, 0, 0], "{chip}");
            assert_eq!(found.iter().map(|each| each[1]).collect::<Vec<_>>(), [21, 3, 10, 23]);
            let word = |gpu: &Device, image: &Image, x, y| {
                u32::from_le_bytes(gpu.read_bytes(image.texel(x, y, 0), 4).unwrap().try_into().unwrap())
            };
            assert_eq!(
                [word(&gpu, &first, 1, 2), word(&gpu, &first, 3, 0), word(&gpu, &first, 3, 2)],
                [77, 3, 23]
            );
            assert_eq!([word(&gpu, &second, 1, 2), word(&gpu, &second, 3, 2)], [1021, 23]);
        }
    }
}

/// The bytes are those that the H200 left.
#[test]
fn formatted_accesses_know_the_texels() {
    let store = "sust.p.1d.v4.b32.zero [%h, {%r0}], {%r1, %r2, %r3, %r1};\n\
        sust.p.1d.b32.clamp [%s, {%r0}], %r3;";
    let reduce = "sured.p.min.1d.b32.zero [%h, {%r0}], %r1;\nsured.p.max.1d.b64.zero [%s, {%r0}], 5;";
    for chip in ["gtx480", "h200", "apu"] {
        for mut gpu in devices(chip) {
            let mut surface = |channels, bits, kind, width, bytes: &[u8]| {
                let format = Format { channels, bits, kind };
                let address = gpu.allocate(bytes.len() as u64, "surface").unwrap();
                gpu.write_bytes(address, bytes).unwrap();
                let layout = Layout::Rows(u64::from(width * format.bytes()));
                let image = Image { address, format, extent: [width, 0, 0], layers: 0, cube: false, layout };
                (gpu.create_texture(Object::Surface(image)).unwrap(), address)
            };
            let (bytes, bytes_at) = surface(4, 8, ChannelKind::Signed, 2, &[9; 8]);
            let (halves, halves_at) = surface(2, 16, ChannelKind::Float, 2, &[9; 8]);
            let (signed, signed_at) = surface(1, 32, ChannelKind::Signed, 2, &[0xff; 8]);
            let (floats, floats_at) = surface(2, 32, ChannelKind::Float, 1, &[1, 0, 0, 0, 0, 0, 0, 0]);
            let minus = |value: i32| -value as u32;
            let at = [[0, 200, minus(300), 0x3f80_1fff], [7, 1, 2, 0x4780_0000]];
            run(&mut gpu, &kernel("", store), &at, [bytes, halves]).unwrap();
            // The second thread is beyond both: one store is dropped, the other goes to the last texel.
            let half = [0x00, 0x3c, 0, 0, 0xff, 0x7b, 0, 0];
            assert_eq!(gpu.read_bytes(bytes_at, 8).unwrap(), [0x7f, 0x80, 0x7f, 0x7f, 9, 9, 9, 9]);
            assert_eq!(gpu.read_bytes(halves_at, 8).unwrap(), half);
            let at = [[1, minus(5), 0, 0], [0, 3, 0, 0]];
            run(&mut gpu, &kernel("", reduce), &at, [signed, floats]).unwrap();
            assert_eq!(gpu.read_bytes(signed_at, 8).unwrap(), [255, 255, 255, 255, 251, 255, 255, 255]);
            assert_eq!(gpu.read_bytes(floats_at, 8).unwrap(), [5, 0, 0, 0, 0, 0, 0, 0]);
            let mixed =
                "setp.eq.u32 %p, %r8, 0; selp.b64 %h, %h, %s, %p;\nsust.p.1d.b32.zero [%h, {%r0}], %r1;";
            let error =
                run(&mut gpu, &kernel("", mixed), &[[0; 4]; 2], [signed, floats]).unwrap_err().to_string();
            assert!(error.contains("name surfaces of different formats"), "{error}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_fetch_is_said_with_its_thread_and_line() {
    let fetch = format!("tex.2d.v4.f32.f32 {TEX}, [%h, {{%r0, %r1}}];");
    let load = "suld.b.2d.b32.trap %o0, [%h, {%r0, %r1}];";
    for mut gpu in devices("h200") {
        let image = array(&mut gpu, [4, 4, 0], 0, false, |_| 0.0);
        let texture = gpu.create_texture(Object::Texture(image, Sampler::default())).unwrap();
        let surface = gpu.create_texture(Object::Surface(image)).unwrap();
        let gone = gpu.create_texture(Object::Texture(image, Sampler::default())).unwrap();
        gpu.destroy_texture(gone).unwrap();
        assert!(gpu.destroy_texture(gone).is_err());
        let deep = array(&mut gpu, [4, 4, 4], 0, false, |_| 0.0);
        let deep = gpu.create_texture(Object::Texture(deep, Sampler::default())).unwrap();
        let freed = array(&mut gpu, [4, 4, 0], 0, false, |_| 0.0);
        let of_freed = gpu.create_texture(Object::Texture(freed, Sampler::default())).unwrap();
        gpu.free(freed.address).unwrap();
        let cases: [(&str, u64, [u32; 4], &str); 10] = [
            (&fetch, 0, [0; 4], "handle 0x0 names no texture"),
            (&fetch, u64::MAX, [0; 4], "handle 0xffffffffffffffff names no texture"),
            (&fetch, 1 << 40, [0; 4], "names no texture"),
            (&fetch, surface, [0; 4], "names a surface, not a texture"),
            (load, texture, [0; 4], "names a texture, not a surface"),
            (&fetch, gone, [0; 4], "was destroyed"),
            (&fetch, deep, [0; 4], "the texture is `.3d`, the instruction `.2d`"),
            (&fetch, of_freed, [0; 4], "which was freed"),
            (
                load,
                surface,
                [16, 0, 0, 0],
                "byte 16 of row 0, slice 0 is beyond the surface: 4 x 4 x 0 elements",
            ),
            (load, surface, [2, 0, 0, 0], "byte 2 of a surface's row is not a multiple of 4"),
        ];
        for (instruction, handle, at, message) in cases {
            let error = run(&mut gpu, &kernel("", instruction), &[at], [handle, 0]).unwrap_err().to_string();
            assert!(error.contains(message), "{message}: {error}");
            assert!(
                error.contains("thread       (0,0,0) of CTA (0,0,0)") && error.contains("<ptx>:"),
                "{error}"
            );
        }
        assert!(gpu.create_texture(Object::Surface(Image { extent: [0; 3], ..image })).is_err());
        assert!(gpu.create_texture(Object::Surface(Image { extent: [4, 4000, 0], ..image })).is_err());
        assert!(gpu.create_texture(Object::Surface(Image { address: 8, ..image })).is_err());
    }
}

#[test]
fn what_ptx_forbids_is_refused() {
    let mut gpu = Device::sim("gtx480").unwrap();
    let plain = ".global .u32 plain;";
    for (body, message) in [
        ("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, {%r0}];", "takes 2 values here, there are 1"),
        ("tex.2d.v4.f32.f32 {%o0, %o1, %o2}, [%h, {%r0, %r1}];", "moves 4 elements, the list has 3"),
        ("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [plain, {%r0, %r1}];", "`plain` is no `.texref` variable"),
        ("tex.2d.v4.f64.f32 {%o0, %o1, %o2, %o3}, [%h, {%r0, %r1}];", "is not a type of `tex`"),
        (
            "tex.cube.v4.f32.s32 {%o0, %o1, %o2, %o3}, [%h, {%r0, %r1, %r2, %r3}];",
            "a direction is not an integer",
        ),
        ("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%r0, {%r0, %r1}];", "is 32 bits wide"),
        ("suld.b.2d.v4.b64 {%d5, %d6, %d7, %d8}, [%h, {%r0, %r1}];", "moves more than 16 bytes"),
        ("sust.p.2d.b16.trap [%h, {%r0, %r1}], %o0;", "`.b16` is not a type of `sust`"),
        ("suld.p.2d.b32.trap %o0, [%h, {%r0, %r1}];", "`suld.p.2d.b32.trap` needs `.b`"),
        ("sured.p.add.2d.u32.trap [%h, {%r0, %r1}], %o0;", "`.u32` is not a type of `sured`"),
        ("tex.2dms.v4.f32.s32 {%o0, %o1, %o2, %o3}, [%h, {%r0, %r1, %r2, %r3}];", "multisample textures"),
    ] {
        let error = gpu.load_ptx(&kernel(plain, body)).unwrap_err().to_string();
        assert!(error.contains(message), "{body}: {error}");
    }
}

/// A fetch that hits takes the texture units' latency, a filter's adds to it, and a warp's fetches come no faster than
/// the units take lanes.
#[test]
fn fetches_take_their_time() {
    let chain = |linear: bool, fetches: usize| {
        let mut gpu =
            Device::sim_with(Chip::load("h200", &["sm.count=1".to_string()]).unwrap(), SimOptions::default());
        let image = array(&mut gpu, [8, 8, 0], 0, false, |_| 0.5);
        let sampler = Sampler { linear, ..Sampler::default() };
        let handle = gpu.create_texture(Object::Texture(image, sampler)).unwrap();
        let body = "tex.2d.v4.f32.f32 {%r0, _, _, _}, [%h, {%r0, %r0}];\n".repeat(fetches);
        let module = gpu.load_ptx(&kernel("", &body)).unwrap();
        let at = gpu.zeros::<u32>(128).unwrap();
        gpu.launch(module.kernel("k").unwrap(), Launch::grid(1).block(32), args![&at, &at, handle, 0u64])
            .unwrap()
            .cycles
    };
    let each = |linear| (chain(linear, 40) - chain(linear, 20)) / 20;
    let (point, linear) = (each(false), each(true));
    assert!((121..=125).contains(&point), "{point} cycles");
    assert_eq!(linear - point, 7);
}
