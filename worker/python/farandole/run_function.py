"""What horovod.run() starts as every rank: `python -m farandole.run_function`.

Standard input has two pickles of the process that called run(): the entries of its sys.path, and the function with its
arguments. The result goes to the descriptor that FARANDOLE_RESULT_FD names. Both are of this host's agent, which has
them over the job's own channel: local, or proved and encrypted. So nothing here unpickles what a stranger could have
sent.
"""

import os
import pickle
import sys


def pickler():
    """cloudpickle, where it is installed: it also takes functions and classes of the script itself."""
    try:
        import cloudpickle

        return cloudpickle
    except ImportError:
        return pickle


def main():
    fd = int(os.environ.pop("FARANDOLE_RESULT_FD"))
    os.set_inheritable(fd, False)
    sys.path += [entry for entry in pickle.load(sys.stdin.buffer) if entry not in sys.path]
    func, args, kwargs = pickle.load(sys.stdin.buffer)
    try:
        result = func(*args, **kwargs)
    except Exception as error:
        print("User function raise error: %s" % error, file=sys.stderr, flush=True)
        raise
    with os.fdopen(fd, "wb") as out:
        out.write(pickler().dumps(result))


if __name__ == "__main__":
    main()
