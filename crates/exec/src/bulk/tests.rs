//! Boxes of up to five dimensions against plain loops.

use super::*;

const SHARED: u64 = 65536;

fn request(dims: u8, coordinates: [i32; 5]) -> Request {
    Request {
        bulk: Bulk { way: BulkWay::ToShared, dims, reduce: None, multicast: false },
        shared: 0,
        from: 0,
        bytes: 0,
        global: 0,
        coordinates,
        ranks: 1,
        mbarrier: None,
        lane: 0,
    }
}

/// A tensor of halves with `sizes`, whose rows are padded to 16 bytes; element number n has the value n + 1.
fn tensor(rank: u32, sizes: [u32; 5], box_sizes: [u32; 5], steps: [u32; 5]) -> (TensorMap, Memory, Vec<u64>) {
    let mut strides = [0u64; 5];
    strides[0] = 2;
    let mut bytes = u64::from(sizes[0]) * 2;
    for d in 1..rank as usize {
        bytes = bytes.next_multiple_of(16);
        strides[d] = bytes;
        bytes *= u64::from(sizes[d]);
    }
    let mut memory = Memory::new(1 << 24, false);
    let address = memory.allocate(bytes, 16, "tensor").unwrap();
    let numbers: Vec<u8> = (0..bytes / 2).flat_map(|at| (at as u16 + 1).to_le_bytes()).collect();
    assert!(memory.write(address, &numbers));
    let map = TensorMap {
        address,
        element_type: 6,
        rank,
        sizes,
        strides: [strides[1], strides[2], strides[3], strides[4]],
        box_sizes,
        steps,
        swizzle: Swizzle::None,
        fills_nan: true,
    };
    (map, memory, strides.to_vec())
}

fn run(map: TensorMap, memory: &mut Memory, corner: [i32; 5]) -> Vec<u16> {
    let mut job = Job::new(request(map.rank as u8, corner), Some(map), memory, SHARED).unwrap();
    let total = job.total_bytes() as usize;
    let mut shared = Shared::new(SHARED as u32, 0, false);
    let mut access = WarpAccess::<32>::default();
    while !job.is_done() {
        job.give(&mut access, &shared, Pc(0));
        Job::serve(&mut access, memory);
        Job::deliver(job.delivery(), &access, &mut shared).unwrap();
    }
    shared.bytes[..total].chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

#[test]
fn boxes_of_every_dimension() {
    for (rank, corner, steps) in [
        (1, [3, 0, 0, 0, 0], [1; 5]),
        (2, [-5, 2, 0, 0, 0], [1; 5]),
        (3, [8, -1, 1, 0, 0], [1, 2, 1, 1, 1]),
        (4, [17, 3, 0, 2, 0], [1, 1, 3, 1, 1]),
        (5, [0, 1, -2, 1, 1], [1, 1, 1, 2, 1]),
        (5, [100, 0, 0, 0, 0], [1; 5]),
    ] {
        let (sizes, box_sizes) = ([24, 5, 4, 3, 2], [16, 4, 3, 3, 2]);
        let (map, mut memory, strides) = tensor(rank, sizes, box_sizes, steps);
        let found = run(map, &mut memory, corner);
        let counts: Vec<u32> = (0..5).map(|d| if d < rank as usize { map.count(d) } else { 1 }).collect();
        let mut wanted = Vec::new();
        let total: u32 = counts.iter().product();
        for at in 0..total {
            let mut left = at;
            let (mut inside, mut bytes) = (true, 0u64);
            for d in 0..rank as usize {
                let place = i64::from(corner[d]) + i64::from(left % counts[d] * steps[d]);
                left /= counts[d];
                inside &= (0..i64::from(sizes[d])).contains(&place);
                bytes = bytes.wrapping_add((place as u64).wrapping_mul(strides[d]));
            }
            wanted.push(if inside { (bytes / 2 + 1) as u16 } else { 0x7fff });
        }
        assert_eq!(found, wanted, "{rank} {corner:?}");
    }
}

#[test]
fn what_cannot_be_copied() {
    let (map, memory, _) = tensor(2, [24, 5, 0, 0, 0], [16, 4, 0, 0, 0], [1; 5]);
    let refused = |request: Request, map: Option<TensorMap>, shared: u64| {
        Job::new(request, map, &memory, shared).unwrap_err().to_string()
    };
    assert!(refused(request(3, [0; 5]), Some(map), SHARED).contains("2 dimensions, the instruction 3"));
    assert!(refused(request(2, [0; 5]), Some(map), 64).contains("shared memory"));
    let tall = TensorMap { sizes: [24, 50, 0, 0, 0], ..map };
    assert!(refused(request(2, [0, 40, 0, 0, 0]), Some(tall), SHARED).contains("tensor"));
    let reduce = |op, ty| {
        let mut request = request(2, [0; 5]);
        request.bulk = Bulk { way: BulkWay::ToGlobal, reduce: Some((op, Ty::B32)), ..request.bulk };
        refused(request, Some(TensorMap { element_type: ty, ..map }), SHARED)
    };
    assert!(reduce(AtomOp::Min, 7).contains("no such reduction"));
    assert!(reduce(AtomOp::Add, 0).contains("cannot be reduced"));
}
