"""bundle.py: on small libraries made here, and on the real bundle that tools/build has made."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
MADE = HERE.parent.parent / ".farandole"
PATCHELF = os.environ.get("FARANDOLE_PATCHELF", str(MADE / "tools/bin/patchelf"))
NATIVE = MADE / "python/farandole/_native/libfarandole.so"


def compile_library(path, source, *options):
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, "-Wl,-soname," + path.name, *options],
                   input=source.encode(), check=True)
    return path


@pytest.fixture
def library(tmp_path):
    """A libfarandole.so over two libraries of the families that are isolated, one needing the other."""
    folder = tmp_path / "built"
    folder.mkdir()
    paths = ["-L%s" % folder, "-Wl,-rpath,%s" % folder]
    compile_library(folder / "libabsl_inner.so.7", "int fdltest_inner(void) { return 40; }")
    compile_library(folder / "libgrpc_outer.so.3",
                    "int fdltest_inner(void); int fdltest_outer(void) { return fdltest_inner() + 2; }",
                    *paths, "-l:libabsl_inner.so.7")
    return compile_library(folder / "libfarandole.so",
                           "int fdltest_outer(void); int fdl_answer(void) { return fdltest_outer(); }",
                           *paths, "-l:libgrpc_outer.so.3")


def run_bundle(library, output, patchelf=PATCHELF):
    return subprocess.run([sys.executable, "-B", HERE / "bundle.py", "--patchelf", patchelf, "--library", library,
                           "--output", output], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def run_python(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def defined_symbols(path):
    sys.path.insert(0, str(HERE))
    try:
        from elf import SharedLibrary
    finally:
        sys.path.remove(str(HERE))
    return SharedLibrary(path).defined


def test_copies_are_private_and_found_beside_each_other(library, tmp_path):
    output = tmp_path / "package/_native"
    done = run_bundle(library, output)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in output.iterdir()) == [
        "libfarandole.so", "libfdl-absl_inner.so.7", "libfdl-grpc_outer.so.3", "stamp"]
    assert defined_symbols(output / "libfdl-absl_inner.so.7") == {"fdltest_inner.fdl"}
    assert defined_symbols(output / "libfarandole.so") == {"fdl_answer"}
    shutil.rmtree(library.parent)  # nothing of it is needed any more
    assert run_python("import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).fdl_answer())",
                      output / "libfarandole.so") == "42"


def test_a_framework_that_brings_the_same_symbols_does_not_take_their_place(library, tmp_path):
    other = compile_library(tmp_path / "libframework.so",
                            "int fdltest_inner(void) { return -1; } int fdltest_outer(void) { return -2; }")
    run_bundle(library, tmp_path / "_native")
    code = ("import ctypes, sys; ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL);"
            "print(ctypes.CDLL(sys.argv[2]).fdl_answer())")
    assert run_python(code, other, library) == "-2"  # what the bundle is for
    assert run_python(code, other, tmp_path / "_native/libfarandole.so") == "42"


def test_nothing_is_done_twice_and_a_change_is_seen(library, tmp_path):
    output = tmp_path / "_native"
    assert run_bundle(library, output).returncode == 0
    first = output.stat().st_ino
    assert run_bundle(library, output).returncode == 0
    assert output.stat().st_ino == first
    compile_library(library.parent / "libabsl_inner.so.7", "int fdltest_inner(void) { return 50; }")
    assert run_bundle(library, output).returncode == 0
    assert output.stat().st_ino != first
    assert run_python("import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).fdl_answer())",
                      output / "libfarandole.so") == "52"
    assert [path.name for path in tmp_path.iterdir() if "_native" in path.name] == ["_native"]  # no scraps


def test_what_is_wrong_is_said_in_one_sentence(library, tmp_path):
    output = tmp_path / "_native"

    def sentence(done):
        assert done.returncode == 1
        assert done.stderr.startswith("bundle: ") and done.stderr.count("\n") == 1, done.stderr
        assert not output.exists() and not list(tmp_path.glob("_native*"))
        return done.stderr

    assert "build //worker/capi:libfarandole.so first" in sentence(run_bundle(tmp_path / "none.so", output))
    assert "/no/patchelf cannot be run" in sentence(run_bundle(library, output, "/no/patchelf"))
    old = tmp_path / "patchelf"
    old.write_text("#!/bin/sh\necho patchelf 0.14.3\n")
    old.chmod(0o755)
    assert "0.18 or later" in sentence(run_bundle(library, output, str(old)))
    old.write_text("#!/bin/sh\ntest \"$1\" = --version && echo patchelf 0.18.0 && exit\necho it is broken >&2\nexit 1\n")
    assert "it is broken" in sentence(run_bundle(library, output, str(old)))
    (library.parent / "libabsl_inner.so.7").unlink()
    assert "libabsl_inner.so.7, which is not installed" in sentence(run_bundle(library, output))
    alone = compile_library(tmp_path / "alone.so", "int fdl_answer(void) { return 1; }")
    assert "linked statically" in sentence(run_bundle(alone, output))


def test_the_real_bundle_trains_alone():
    done = subprocess.run([sys.executable, "-B", HERE / "smoke.py", NATIVE], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("farandole ")


def test_the_real_bundle_shows_only_the_c_interface():
    paths = list(NATIVE.parent.glob("*.so*"))
    assert NATIVE in paths and len(paths) > 30
    for path in paths:
        strange = [name for name in defined_symbols(path) if not name.endswith(".fdl") and not name.startswith("fdl_")]
        assert strange == [], path
