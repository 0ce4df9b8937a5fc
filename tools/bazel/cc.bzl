"""The rules that this project's packages use, so that warnings, linking and layering are decided in one place.

  cc_library        one idea: a header, its source
  pure_cc_library   the same without I/O: tools/lint/purity_test refuses clocks, threads, sockets and wires in it
  cc_test           a GoogleTest program
  cc_program        a program for people: static archives, so that it starts in milliseconds and needs only glibc
  cc_static_program a program that is sent to other hosts: nothing is needed there
  cc_shared_library a library that is loaded into a user's process: the distribution's shared libraries
"""

_GRPC = [
    "grpc++",
    "grpc",
    "gpr",
    "protobuf",
    "address_sorting",
    "re2",
    "upb",
    "cares",
    "ssl",
    "crypto",
    "z",
]

_ABSL = [
    "absl_bad_any_cast_impl",
    "absl_bad_optional_access",
    "absl_bad_variant_access",
    "absl_base",
    "absl_city",
    "absl_civil_time",
    "absl_cord",
    "absl_cord_internal",
    "absl_cordz_functions",
    "absl_cordz_handle",
    "absl_cordz_info",
    "absl_cordz_sample_token",
    "absl_debugging_internal",
    "absl_demangle_internal",
    "absl_examine_stack",
    "absl_exponential_biased",
    "absl_failure_signal_handler",
    "absl_graphcycles_internal",
    "absl_hash",
    "absl_hashtablez_sampler",
    "absl_int128",
    "absl_leak_check",
    "absl_log_severity",
    "absl_low_level_hash",
    "absl_malloc_internal",
    "absl_periodic_sampler",
    "absl_random_distributions",
    "absl_random_internal_distribution_test_util",
    "absl_random_internal_platform",
    "absl_random_internal_pool_urbg",
    "absl_random_internal_randen",
    "absl_random_internal_randen_hwaes",
    "absl_random_internal_randen_hwaes_impl",
    "absl_random_internal_randen_slow",
    "absl_random_internal_seed_material",
    "absl_random_seed_gen_exception",
    "absl_random_seed_sequences",
    "absl_raw_hash_set",
    "absl_raw_logging_internal",
    "absl_scoped_set_env",
    "absl_spinlock_wait",
    "absl_stacktrace",
    "absl_status",
    "absl_statusor",
    "absl_str_format_internal",
    "absl_strerror",
    "absl_strings",
    "absl_strings_internal",
    "absl_symbolize",
    "absl_synchronization",
    "absl_throw_delegate",
    "absl_time",
    "absl_time_zone",
]

# --as-needed: a program records only what it uses.
_SHARED = ["-Wl,--push-state,--as-needed"] + ["-l" + name for name in _GRPC + _ABSL + ["ssh"]] + ["-Wl,--pop-state", "-lpthread", "-ldl"]

# One group: the archives refer to each other in circles.
_STATIC = (
    ["-Wl,--start-group"] + ["-l:lib{}.a".format(name) for name in _GRPC + _ABSL] +
    ["-Wl,--end-group", "-lpthread", "-ldl", "-static-libstdc++", "-static-libgcc"]
)

# What a sanitizer has to be told, in every program.
_SANITIZER_OPTIONS = select({
    "//tools/bazel:sanitized": ["//tools/bazel:sanitizer_options"],
    "//conditions:default": [],
})

def cc_library(name, **kwargs):
    native.cc_library(
        name = name,
        linkstatic = True,
        **kwargs
    )

def pure_cc_library(name, tags = [], **kwargs):
    cc_library(
        name = name,
        tags = tags + ["pure"],
        **kwargs
    )

def cc_test(name, deps = [], linkopts = [], size = "small", **kwargs):
    native.cc_test(
        name = name,
        size = size,
        linkstatic = True,
        linkopts = linkopts + _SHARED,
        deps = deps + ["@googletest//:gtest_main"] + _SANITIZER_OPTIONS,
        **kwargs
    )

# A sanitizer's runtime cannot be linked statically, and needs no start-up in milliseconds.
def _unless_sanitized(linkopts):
    return select({
        "//tools/bazel:sanitized": _SHARED,
        "//conditions:default": linkopts,
    })

# libssh, for programs that a person starts. Kerberos has no static archive: its library is there or comes with ssh.
_STATIC_SSH = (
    ["-Wl,--start-group", "-l:libssh.a", "-l:libssl.a", "-l:libcrypto.a", "-l:libz.a", "-Wl,--end-group"] +
    ["-Wl,--push-state,--as-needed", "-l:libgssapi_krb5.so.2", "-Wl,--pop-state"]
)

def cc_program(name, deps = [], linkopts = [], **kwargs):
    native.cc_binary(
        name = name,
        deps = deps + _SANITIZER_OPTIONS,
        linkopts = linkopts + _unless_sanitized(_STATIC_SSH + _STATIC + ["-Wl,--gc-sections"]),
        **kwargs
    )

def cc_static_program(name, deps = [], linkopts = [], **kwargs):
    native.cc_binary(
        name = name,
        deps = deps + _SANITIZER_OPTIONS,
        linkopts = linkopts + _unless_sanitized(["-static"] + _STATIC + ["-Wl,--gc-sections"]),
        **kwargs
    )

def cc_shared_library(name, linkopts = [], **kwargs):
    """`name` ends in .so."""
    native.cc_binary(
        name = name,
        linkshared = True,
        linkopts = linkopts + _SHARED + ["-Wl,--no-undefined"],
        **kwargs
    )
