"""One worker of tools/bench init: says when it called hvd.init() and when that returned."""

import time

import horovod.torch as hvd

called = time.monotonic()
hvd.init()
returned = time.monotonic()
print('{"called": %.6f, "returned": %.6f}' % (called, returned), flush=True)
hvd.shutdown()
