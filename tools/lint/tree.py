"""The files of the checkout, for the checks beside this file: what git tracks or would add."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _listed_by_git():
    command = [
        "git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"
    ]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None  # no git, or a copy without its history
    return [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]


def _walked():
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in (".git", ".farandole", "__pycache__", ".pytest_cache")]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return found


def files():
    """Paths relative to ROOT, sorted; links and what was deleted are left out."""
    listed = _listed_by_git()
    paths = sorted(set(_walked() if listed is None else listed))
    return [path for path in paths if os.path.isfile(full(path)) and not os.path.islink(full(path))]


def full(path):
    return os.path.join(ROOT, path)


def text(path):
    """The text of the file, or None when it is binary."""
    with open(full(path), "rb") as file:
        data = file.read()
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
