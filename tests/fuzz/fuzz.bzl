"""One fuzz target, built in two ways."""

load("//tools/bazel:cc.bzl", "cc_program", "cc_test")

def cc_fuzz_test(name, deps):
    """`name`.cc defines LLVMFuzzerTestOneInput; its inputs are the files of corpus/`name`.

      NAME_test  replays them, and a few thousand deterministic changes of them: an ordinary test
      NAME       the same under libFuzzer, only with --config=fuzz; tests/fuzz/run builds and runs it
    """
    inputs = native.glob(["corpus/{}/*".format(name)])
    if not inputs:
        fail("corpus/{} has no inputs: write one or more that the target accepts".format(name))
    cc_test(
        name = name + "_test",
        srcs = [
            name + ".cc",
            "replay.cc",
        ],
        data = inputs,
        local_defines = ["FUZZ_CORPUS=\\\"{}/corpus/{}\\\"".format(native.package_name(), name)],
        deps = deps + [
            "//tools/base:prng",
            "@googletest",
        ],
    )
    cc_program(
        name = name,
        testonly = True,
        srcs = [name + ".cc"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],  # g++ has no libFuzzer
        deps = deps,
    )
