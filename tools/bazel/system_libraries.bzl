"""Maps the distribution's libraries into repositories.

Each repository `@NAME` has the BUILD file third_party/NAME.BUILD. Headers stand in the compiler's own search path
(/usr/include), so a target there names only what has to be linked. A header that must exist is named here, so that a
missing package ends the build with one sentence instead of a compiler's error.
"""

_LIBRARIES = {
    "absl": ("absl/status/statusor.h", "libabsl-dev"),
    "benchmark": ("benchmark/benchmark.h", "libbenchmark-dev"),
    "cli11": ("CLI/CLI.hpp", "libcli11-dev"),
    "googletest": ("gtest/gtest.h", "libgtest-dev libgmock-dev"),
    "grpc": ("grpcpp/grpcpp.h", "libgrpc++-dev protobuf-compiler-grpc"),
    "highway": ("hwy/highway.h", "libhwy-dev"),
    "libssh": ("libssh/libssh.h", "libssh-dev"),
    "nlohmann_json": ("nlohmann/json.hpp", "nlohmann-json3-dev"),
    "openssl": ("openssl/hmac.h", "libssl-dev"),
    "protobuf": ("google/protobuf/message.h", "libprotobuf-dev protobuf-compiler"),
    "spdlog": ("spdlog/spdlog.h", "libspdlog-dev libfmt-dev"),
    "yaml_cpp": ("yaml-cpp/yaml.h", "libyaml-cpp-dev"),
    "zlib": ("zlib.h", "zlib1g-dev"),
}

def _system_library_impl(ctx):
    header = ctx.path("/usr/include/" + ctx.attr.header)
    if not header.exists:
        fail("{} is missing: install {} (Debian 12; tools/setup does it, other distributions need the same libraries)".format(
            header,
            ctx.attr.packages,
        ))
    ctx.symlink(ctx.attr.build_file, "BUILD.bazel")

_system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "build_file": attr.label(mandatory = True),
        "header": attr.string(mandatory = True),
        "packages": attr.string(mandatory = True),
    },
    local = True,
)

def system_libraries():
    for name, (header, packages) in _LIBRARIES.items():
        _system_library(
            name = name,
            build_file = "//tools/bazel/third_party:{}.BUILD".format(name),
            header = header,
            packages = packages,
        )
