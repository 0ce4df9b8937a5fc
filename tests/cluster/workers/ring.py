"""Sums the ranks of the job over and over; prints `sum S` after the first time.

ring.py                         until it is ended
ring.py once                    ends after the first sum
ring.py until FILE              ends on all ranks together once there is FILE, and prints `done`
ring.py fail RANK CODE WORDS    RANK writes WORDS to stderr and ends with CODE after all have had their first sum; the
                                others do not hear TERM, and fail because their peer is gone
"""

import os
import signal
import sys

from native import allreduce, basics

SECONDS = 60.0  # for one sum


def main(how="", what="", code="", words=""):
    if how == "fail":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    basics.init()
    rank = basics.rank()
    print("sum %g" % allreduce("first", rank + 1, SECONDS), flush=True)
    if how == "once":
        return 0
    if how == "fail" and rank == int(what):
        allreduce("next", 0, SECONDS)  # whoever takes part in this one has had its first sum
        print(words, file=sys.stderr, flush=True)
        os._exit(int(code))
    try:
        while allreduce("next", how == "until" and os.path.exists(what), SECONDS) == 0:
            pass
    except RuntimeError as error:
        print("peer lost: %s" % error, file=sys.stderr, flush=True)
        os._exit(1)
    print("done", flush=True)
    return 0


sys.exit(main(*sys.argv[1:]))
