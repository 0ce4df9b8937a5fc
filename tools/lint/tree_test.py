"""The shape of the checkout: what is where, and what must not be in it."""

import os
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tree  # noqa: E402 (it stands beside this file)

TOP_LEVEL = {
    "WORKSPACE", "BUILD.bazel", "launcher", "driver", "worker", "proto", "collectives", "tests", "tools", "README.md",
    "LICENSE", "CHANGELOG.md"
}
CODE = (".h", ".cc", ".c", ".py", ".proto", ".bzl", ".bazel", ".md")
LONGEST = 700  # lines


def is_script(path):
    text = tree.text(path)
    return text is not None and text.startswith("#!") and "bash" in text.split("\n", 1)[0]


def test_top_level():
    assert {path.split("/")[0] for path in tree.files() if not path.startswith(".")} == TOP_LEVEL


def test_each_folder_of_the_top_level_has_a_page():
    folders = sorted(name for name in TOP_LEVEL if os.path.isdir(tree.full(name)))
    assert [name for name in folders if not os.path.exists(tree.full(name + "/README.md"))] == []


def test_no_file_is_too_long():
    code = [path for path in tree.files() if path.endswith(CODE) or is_script(path)]
    assert [path for path in code if tree.text(path).count("\n") > LONGEST] == []


def matches(expression, exclude=()):
    found = []
    for path in tree.files():
        text = tree.text(path) if path not in exclude else None
        if text is not None:
            found += [
                "%s:%d: %s" % (path, number, line.strip()) for number, line in enumerate(text.split("\n"), 1)
                if expression.search(line)
            ]
    return found


def test_nothing_is_left_to_do_in_a_comment():
    # Written so that this line is none.
    assert matches(re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")) == []


def test_no_path_of_a_developers_machine():
    assert matches(re.compile(r"(?<![\w.$}/~])/(work|ro" + r"ot|home|Users)/\w|\.\./sha" + r"red\b|_bazel_ro" +
                              r"ot")) == []


def test_links_of_pages_lead_somewhere():
    wrong = []
    for path in tree.files():
        if path.endswith(".md"):
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", tree.text(path)):
                if "://" not in link and not os.path.exists(os.path.join(os.path.dirname(tree.full(path)), link)):
                    wrong.append("%s: %s" % (path, link))
    assert wrong == []


def test_scripts_can_be_run():
    assert [
        path for path in tree.files()
        if is_script(path) and not path.endswith(".sh") and not os.access(tree.full(path), os.X_OK)
    ] == []


@pytest.mark.skipif(not shutil.which("clang-format"), reason="clang-format is not installed (tools/setup --lint)")
def test_format():
    sources = [path for path in tree.files() if path.endswith((".h", ".cc", ".c"))]
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", "--ferror-limit=1"] + sources,
                          cwd=tree.ROOT,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          check=False)
    wrong = sorted(set(re.findall(r"^([^:\s]+):\d+:\d+: error", done.stdout.decode(), re.MULTILINE)))
    assert done.returncode == 0, "clang-format -i " + " ".join(wrong)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed (tools/setup --lint)")
def test_scripts():
    scripts = [path for path in tree.files() if is_script(path)] + ["tools/lib.sh"]
    done = subprocess.run(["shellcheck", "-x", "-P", "tools"] + scripts,
                          cwd=tree.ROOT,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          check=False)
    assert done.returncode == 0, done.stdout.decode()
