#!/usr/bin/env python3
"""Makes the native part of the Python package: libfarandole.so with private copies of the libraries that it uses.

A framework may bring its own gRPC, Protocol Buffers, Abseil or OpenSSL and put them into the process's global scope, where
they would take the place of ours (TensorFlow does, and the process crashes). So the bundle has copies of these libraries in
which

  - every dynamic symbol that one of the copies defines has another name, except the C interface (fdl_...). The new name is
    the old one with ".fdl" behind it, which demanglers understand, so that backtraces stay readable;
  - each copy has another soname, and is found in the folder of whoever needs it ($ORIGIN).

The C and C++ libraries and zlib stay the system's: every framework uses the same ones.

The output folder is replaced as a whole, in one step; it is left alone when it was made from the same inputs. The text of an
error is one sentence on stderr, and the exit code is then 1.
"""

import argparse
import concurrent.futures
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from elf import ElfError, SharedLibrary  # noqa: E402 (it stands beside this file)

PRIVATE = re.compile(r"lib(grpc|gpr|protobuf|absl_|re2|upb|address_sorting|cares|ssl|crypto)[^/]*\.so")
PUBLIC_PREFIX = "fdl_"
SUFFIX = ".fdl"
STAMP = "stamp"
PATCHELF_MINIMUM = (0, 18)


class BundleError(Exception):
    """What went wrong, in one sentence for a person."""


def private_name(soname):
    """The file name and soname of our copy: libgrpc.so.29 -> libfdl-grpc.so.29."""
    return "libfdl-" + soname[len("lib"):]


def run(command, what):
    """The output of `command`; BundleError "what: its last line" when it fails."""
    # The loader's words are parsed, so they must be its own.
    environment = dict(os.environ, LC_ALL="C")
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, check=False)
    except OSError as error:
        raise BundleError("%s: %s cannot be run (%s)" % (what, command[0], error.strerror)) from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["exit code %d" % done.returncode]
        raise BundleError("%s: %s" % (what, lines[-1]))
    return done.stdout.decode(errors="replace")


def check_patchelf(patchelf):
    text = run([patchelf, "--version"], "patchelf is needed to make the bundle")
    numbers = re.search(r"(\d+)\.(\d+)", text)
    if not numbers or tuple(map(int, numbers.groups())) < PATCHELF_MINIMUM:
        raise BundleError("%s is %s, but renaming symbols needs patchelf %d.%d or later" %
                          ((patchelf, text.strip()) + PATCHELF_MINIMUM))
    return text.strip()


def private_libraries(library):
    """Paths of the system's libraries that `library` uses, directly or not, and that the bundle gets copies of, by soname."""
    found = {}
    for line in run(["ldd", library], "finding the libraries that %s uses" % library).splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if not arrow or not PRIVATE.match(name):
            continue
        if place == "not found":
            raise BundleError("%s needs %s, which is not installed" % (library, name))
        found[name] = os.path.realpath(place.rsplit(" (", 1)[0])
    if not found:
        raise BundleError("%s uses none of the libraries that a bundle isolates: is it linked statically?" % library)
    return dict(sorted(found.items()))


def stamp_of(paths, patchelf_version):
    digest = hashlib.blake2b(patchelf_version.encode(), digest_size=16)
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        digest.update(b"%d %s " % (len(data), os.path.basename(path).encode()))
        digest.update(data)
    return digest.hexdigest()


