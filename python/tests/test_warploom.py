"""The package against the command. WARPLOOM or the path must have it."""

import pathlib

import numpy as np
import pytest

import warploom
from warploom._sweep import _toml

KERNELS = pathlib.Path(__file__).parents[2] / "kernels"
SWEEP = {
    "work": "hashtable",
    "sched": ["lrr", "gto"],
    "seeds": 2,
    "params": {"keys": 60, "ctas": 2, "threads": 32, "buckets": {"from": 4, "to": 16, "times": 2}},
    "skip": [{"sched": "lrr", "buckets": {"min": 16}}],
}


def test_arrays_go_in_and_out():
    x = np.arange(1024, dtype=np.float32)
    zeros = np.zeros((2, 512), dtype=np.float32)
    result = warploom.run(KERNELS / "vecadd.ptx", grid=4, block=256, args=[x, x, zeros, 1024])
    assert result["cycles"] > 0
    assert np.array_equal(result.buffers[2], (2 * x).reshape(2, 512))
    assert result.buffers[3] is None and not zeros.any()


def test_types_of_scalars_and_settings_of_the_chip():
    counter, lock = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    result = warploom.run(
        KERNELS / "spinlock.ptx", entry="spinlock_inc", grid=(2, 1), block=64, args=[lock, counter, np.uint32(3)],
        sched="lrr", set={"sm.count": 1},
    )
    assert result.buffers[1][0] == 2 * 64 * 3
    assert (result["sched"], len(result["sms"])) == ("lrr", 1)


def test_a_hang_is_an_exception_with_the_numbers():
    words = np.zeros(1, np.uint32)
    with pytest.raises(warploom.WarploomError) as told:
        warploom.run(KERNELS / "spinlock.ptx", entry="naivelock", grid=1, block=32, args=[words, words])
    assert told.value.kind == "hang"
    assert told.value.report["cycles"] > 0
    with pytest.raises(warploom.WarploomError, match="no kernel has arguments of type complex64"):
        warploom.run(KERNELS / "vecadd.ptx", grid=1, args=[np.zeros(1, np.complex64)])


def test_a_sweep_is_a_data_frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep = warploom.sweep(SWEEP, out="small.sweep", jobs=1)
    frame = sweep.pandas()
    assert len(frame) == 10 and set(frame["status"]) == {"ok"}
    assert frame["cycles"].dtype == "Int64" and (frame["cycles"] > 0).all()
    other = sweep.polars()
    assert other.shape == frame.shape and other["cycles"].to_list() == frame["cycles"].to_list()
    launches = sweep.pandas("launches")
    assert set(launches["run"]) == set(frame["run"])
    # Again: nothing is executed.
    times = {file: file.stat().st_mtime_ns for file in pathlib.Path("small.sweep/runs").iterdir()}
    assert len(times) == 10
    again = warploom.sweep("small.sweep.toml", out="small.sweep")
    assert {file: file.stat().st_mtime_ns for file in times} == times
    assert again.pandas().equals(frame)
    with pytest.raises(warploom.WarploomError, match="no table"):
        again.pandas("nothing")


def test_mistakes_are_told():
    with pytest.raises(warploom.WarploomError, match="needs a folder"):
        warploom.sweep(SWEEP)


def test_toml():
    text = _toml({"a": "x\"y", "b": [1, 2.5, True], "r": {"from": 1, "to": 2}, "set": {"sm.count": np.int64(3)},
                  "zip": [{"p": [1]}, {"q": [2]}], "kernel": {"file": "k", "launch": [{"grid": 1}]}})
    assert text == (
        'a = "x\\"y"\nb = [1, 2.5, true]\nr = { from = 1, to = 2 }\n\n[set]\n"sm.count" = 3\n\n[[zip]]\np = [1]\n\n'
        '[[zip]]\nq = [2]\n\n[kernel]\nfile = "k"\n\n[[kernel.launch]]\ngrid = 1\n'
    )
