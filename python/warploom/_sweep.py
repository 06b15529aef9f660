"""Many runs."""

import os
import tempfile

from ._command import WarploomError, call, execute


class Sweep:
    """The results of a sweep, in its folder: `sweep` returns one, and `Sweep(folder)` opens those of an earlier day.

    Frames are read from Parquet, so that columns have the same types in both libraries. The table `runs` has one row
    per run; the others (`launches`, `sms`, …) join by the column `run`.
    """

    def __init__(self, folder):
        self.folder = os.fspath(folder)

    def pandas(self, table="runs"):
        """A table as a pandas data frame."""
        import pandas

        # Whole numbers with gaps stay whole.
        return self._read(table, lambda file: pandas.read_parquet(file, dtype_backend="numpy_nullable"))

    def polars(self, table="runs"):
        """A table as a polars data frame."""
        import polars

        return self._read(table, polars.read_parquet)

    def plot(self, *, x, y, color=None, facet=None, log="", where=None):
        """A plot of runs as `warploom sweep results --plot` draws it; a notebook shows it.

        `log` names the logarithmic axes: "x", "y" or "x,y". `where` chooses runs by their columns.
        """
        keys = {"x": x, "y": y, "color": color, "facet": facet, "log": log}
        words = [f"{key}={value}" for key, value in keys.items() if value]
        chosen = [word for column, value in (where or {}).items() for word in ("--where", f"{column}={_plain(value)}")]
        with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
            file = os.path.join(folder, "plot.svg")
            execute(["sweep", "results", self.folder, *chosen, "--to", file, "--plot", *words])
            with open(file, encoding="utf-8") as text:
                return Plot(text.read())

    def _read(self, table, reader):
        with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
            execute(["sweep", "results", self.folder, "--parquet", os.path.join(folder, "t.parquet")])
            files = {name[2:-len(".parquet")] or "runs": os.path.join(folder, name) for name in os.listdir(folder)}
            if table not in files:
                raise WarploomError(f"no table `{table}`", help=[f"there are {', '.join(sorted(files))}"])
            return reader(files[table])


class Plot:
    """A picture. `svg` is its text."""

    def __init__(self, svg):
        self.svg = svg

    def _repr_svg_(self):
        return self.svg


def sweep(description, *, out=None, jobs=None, retry=False, options=()):
    """Executes the runs of a sweep that are missing, and returns all results.

    `description` is the path of a sweep file, or its content as a dictionary, which is written to a file with the name
    of the folder `out` and `.toml`, in the current folder; paths in it are relative to that. docs/sweeps.md explains
    both. Called again, in another process or after a crash, it executes only what is missing.
    """
    if isinstance(description, dict):
        if out is None:
            raise WarploomError("a sweep that is a dictionary needs a folder", help=["give it with out="])
        out = os.fspath(out)
        file = os.path.join(os.getcwd(), os.path.basename(os.path.normpath(out)) + ".toml")
        with open(file, "w", encoding="utf-8") as text:
            text.write(_toml(description))
    else:
        file = os.fspath(description)
    command = ["sweep", "run", file, *options]
    command += ["--out", out] if out is not None else []
    command += ["--jobs", jobs] if jobs is not None else []
    command += ["--retry"] if retry else []
    return Sweep(call(command)["folder"])


def _toml(table, path=()):
    """A dictionary of numbers, texts, lists and dictionaries as TOML."""
    plain = {key: value for key, value in table.items() if not _is_table(value) or _is_range(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if key in plain:
            continue
        inner = (*path, _key(key))
        tables, head = (value, "[[{}]]") if isinstance(value, list) else ([value], "[{}]")
        for one in tables:
            lines += ["", head.format(".".join(inner)), _toml(one, inner).rstrip("\n")]
    return "\n".join(lines) + "\n"


def _is_table(value):
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _is_range(value):
    return isinstance(value, dict) and bool({"from", "min", "max"} & set(value))


def _key(key):
    return key if key.replace("_", "").replace("-", "").isalnum() else _value(key)


def _value(value):
    value = _number(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return repr(value)


def _plain(value):
    value = _number(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value):
    """NumPy's numbers and arrays as Python's."""
    return value.tolist() if hasattr(value, "tolist") else value
