"""The command and its errors."""

import json
import os
import shutil
import subprocess


class WarploomError(Exception):
    """What the command refused, or how a launch failed.

    `kind` is its word for it: bad_input, check_failed, fault, hang, interrupted. `report` has the numbers up to there.
    """

    def __init__(self, message, kind="bad_input", help=(), report=None):
        super().__init__("\n".join([message, *("help: " + line for line in help)]))
        self.kind = kind
        self.report = report or {}


def program():
    """The path of the command."""
    found = os.environ.get("WARPLOOM") or shutil.which("warploom")
    if not found:
        raise WarploomError(
            "the command `warploom` is not on the path",
            help=["install it with `cargo install --path crates/cli`, or set WARPLOOM to its path"],
        )
    return found


def execute(arguments):
    """Runs the command. Returns what it printed."""
    ended = _run(arguments)
    if ended.returncode:
        raise WarploomError(ended.stderr.strip().removeprefix("error: "))
    return ended.stdout


def call(arguments):
    """Runs the command with --json and returns the object that it prints."""
    ended = _run([*arguments, "--json"])
    try:
        answer = json.loads(ended.stdout)
    except ValueError:
        raise WarploomError(ended.stderr.strip() or f"no answer from {program()}") from None
    error = answer.get("error")
    if error:
        report = {key: value for key, value in answer.items() if key != "error"}
        raise WarploomError(error["message"], error["kind"], error["help"], report)
    return answer


def _run(arguments):
    command = [program(), *map(str, arguments)]
    try:
        return subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise WarploomError(f"cannot start `{command[0]}`: {error.strerror}", help=["WARPLOOM is its path"]) from None