def read_stamp(folder):
    try:
        with open(os.path.join(folder, STAMP), encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def patch(patchelf, source, target, soname, sonames, symbols, scratch):
    """Writes the private copy of `source` to `target`."""
    elf = SharedLibrary(source)
    names = os.path.join(scratch, os.path.basename(target) + ".names")
    with open(names, "w", encoding="ascii") as file:
        for symbol in sorted((elf.defined | elf.undefined) & symbols):
            file.write("%s %s%s\n" % (symbol, symbol, SUFFIX))
    shutil.copyfile(source, target)
    os.chmod(target, 0o755)
    command = [patchelf, "--rename-dynamic-symbols", names, "--set-soname", soname, "--set-rpath", "$ORIGIN"]
    for needed in elf.needed:
        if needed in sonames:
            command += ["--replace-needed", needed, private_name(needed)]
    run(command + [target], "making the private copy of %s" % source)


def check(folder, files):
    """What must hold of the result, whatever patchelf did."""
    for name in files:
        elf = SharedLibrary(os.path.join(folder, name))
        for needed in elf.needed:
            if PRIVATE.match(needed) and needed not in files:
                raise BundleError("%s still needs the system's %s (a fault of patchelf or of this script)" % (name, needed))
        public = [s for s in elf.defined if not s.endswith(SUFFIX) and not s.startswith(PUBLIC_PREFIX)]
        if public or elf.soname != name or elf.runpath != "$ORIGIN":
            raise BundleError("%s still shows %s under the name %s (a fault of patchelf or of this script)" %
                              (name, ", ".join(sorted(public)[:3]) or "nothing", elf.soname))


def build(patchelf, library, sources, folder):
    """Fills `folder`."""
    copies = {library: os.path.basename(library)}
    copies.update((path, private_name(soname)) for soname, path in sources.items())
    symbols = set()
    for path in copies:
        symbols |= SharedLibrary(path).defined
    symbols = {symbol for symbol in symbols if not symbol.startswith(PUBLIC_PREFIX)}
    with tempfile.TemporaryDirectory(prefix="farandole-bundle-") as scratch:
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            tasks = [
                pool.submit(patch, patchelf, path, os.path.join(folder, name), name, sources.keys(), symbols, scratch)
                for path, name in copies.items()
            ]
            for task in tasks:
                task.result()
    check(folder, set(copies.values()))


def put_in_place(made, output):
    """`made` becomes `output` in one step; what stood there is removed."""
    if not os.path.lexists(output):
        os.rename(made, output)
        return
    at_cwd, exchange = -100, 2
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(at_cwd, os.fsencode(made), at_cwd, os.fsencode(output), exchange) != 0:
        # A file system that cannot exchange: for a moment there is none.
        old = made + ".old"
        os.rename(output, old)
        os.rename(made, output)
        made = old
    shutil.rmtree(made)


def bundle(patchelf, library, output):
    """True when the bundle was made, False when it was there."""
    if not os.path.isfile(library):
        raise BundleError("%s is missing: build //worker/capi:libfarandole.so first" % library)
    library = os.path.realpath(library)
    output = os.path.abspath(output)
    version = check_patchelf(patchelf)
    sources = private_libraries(library)
    here = os.path.dirname(os.path.abspath(__file__))
    scripts = [os.path.join(here, name) for name in ("bundle.py", "elf.py")]
    stamp = stamp_of(scripts + [library] + list(sources.values()), version)
    if read_stamp(output) == stamp:
        return False
    os.makedirs(os.path.dirname(output), exist_ok=True)
    made = tempfile.mkdtemp(prefix=os.path.basename(output) + ".new-", dir=os.path.dirname(output))
    try:
        os.chmod(made, 0o755)
        build(patchelf, library, sources, made)
        with open(os.path.join(made, STAMP), "w", encoding="ascii") as file:
            file.write(stamp)
        put_in_place(made, output)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patchelf", required=True, help="the program, 0.18 or later")
    parser.add_argument("--library", required=True, help="libfarandole.so as it was built")
    parser.add_argument("--output", required=True, help="the folder to make; all that is in it is ours")
    arguments = parser.parse_args()
    try:
        bundle(arguments.patchelf, arguments.library, arguments.output)
    except (BundleError, ElfError) as error:
        sys.exit("bundle: %s" % error)
    except OSError as error:
        sys.exit("bundle: %s: %s" % (error.filename or arguments.output, error.strerror))


if __name__ == "__main__":
    main()
