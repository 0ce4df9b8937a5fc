"""How long hvd.init() takes after the last worker's call, and what `import horovod.torch` adds to `import torch`."""

import os

import measure

WORKERS = 4
IMPORTS = """
import time, torch
start = time.perf_counter()
import horovod.torch
print('{"seconds": %f}' % (time.perf_counter() - start))
"""


def init_milliseconds():
    worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "init_worker.py")
    output = measure.run(["horovodrun", "-np", str(WORKERS), "-H", "localhost:%d" % WORKERS, "python", worker])[1]
    lines = measure.json_lines(output)
    if len(lines) != WORKERS:
        raise measure.BenchError("%d of %d workers have said when they called hvd.init()." % (len(lines), WORKERS))
    # One clock for all processes of a machine.
    return 1000 * (max(line["returned"] for line in lines) - max(line["called"] for line in lines))


def import_milliseconds():
    return 1000 * measure.json_lines(measure.run(["python", "-c", IMPORTS])[1])[0]["seconds"]


def run(options):
    measure.say("init and import, %d workers" % WORKERS)
    import_milliseconds()  # what is read from disk, is read
    kinds = {"init": init_milliseconds, "import": import_milliseconds}
    samples = measure.rounds(options.repetitions, list(kinds), lambda kind: kinds[kind]())
    return {"rows": [{"what": kind, "milliseconds": samples[kind]} for kind in kinds], "notes": []}


def text(result):
    names = {
        "init": "hvd.init() with np %d, after the last call" % WORKERS,
        "import": "import horovod.torch, after torch"
    }
    rows = [[
        names[row["what"]],
        measure.number(measure.median(row["milliseconds"]), " ms"),
        measure.number(max(row["milliseconds"]), " ms")
    ] for row in result["rows"]]
    return measure.table(["", "median", "slowest"], rows)
