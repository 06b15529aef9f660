//! Placements of queens: a task per column that is not attacked. The last rows are counted within one task.

use warploom::Result;
use warploom_flow::Graph;
use warploom_flow::cilk::Cilk;

use super::{CTAS, EFFORT, GROUP, LAYOUT, ON, RESERVE, SCHEDULE, Target, flow_ptx, halves, whole, width};
use crate::work::{Bench, Check, Param, Values, Workload, equal};

/// The kernels have room for 16 columns.
pub(super) const N: Param = Param::new("n", "queens, and rows and columns of the board", 8).range(1, 16);
const SERIAL: Param = Param::new("serial", "rows that one task does alone", 4).range(1, 16);
const WIDTH: Param = width(16_384);

pub(in crate::work) const WORKLOAD: Workload = Workload {
    name: "queens",
    about: "Cilk: placements of queens that do not attack each other",
    params: &[N, SERIAL, WIDTH, GROUP, LAYOUT, RESERVE, EFFORT, ON, SCHEDULE, CTAS],
    run,
};

/// Attacked columns and diagonals, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Board {
    pub columns: u32,
    pub left: u32,
    pub right: u32,
}

impl Board {
    /// All boards with one more queen in the next row.
    pub(crate) fn next(self, n: u32) -> impl Iterator<Item = Board> {
        let open = !(self.columns | self.left | self.right) & ((1 << n) - 1);
        (0..n).map(|column| 1 << column).filter(move |column| open & column != 0).map(move |column| Board {
            columns: self.columns | column,
            left: (self.left | column) << 1,
            right: (self.right | column) >> 1,
        })
    }

    /// The number of ways to fill so many more rows.
    pub(crate) fn solutions(self, n: u32, rows: u32) -> u32 {
        if rows == 0 { 1 } else { self.next(n).map(|board| board.solutions(n, rows - 1)).sum() }
    }
}

/// The address of the result, the board, and the row.
type Element = [u32; 6];

/// The address of the sum, the number of terms, and the terms.
type Counts = [u32; 20];
const FIRST_COUNT: u32 = 4;

pub(crate) fn graph(n: u32, serial: u32, width: u32, result: u64) -> Graph {
    let mut program = Cilk::new("queens", width);
    let recursion = program.recursion(n.saturating_sub(serial) + 1);
    let queens = program.task::<Element>(recursion, "queens");
    let sum = program.after_sync::<Counts>(recursion, "queens_sum");
    program.spawns::<Element>(queens, queens, n).syncs::<Counts>(queens, sum);
    program.constants(queens, [sum.stack.into(), n.into(), serial.into()]);
    program.on_host(queens, move |lane| {
        let [low, high, columns, left, right, row] = lane.read::<Element>();
        let board = Board { columns, left, right };
        if n - row <= serial {
            return lane.memory().store(whole([low, high]), board.solutions(n, n - row));
        }
        let boards: Vec<Board> = board.next(n).collect();
        if boards.is_empty() {
            return lane.memory().store(whole([low, high]), 0);
        }
        let mut counts = [0; 20];
        counts[..3].copy_from_slice(&[low, high, boards.len() as u32]);
        let at = lane.put(sum.stack, lane.level, &[counts]);
        let task = |(i, board): (usize, &Board)| {
            let [low, high] = halves(lane.word(sum.stack, lane.level, at, FIRST_COUNT + i as u32));
            [low, high, board.columns, board.left, board.right, row + 1]
        };
        lane.put(queens.stack, lane.level + 1, &boards.iter().enumerate().map(task).collect::<Vec<_>>());
    });
    program.on_host(sum, |lane| {
        let counts = lane.read::<Counts>();
        let sum = counts[FIRST_COUNT as usize..][..counts[2] as usize].iter().sum();
        lane.memory().store(whole([counts[0], counts[1]]), sum);
    });
    let [low, high] = halves(result);
    program.start(queens, &[low, high, 0, 0, 0, 0]);
    program.graph().clone()
}

pub(super) fn graph_of(values: &Values) -> Graph {
    graph(values.get(&N), values.get(&SERIAL), values.get(&WIDTH), 0)
}

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let n: u32 = values.get(&N);
    let mut target = Target::new(bench, values, flow_ptx!("queens"))?;
    let result = target.words("result", &[0])?;
    target.run(values, &mut graph(n, values.get(&SERIAL), values.get(&WIDTH), result.address()))?;
    Ok(equal("counts of placements", &target.read(&result)?, &[Board::default().solutions(n, n)]))
}
