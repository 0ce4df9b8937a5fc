"""Pure packages are pure: see purity.py for what that means."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import purity  # noqa: E402 (these stand beside this file)
import tree  # noqa: E402


def all_targets():
    found = []
    for path in tree.files():
        if os.path.basename(path) == "BUILD.bazel":
            package = os.path.dirname(path)
            found += purity.targets_of(tree.text(path), package, tree.full(package))
    return found


def test_pure_libraries_touch_nothing_outside():
    wrong = []
    checked = 0
    for target in all_targets():
        if not target.pure:
            continue
        package = target.label[2:].split(":")[0]
        for name in target.files:
            if name.startswith((":", "//")):
                continue  # made by a rule, or another package's
            path = os.path.join(package, name)
            checked += 1
            wrong += [
                "%s:%d: %s, but %s is pure" % (path, line, what, target.label)
                for line, what in purity.contradictions(tree.text(path))
            ]
    assert not wrong, "\n" + "\n".join(wrong)
    assert checked > 0


def test_pure_libraries_depend_on_pure_ones():
    wrong = ["%s is pure, but depends on %s, which is not" % pair for pair in purity.impure_deps(all_targets())]
    assert not wrong, "\n" + "\n".join(wrong)


def test_packages_that_must_be_pure_say_so():
    rules = [
        target for target in all_targets()
        if target.rule in ("cc_library", "pure_cc_library") and "/testing" not in target.label
    ]
    for package in ("//launcher/cli", "//launcher/plan", "//driver/core", "//collectives/schedule"):
        inside = [target for target in rules if target.label.startswith(package + ":")]
        assert inside, package + " has no library"
        assert [target.label for target in inside if not target.pure] == []


@pytest.mark.parametrize("source", [
    "auto t = absl::Now();",
    "#include <thread>",
    "#include <chrono>",
    "#include <mutex>",
    "absl::Mutex mutex_;",
    'char* home = getenv("HOME");',
    "int n = rand();",
    'LOG(INFO) << "x";',
    "#include <grpcpp/grpcpp.h>",
    '#include "proto/v1/types.pb.h"',
    "#include <sys/socket.h>",
    '#include "tools/base/mutex.h"',
])
def test_the_check_sees(source):
    assert purity.contradictions("int a;\n" + source) and purity.contradictions(source + "\nint a;")[0][0] == 1


@pytest.mark.parametrize("source", [
    "// absl::Now() would be wrong here, and <thread>",
    "/* #include <thread>\n LOG( */ int a;",
    'return "no LOG(x), rand() or getenv";',
    "Operand(x); operand(x); prng.rand(3);",
])
def test_the_check_does_not_see(source):
    assert purity.contradictions(source) == []


def test_build_files_are_understood():
    build = '''
pure_cc_library(name = "a", srcs = ["a.cc"], hdrs = ["a.h"] + ["b.h"], deps = [":c", "//x/y", "@absl", "@grpc"])
cc_library(name = "c", tags = ["pure"])
cc_library(name = "d")
pure_cc_library(name = "e", deps = [":d"])
'''
    targets = purity.targets_of(build, "p", "/nowhere")
    assert [(t.label, t.pure) for t in targets] == [("//p:a", True), ("//p:c", True), ("//p:d", False), ("//p:e", True)]
    assert targets[0].files == ["a.cc", "a.h", "b.h"]
    assert purity.impure_deps(targets) == [("//p:a", "//x/y:y"), ("//p:a", "@grpc"), ("//p:e", "//p:d")]
