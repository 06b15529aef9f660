//! ATM of HPCA'18: transfers between bank accounts with one spin lock per account, so two nested locks per transfer,
//! as in Figure 6a. The paper's 122 K transfers, 24 K threads and 1000 accounts are `transfers=122_000 ctas=125
//! threads=192`.

use warploom::{Launch, Result, args, grouped};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const TRANSFERS: Param = Param::new("transfers", "transfers between two accounts", 12_200).range(1, 1 << 26);
const ACCOUNTS: Param =
    Param::new("accounts", "accounts; fewer mean more contention", 1000).range(2, 1 << 26);
const CTAS: Param = Param::new("ctas", "CTAs; their threads share the transfers evenly", 125);
const THREADS: Param = Param::new("threads", "threads of a CTA", 192).range(1, 1024);

pub(super) const WORKLOAD: Workload = Workload {
    name: "atm",
    about: "ATM: transfers between bank accounts, two nested spin locks each",
    params: &[TRANSFERS, ACCOUNTS, CTAS, THREADS, SEED],
    run,
};

/// From, to, amount.
type Transfer = [u32; 3];

/// Initial balance of every account.
const BALANCE: u32 = 1_000_000;

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (count, accounts): (usize, usize) = (values.get(&TRANSFERS), values.get(&ACCOUNTS));
    let (ctas, threads): (u32, u32) = (values.get(&CTAS), values.get(&THREADS));
    let mut random = Random::new(values.get(&SEED));
    let transfers: Vec<Transfer> = (0..count).map(|_| transfer(&mut random, accounts)).collect();

    let module = bench.load(ptx!("sync/atm"))?;
    let transfers_buffer = bench.gpu.buffer_named("transfers", &transfers)?;
    let balances = bench.gpu.buffer_named("balances", &vec![BALANCE; accounts])?;
    let locks = bench.gpu.zeros_named::<u32>("locks", accounts)?;
    let args = args![&transfers_buffer, count as u32, &balances, &locks];
    bench.launch(&module.kernel("atm_transfer")?, Launch::grid(ctas).block(threads), args)?;

    Ok(check(&transfers, &balances.read(bench.gpu)?, &locks.read(bench.gpu)?))
}

/// The two accounts differ.
fn transfer(random: &mut Random, accounts: usize) -> Transfer {
    let from = random.below(accounts);
    let to = (from + 1 + random.below(accounts - 1)) % accounts;
    [from as u32, to as u32, 1 + random.below(1000) as u32]
}

/// The order of the transfers does not matter: the sums are the same.
fn check(transfers: &[Transfer], balances: &[u32], locks: &[u32]) -> Check {
    if let Some(account) = locks.iter().position(|&lock| lock != 0) {
        return Err(format!("the lock of account {account} is still taken"));
    }
    let mut expected = vec![BALANCE; balances.len()];
    for &[from, to, amount] in transfers {
        expected[from as usize] = expected[from as usize].wrapping_sub(amount);
        expected[to as usize] = expected[to as usize].wrapping_add(amount);
    }
    let count = grouped(transfers.len() as u64);
    equal("balances", balances, &expected).map(|right| format!("after {count} transfers {right}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_transfers_and_locks_are_seen() {
        let transfers = [[0, 1, 5], [1, 2, 7]];
        let right = [BALANCE - 5, BALANCE - 2, BALANCE + 7];
        let said = "after 2 transfers 3 balances equal the host's".to_string();
        assert_eq!(check(&transfers, &right, &[0; 3]), Ok(said));
        assert!(check(&transfers, &[BALANCE; 3], &[0; 3]).is_err());
        assert_eq!(check(&transfers, &right, &[0, 1, 0]), Err("the lock of account 1 is still taken".into()));
    }

    #[test]
    fn accounts_of_a_transfer_differ() {
        let mut random = Random::new(1);
        for accounts in [2, 3, 10] {
            for [from, to, _] in (0..100).map(|_| transfer(&mut random, accounts)) {
                assert!(from != to && from.max(to) < accounts as u32);
            }
        }
    }
}
