"""Protocol Buffers and gRPC stubs in C++, made by the distribution's compiler."""

load("//tools/bazel:cc.bzl", "cc_library")

def cc_proto_library(name, srcs, deps = [], grpc = False, visibility = None):
    """Compiles `srcs` (in proto/v1) into one C++ library and a descriptor set NAME.descriptor."""
    outs = []
    for src in srcs:
        stem = src[:-len(".proto")]
        outs += [stem + ".pb.h", stem + ".pb.cc"]
        if grpc:
            outs += [stem + ".grpc.pb.h", stem + ".grpc.pb.cc"]
    plugin = " --grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin" if grpc else ""
    native.genrule(
        name = name + "_gen",
        srcs = srcs + [dep + "_protos" for dep in deps],
        outs = outs,
        cmd = "protoc -I. --cpp_out=$(GENDIR)" + plugin + " " + " ".join(["$(location %s)" % src for src in srcs]),
    )
    native.filegroup(
        name = name + "_protos",
        srcs = srcs,
        visibility = visibility,
    )
    native.genrule(
        name = name + "_descriptor",
        srcs = srcs + [dep + "_protos" for dep in deps],
        outs = [name + ".descriptor"],
        cmd = "protoc -I. --descriptor_set_out=$@ " + " ".join(["$(location %s)" % src for src in srcs]),
        visibility = visibility,
    )
    cc_library(
        name = name,
        srcs = [out for out in outs if out.endswith(".cc")],
        hdrs = [out for out in outs if out.endswith(".h")],
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["@protobuf"] + (["@grpc"] if grpc else []),
    )
