#!/usr/bin/env python3
"""Loads a bundle and trains nothing: version, init as a group of one, one allreduce, shutdown. Exit code 0 when all is well.

    smoke.py FOLDER/libfarandole.so
"""

import ctypes
import sys


class Tensor(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("input", ctypes.c_void_p), ("output", ctypes.c_void_p),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("dims", ctypes.c_int32), ("dtype", ctypes.c_int32)]


class ReduceArgs(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("op", ctypes.c_int32), ("prescale", ctypes.c_double),
                ("postscale", ctypes.c_double)]


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.fdl_version.restype = library.fdl_last_error.restype = ctypes.c_char_p
    library.fdl_wait.argtypes = [ctypes.c_uint64, ctypes.c_double]

    def need(ok, what):
        if not ok:
            sys.exit("%s: %s failed: %s" % (sys.argv[1], what, library.fdl_last_error().decode()))

    need(library.fdl_version(), "fdl_version")
    need(library.fdl_init(None) == 0, "fdl_init")
    need(library.fdl_size() == 1, "fdl_size")
    data = (ctypes.c_float * 3)(1, 2, 3)
    shape = (ctypes.c_int64 * 1)(3)
    address = ctypes.addressof(data)
    tensor = Tensor(ctypes.sizeof(Tensor), address, address, shape, 1, 7)
    args = ReduceArgs(ctypes.sizeof(ReduceArgs), 1, 2.0, 1.0)
    handle = ctypes.c_uint64()
    need(library.fdl_allreduce(b"x", ctypes.byref(tensor), ctypes.byref(args), ctypes.byref(handle)) == 0, "fdl_allreduce")
    need(library.fdl_wait(handle, 60.0) == 0, "fdl_wait")
    need(list(data) == [2, 4, 6], "the result of fdl_allreduce")
    need(library.fdl_shutdown() == 0, "fdl_shutdown")
    print("farandole", library.fdl_version().decode())


if __name__ == "__main__":
    main()
