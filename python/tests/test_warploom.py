"""The package against the command. WARPLOOM or the path must have it."""

import json
import os
import pathlib
import runpy

import numpy as np
import pandas
import polars
import pytest

import warploom
from warploom._command import execute, program
from warploom._sweep import _toml

ROOT = pathlib.Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
PLANS = ROOT / "examples/plans"
SWEEP = {
    "work": "hashtable",
    "sched": ["lrr", "gto"],
    "bows": ["off", 1000],
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
        warploom.run(KERNELS / "spinlock.ptx", entry="naivelock", grid=1, block=32, args=[words, words], chip="gtx480")
    assert told.value.kind == "hang"
    assert told.value.report["cycles"] > 0
    with pytest.raises(warploom.WarploomError, match="no kernel has arguments of type complex64"):
        warploom.run(KERNELS / "vecadd.ptx", grid=1, args=[np.zeros(1, np.complex64)])


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep of 20 runs."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("sweep")
        patch.chdir(folder)
        warploom.sweep(SWEEP, out="small.sweep", jobs=2)
        return warploom.Sweep(folder / "small.sweep")


def test_a_sweep_is_a_data_frame(sweep):
    frame, other = sweep.pandas(), sweep.polars()
    assert len(frame) == 20 and set(frame["status"]) == {"ok"} and frame["message"].isna().all()
    assert set(frame["bows"]) == {"off", "1000"}, "a column has one type"
    assert frame["cycles"].dtype == "Int64" and (frame["cycles"] > 0).all()
    assert frame["energy_total_nj"].dtype == "Float64"
    assert other.schema["cycles"] == polars.Int64 and other.schema["bows"] == polars.String
    assert other.columns == list(frame.columns)
    assert other.to_dicts() == frame.astype(object).where(frame.notna(), None).to_dict("records")
    for table in ["launches", "sms"]:
        rows = sweep.pandas(table)
        assert set(rows["run"]) == set(frame["run"])
        assert len(frame.merge(rows, on="run")) == len(rows) == sweep.polars(table).height
    sums = sweep.pandas("sms").groupby("run")["warp_insts"].sum()
    assert frame.set_index("run")["warp_insts"].to_dict() == sums.to_dict()
    with pytest.raises(warploom.WarploomError, match="no table `nothing`\nhelp: there are launches, runs, sms"):
        sweep.pandas("nothing")


def test_a_profile_is_data_frames(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    profiled = warploom.sweep({**SWEEP, "seeds": 1, "bows": "off", "profile": True}, out="profiled")
    runs = profiled.pandas().set_index("run")
    for table in ["lines", "instructions"]:
        time = profiled.pandas(table).groupby("run")["warp_cycles"].sum()
        assert time.to_dict() == runs["warp_cycles"].to_dict()
    taken = profiled.polars("locks").group_by("run").agg(polars.col("acquired").sum())
    assert dict(taken.iter_rows()) == runs["locks_acquired"].to_dict()


def test_parquet_is_what_csv_is(sweep, tmp_path):
    """The files as other programs get them."""
    execute(["sweep", "results", sweep.folder, "--csv", tmp_path / "t.csv", "--parquet", tmp_path / "t.parquet"])
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"t{table}.{kind}" for table in ["-launches", "-sms", ""] for kind in ["csv", "parquet"]]
    for table in ["", "-launches", "-sms"]:
        csv, parquet = tmp_path / f"t{table}.csv", tmp_path / f"t{table}.parquet"
        of_csv, of_parquet = pandas.read_csv(csv), pandas.read_parquet(parquet)
        assert of_parquet.columns.tolist() == of_csv.columns.tolist()
        numbers = of_parquet.select_dtypes("number")
        assert len(numbers.columns) > 5
        pandas.testing.assert_frame_equal(numbers, of_csv[numbers.columns], check_exact=True)
        assert polars.read_parquet(parquet)["run"].to_list() == of_csv["run"].tolist()


def test_plots(sweep):
    plot = sweep.plot(x="buckets", y="cycles", color="sched", facet="bows", log="x,y")
    assert plot.svg.startswith("<svg ") and plot._repr_svg_() is plot.svg
    assert "bows = 1000" in plot.svg
    assert "bows = 1000" not in sweep.plot(x="buckets", y="cycles", color="sched", where={"bows": "off"}).svg
    with pytest.raises(warploom.WarploomError, match="differ in `bows`, too"):
        sweep.plot(x="buckets", y="cycles", color="sched")


def test_nothing_is_executed_twice(sweep, monkeypatch):
    folder = pathlib.Path(sweep.folder)
    monkeypatch.chdir(folder.parent)
    times = {file: file.stat().st_mtime_ns for file in (folder / "runs").iterdir()}
    assert len(times) == 20
    again = warploom.sweep("small.sweep.toml", out="small.sweep")
    assert {file: file.stat().st_mtime_ns for file in (folder / "runs").iterdir()} == times
    assert again.pandas().equals(sweep.pandas())


def test_cuda_source_is_compiled(tmp_path, monkeypatch):
    """By what is on the path: a stand-in for nvcc that knows one program."""
    source = tmp_path / "vecadd.cu"
    source.write_text("__global__ void vecadd")
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("WARPLOOM", program())
    monkeypatch.setenv("PATH", str(tools))
    x = np.ones(64, np.float32)
    launch = lambda: warploom.run(source, grid=1, block=64, args=[x, x, np.zeros_like(x), 64])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if not os.path.exists("/usr/local/cuda/bin/nvcc"):
        with pytest.raises(warploom.WarploomError, match="there is no compiler for it"):
            launch()
    known = "--version) echo 'Cuda compiler driver';;"
    compiles = f"*\\ -E\\ *) /bin/cat \"$4\";; *) /bin/cp {KERNELS}/vecadd.ptx \"$5\";;"
    (tools / "nvcc").write_text(f"#!/bin/sh\ncase \"$*\" in {known} {compiles} esac\n")
    (tools / "nvcc").chmod(0o755)
    assert (launch().buffers[2] == 2).all()
    fails = "*) echo 'vecadd.cu(1): error: expected a {' >&2; exit 2;;"
    (tools / "nvcc").write_text(f"#!/bin/sh\ncase \"$*\" in {known} {fails} esac\n")
    with pytest.raises(warploom.WarploomError, match="nvcc does not compile .*\nvecadd.cu\\(1\\): error"):
        launch()


def test_a_plan_runs():
    result = warploom.run(PLANS / "bfs.toml", options=["--dump", "level"])
    assert result["check"] and result["launches"] == 4
    assert result["dumps"][0]["values"][:7] == [0, 1, 1, 2, 2, 3, 3]
    with pytest.raises(warploom.WarploomError, match="parameter `m` is used nowhere"):
        warploom.run(PLANS / "bfs.toml", params={"m": 1})


def test_the_tutorial_runs(capsys):
    runpy.run_path(str(ROOT / "examples/tutorial/transfers.py"))
    page = (ROOT / "docs/recipes/python.md").read_text()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3 and "".join(f"    {line}\n" for line in printed) in page


def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs/python.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = {}
    for cell in cells:
        exec(compile(cell, "docs/python.ipynb", "exec"), names)
    assert len(names["runs"]) == 36 and set(names["runs"]["status"]) == {"ok"}
    assert names["error_kind"] == "fault"


def test_mistakes_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(warploom.WarploomError, match="needs a folder"):
        warploom.sweep(SWEEP)
    with pytest.raises(warploom.WarploomError, match="unknown field `shed`"):
        warploom.sweep({**SWEEP, "shed": "gto"}, out=tmp_path / "wrong.sweep")
    with pytest.raises(warploom.WarploomError, match="is no folder of a sweep"):
        warploom.Sweep(tmp_path).pandas()
    monkeypatch.setenv("WARPLOOM", "/no/such/program")
    with pytest.raises(warploom.WarploomError, match="cannot start `/no/such/program`: No such file"):
        warploom.Sweep(tmp_path).pandas()


def test_toml():
    text = _toml({"a": "x\"y", "b": [1, 2.5, True], "r": {"from": 1, "to": 2},
                  "set": {"sm.count": np.int64(3), "k": np.arange(2)},
                  "zip": [{"p": [1]}, {"q": [2]}], "kernel": {"file": "k", "launch": [{"grid": 1}]}})
    assert text == (
        'a = "x\\"y"\nb = [1, 2.5, true]\nr = { from = 1, to = 2 }\n\n[set]\n"sm.count" = 3\nk = [0, 1]\n\n'
        '[[zip]]\np = [1]\n\n[[zip]]\nq = [2]\n\n[kernel]\nfile = "k"\n\n[[kernel.launch]]\ngrid = 1\n'
    )
