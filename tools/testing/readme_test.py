"""The root README shows a script and how to run it. Both are tried."""

import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLINE = 120  # seconds; it takes a few


def block(language):
    """The blocks of this language in the README."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return re.findall(r"^```%s\n(.*?)^```$" % language, file.read(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("command, ranks", [
    (["horovodrun", "-np", "4", "-H", "localhost:4", "python", "train.py"], 4),
    (["python", "train.py"], 1),
])
def test_the_script_of_the_readme_trains(tmp_path, command, ranks):
    (tmp_path / "train.py").write_text(block("python")[0])
    done = subprocess.run(command,
                          cwd=tmp_path,
                          stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE,
                          timeout=DEADLINE,
                          check=False,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"rank (\d+) of %d: loss (\S+)" % ranks, done.stdout)
    assert sorted(int(rank) for rank, _ in found) == list(range(ranks))
    losses = {float(loss) for _, loss in found}
    assert len(losses) == 1 and losses.pop() < 0.01


def test_the_command_of_the_readme_is_the_one_that_is_tried():
    assert block("sh")[1].split() == "tools/env horovodrun -np 4 -H localhost:4 python train.py".split()


def test_the_doors_of_the_readme_are_there():
    for line in block("sh")[0].splitlines():
        assert os.access(os.path.join(ROOT, line.split()[0]), os.X_OK), line
