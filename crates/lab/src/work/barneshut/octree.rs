//! The kernels' octree on the host. A parent has a higher number than its children.

use warploom::grouped;

use super::Check;

/// A position, and a mass that nothing here depends on.
pub(super) type Body = [f32; 4];

/// No child.
pub(super) const NONE: u32 = u32::MAX;

/// Half the side of the root's cube, which is centred at the origin.
pub(super) const REACH: f32 = 1.0;

/// Nodes below `bodies` are bodies. Nodes from `lowest` to `root` are cells, with eight children each.
#[derive(Clone, Debug)]
pub(super) struct Octree {
    pub bodies: u32,
    pub root: u32,
    pub lowest: u32,
    pub children: Vec<u32>,
}

impl Octree {
    /// A root without children, and room for more cells than bodies at distinct positions need.
    pub(super) fn new(bodies: u32) -> Octree {
        let cells = 2 * bodies + 64;
        let root = bodies + cells - 1;
        Octree { bodies, root, lowest: root, children: vec![NONE; 8 * cells as usize] }
    }

    /// The tree of all bodies; `None` if it has no room for the cells.
    pub(super) fn build(bodies: &[Body]) -> Option<Octree> {
        let mut tree = Octree::new(bodies.len() as u32);
        for body in 0..tree.bodies {
            tree.insert(bodies, body)?;
        }
        Some(tree)
    }

    fn insert(&mut self, bodies: &[Body], new: u32) -> Option<()> {
        let position = bodies[new as usize];
        let (mut cell, mut at) = (self.root, Cube { middle: [0.0; 3], half: 0.5 * REACH });
        loop {
            let slot = self.slot(cell, at.octant(position));
            at.enter(at.octant(position));
            let child = self.children[slot];
            if child == NONE {
                self.children[slot] = new;
                return Some(());
            }
            if child >= self.bodies {
                cell = child;
                continue;
            }
            // The slot has a body: put it into a new cell, and continue there.
            if self.lowest == self.bodies {
                return None;
            }
            self.lowest -= 1;
            self.children[slot] = self.lowest;
            cell = self.lowest;
            let below = self.slot(cell, at.octant(bodies[child as usize]));
            self.children[below] = child;
        }
    }

    fn slot(&self, cell: u32, octant: usize) -> usize {
        8 * (cell - self.bodies) as usize + octant
    }

    fn children_of(&self, cell: u32) -> &[u32] {
        &self.children[self.slot(cell, 0)..][..8]
    }

    /// Number of bodies below each cell.
    pub(super) fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.children.len() / 8];
        for cell in self.lowest..=self.root {
            let of = |&child: &u32| match child {
                NONE => 0,
                body if body < self.bodies => 1,
                // A cell below has a lower number, so it is already counted.
                cell => counts[(cell - self.bodies) as usize],
            };
            let sum = self.children_of(cell).iter().map(of).sum();
            counts[(cell - self.bodies) as usize] = sum;
        }
        counts
    }

    /// The bodies in the kernel's order: depth first, by octant.
    pub(super) fn leaves(&self) -> Vec<u32> {
        let (mut leaves, mut rest) = (Vec::new(), vec![self.root]);
        while let Some(node) = rest.pop() {
            match node {
                NONE => {}
                body if body < self.bodies => leaves.push(body),
                cell => rest.extend(self.children_of(cell).iter().rev()),
            }
        }
        leaves
    }

    /// Whether both trees have the same bodies in the same octants. The numbers of cells depend on the order of
    /// insertion, so they are not compared.
    pub(super) fn same_as(&self, expected: &Octree) -> Check {
        let cell = |node: u32| (self.lowest.max(self.bodies)..=self.root).contains(&node);
        let mut rest = vec![(self.root, expected.root)];
        let mut cells = 0u64;
        while let Some((got, want)) = rest.pop() {
            cells += 1;
            for (octant, (&g, &w)) in self.children_of(got).iter().zip(expected.children_of(want)).enumerate()
            {
                let is_cell = w != NONE && w >= expected.bodies;
                if is_cell && cell(g) {
                    rest.push((g, w));
                } else if is_cell || g != w {
                    let name = |node| match node {
                        NONE => "empty".to_string(),
                        body if body < self.bodies => format!("body {body}"),
                        other if cell(other) => format!("cell {other}"),
                        other => format!("{other}, which is no node"),
                    };
                    let wanted = if is_cell { "a cell".to_string() } else { name(w) };
                    return Err(format!("octant {octant} of cell {got} is {}, not {wanted}", name(g)));
                }
            }
        }
        Ok(format!(
            "{} bodies are at the host's places in {} cells",
            grouped(self.bodies.into()),
            grouped(cells)
        ))
    }
}

/// The cube of a cell: its middle, and the distance from there to the middles of its octants along an axis.
struct Cube {
    middle: [f32; 3],
    half: f32,
}

impl Cube {
    fn octant(&self, body: Body) -> usize {
        (0..3).map(|axis| usize::from(self.middle[axis] < body[axis]) << axis).sum()
    }

    fn enter(&mut self, octant: usize) {
        for (axis, middle) in self.middle.iter_mut().enumerate() {
            *middle += if octant >> axis & 1 == 1 { self.half } else { -self.half };
        }
        self.half *= 0.5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODIES: [Body; 3] = [[0.1, 0.1, 0.1, 1.0], [-0.5, 0.5, 0.5, 1.0], [0.2, 0.2, 0.2, 1.0]];

    #[test]
    fn bodies_part_and_are_counted() {
        let tree = Octree::build(&BODIES).unwrap();
        // Bodies 0 and 2 are in the same octant of three cells and part at 0.125, the middle of the fourth.
        let cells = tree.root - tree.lowest + 1;
        assert_eq!(cells, 4);
        assert_eq!(tree.leaves(), [1, 0, 2]);
        assert_eq!(tree.counts()[(tree.root - tree.bodies) as usize], 3);
    }

    #[test]
    fn the_order_does_not_matter_and_places_do() {
        let tree = Octree::build(&BODIES).unwrap();
        let said = "3 bodies are at the host's places in 4 cells".to_string();
        assert_eq!(tree.same_as(&tree), Ok(said.clone()));
        let mut other = Octree::new(3);
        for body in [2, 1, 0] {
            other.insert(&BODIES, body).unwrap();
        }
        assert_eq!(other.same_as(&tree), Ok(said));
        let root = other.slot(other.root, 6);
        other.children[root] = NONE;
        let wrong = format!("octant 6 of cell {} is empty, not body 1", other.root);
        assert_eq!(other.same_as(&tree), Err(wrong));
    }
}
