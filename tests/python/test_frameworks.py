"""The native library beside each framework that is installed, loaded before and after it, in a process of its own.

Frameworks bring other builds of the libraries that ours uses; the bundle's copies must neither take nor give symbols.
See tools/wheel.
"""

import importlib.util
import subprocess
import sys

import pytest

FRAMEWORKS = ["torch", "tensorflow", "grpc", "pyarrow"]

USE = """
import ctypes
import farandole.basics as hvd
from farandole import _handles, _library
hvd.init()
library = hvd.need_library()
data = (ctypes.c_float * 3)(1, 2, 3)
shape = (ctypes.c_int64 * 1)(3)
address = ctypes.addressof(data)
requests = (_library.Request * 1)()
request = requests[0]
request.struct_size = ctypes.sizeof(request)
request.name = b"x"
request.input = request.output = address
request.shape = shape
request.dims = 1
request.dtype = _library.FLOAT32
request.op = 1
request.prescale, request.postscale = 2.0, 1.0
handle = ctypes.c_uint64()
assert library.fdl_begin(requests, 1, ctypes.byref(handle)) == 0
assert library.fdl_wait(handle, 60.0) == 0
assert list(data) == [2.0, 4.0, 6.0]
hvd.shutdown()
print("used", flush=True)
"""

# A little of what the framework does with the libraries in question.
WORK = {
    "torch": "import torch; assert torch.ones(2).sum().item() == 2.0",
    "tensorflow": "import tensorflow as tf; assert float(tf.reduce_sum(tf.ones(2))) == 2.0",
    "grpc": "import grpc; grpc.insecure_channel('127.0.0.1:1').close()",
    "pyarrow": "import pyarrow; assert pyarrow.array([1, 2]).sum().as_py() == 3",
}


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_loaded(framework, order):
    if importlib.util.find_spec(framework) is None:
        pytest.skip("%s is not installed" % framework)
    parts = [USE, WORK[framework]] if order == "before" else [WORK[framework], USE]
    done = subprocess.run(
        [sys.executable, "-B", "-c", "\n".join(parts + ["print('end')"])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
        universal_newlines=True,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["used", "end"]), done.stderr
