//! The options of `warploom work`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::machine::MachineOptions;

/// `warploom work`.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkOptions {
    /// The workload; `--list` shows them all
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// Parameters of the workload; those not given have their defaults
    #[arg(value_name = "PARAM=VALUE")]
    pub params: Vec<String>,
    /// List the workloads and their parameters with the defaults
    #[arg(long, conflicts_with = "name")]
    pub list: bool,
    /// The alignment of two sequences, with workload `nw`.
    #[command(flatten)]
    pub fasta: FastaOptions,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineOptions,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// What workload `nw` aligns instead of random input.
#[derive(Args, Clone, Debug)]
pub(crate) struct FastaOptions {
    /// Align the first sequences of two FASTA files, with workload `nw`
    #[arg(long, num_args = 2, value_names = ["A.fa", "B.fa"], requires = "name")]
    pub fasta: Vec<PathBuf>,
    /// What the letters are
    #[arg(long, value_enum, default_value_t, requires = "fasta")]
    pub alphabet: AlphabetName,
    /// What two equal nucleotides earn
    #[arg(
        long = "match",
        value_name = "N",
        default_value_t = 5,
        allow_negative_numbers = true,
        requires = "fasta"
    )]
    pub matching: i16,
    /// What two different nucleotides earn
    #[arg(long = "mismatch", value_name = "N", default_value_t = -4, allow_negative_numbers = true, requires = "fasta")]
    pub mismatching: i16,
}

/// An alphabet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlphabetName {
    /// Nucleotides if there is nothing but ACGTUN, else amino acids
    #[default]
    Auto,
    /// Amino acids, scored by BLOSUM62
    Protein,
    /// Nucleotides, scored by --match and --mismatch
    Nucleotide,
}

pub(super) const WORK_EXAMPLES: &str = "\
Examples:
  What there is, and what can be chosen:
      warploom work --list
  A hash table under locks, with more contention than usual, on another chip:
      warploom work hashtable keys=5_000 buckets=64 --chip gtx1080ti
  The same kernels on this computer's GPU:
      warploom work nw size=1984 --device cuda
  The same as a dataflow of threads that wait for each other with lock bits, on a chip that has them:
      warploom work nw size=62 version=tiny
  Align two sequences; a gap costs 8:
      warploom work nw --fasta human.fa mouse.fa penalty=8
  Numbers for a script:
      warploom work matmul size=128 --json | jq .warp_insts

The exit code is 1 if the result is not the one that the host computes. With --json the object has the keys of a launch
(`warploom run --json`), summed over all launches, and `workload`, `params`, `check` (true or false), `check_message`,
`launches` (how many), `longest_launch_cycles`, `figures` (what the workload measured itself) and `per_launch` \
(each one's
kernel, shape, cycles and instructions).";
