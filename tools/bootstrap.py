"""Find a Python that can run kvlab, then hand the command over to tools/tasks.py.

Any Python can read this file, Python 2 included: an old one has to be able to say that it is too old.
"""

from __future__ import print_function

import os
import subprocess
import sys

FLOOR = (3, 11)
CEILING = (3, 14)  # the newest Python that the pinned torch has wheels for
PROBE = "import sys; print('%d.%d' % sys.version_info[:2]); import ensurepip, venv"


def candidates():
    """Commands that may start a suitable Python, the newest first."""
    versions = ["%d.%d" % (FLOOR[0], minor) for minor in range(CEILING[1], FLOOR[1] - 1, -1)]
    found = [["python" + version] for version in versions]
    if os.name == "nt":
        found += [["py", "-" + version] for version in versions]
    return found + [["python3"], ["python"]]


def probe(command):
    """The version of the Python that the command starts, or None when it does not start or lacks venv."""
    try:
        process = subprocess.Popen(command + ["-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output = process.communicate()[0]
    except OSError:
        return None
    if process.returncode != 0:
        return None
    return tuple(int(part) for part in output.decode("ascii", "replace").strip().split("."))


def own_problem():
    """What keeps this very Python from being used, or None."""
    if sys.version_info[:2] < FLOOR:
        return "this is Python %d.%d" % tuple(sys.version_info[:2])
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        return "this Python %d.%d cannot make virtual environments (%s)" % (
            tuple(sys.version_info[:2]) + (error,)
        )
    return None


def choose():
    """The command of the Python to use: this one if it fits, else the newest that does; None without any."""
    problem = own_problem()
    if problem is None and sys.version_info[:2] <= CEILING:
        return [sys.executable]
    for command in candidates():
        version = probe(command)
        if version is not None and FLOOR <= version <= CEILING:
            return command
    return [sys.executable] if problem is None else None


def advice(command_line):
    again = "make " + " ".join(command_line)
    problem = own_problem()
    if sys.version_info[:2] < FLOOR:
        todo = "install a newer one from https://www.python.org/downloads/, then `%s`" % again
    else:
        todo = (
            "install its venv module (Debian, Ubuntu: sudo apt install python3-venv) and run `%s` again"
            % again
        )
    return "kvlab needs Python %d.%d to %d.%d, and %s: %s (or name another: `%s PYTHON=/its/path`)." % (
        FLOOR + CEILING + (problem, todo, again)
    )


def main(command_line):
    command = choose()
    if command is None:
        sys.stderr.write(advice(command_line) + "\n")
        return 1
    here = os.path.dirname(os.path.abspath(__file__))
    if command == [sys.executable]:
        sys.path.insert(0, here)
        import tasks

        return tasks.main(command_line)
    return subprocess.call(command + [os.path.join(here, "tasks.py")] + command_line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
