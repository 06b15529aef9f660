"""Many runs."""

import os

from ._command import WarploomError, call


class Sweep:
    """A sweep whose runs have ended. `tables` has its tables by name, each a list of rows; the first is `runs`."""

    def __init__(self, folder):
        self.folder = folder
        self.tables = call(["sweep", "results", folder])["tables"]

    def pandas(self, table="runs"):
        """A table as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self._rows(table)).convert_dtypes()

    def polars(self, table="runs"):
        """A table as a polars data frame."""
        import polars

        return polars.DataFrame(self._rows(table), infer_schema_length=None)

    def _rows(self, table):
        if table not in self.tables:
            raise WarploomError(f"no table `{table}`", help=[f"there are {', '.join(self.tables)}"])
        return self.tables[table]


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
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    # NumPy's numbers print as plain ones.
    return repr(value.item() if hasattr(value, "item") else value)
