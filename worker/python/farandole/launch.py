"""horovod.run(): a function as a job, from Python."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings

from farandole import _later
from farandole.run_function import pickler

# Read by the launcher only: the folder with `function`, where it puts `result.RANK` of each rank, and `verdict`.
FOLDER_VARIABLE = "FARANDOLE_FUNCTION_FOLDER"

FAILED = (
    "Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. "
    "The first process to do so was:\nProcess name: {name}\nExit code: {code}\n"
)


def run(
    func,
    args=(),
    kwargs=None,
    num_proc=None,
    min_num_proc=None,
    max_num_proc=None,
    slots=None,
    reset_limit=None,
    cooldown_range=None,
    hosts=None,
    hostfile=None,
    host_discovery_script=None,
    start_timeout=None,
    ssh_port=None,
    ssh_identity_file=None,
    disable_cache=None,
    output_filename=None,
    verbose=None,
    use_gloo=None,
    use_mpi=None,
    mpi_args=None,
    network_interface=None,
    network_interfaces=None,
    executable=None,
    np=None,
    min_np=None,
    max_np=None,
):
    """Calls func(*args, **kwargs) in `num_proc` (default 1) processes that train together, and returns what they
    returned, in the order of ranks.

    Function, arguments and results are pickled (by cloudpickle, where it is installed). The other arguments are the
    options of `horovodrun` of these names; `executable` is the Python of the workers, this one by default.

    ValueError: arguments that exclude each other. RuntimeError: the job failed; it names the process that failed first.
    """
    num_proc = _renamed(num_proc, np, "num_proc", "np")
    min_num_proc = _renamed(min_num_proc, min_np, "min_num_proc", "min_np")
    max_num_proc = _renamed(max_num_proc, max_np, "max_num_proc", "max_np")
    network_interfaces = _renamed(network_interfaces, network_interface, "network_interfaces", "network_interface")
    if hosts is not None and hostfile is not None:
        raise ValueError("Argument hosts and hostfile only allow one provided.")
    if use_gloo and use_mpi:
        raise ValueError("Argument use_gloo and use_mpi only allow one set True.")
    if min_num_proc is not None or host_discovery_script is not None:
        raise _later.error("horovod.run with hosts that come and go")
    num_proc = 1 if num_proc is None else num_proc
    options = ["--num-proc", str(num_proc)]
    for option, value in (
        ("--max-num-proc", max_num_proc),
        ("--slots-per-host", slots),
        ("--reset-limit", reset_limit),
        ("--hosts", hosts),
        ("--hostfile", hostfile),
        ("--start-timeout", start_timeout),
        ("--ssh-port", ssh_port),
        ("--ssh-identity-file", ssh_identity_file),
        ("--output-filename", output_filename),
        ("--mpi-args", mpi_args),
        ("--network-interfaces", _list(network_interfaces)),
    ):
        if value is not None:
            options.append("%s=%s" % (option, value))
    if cooldown_range is not None:
        options += ["--blacklist-cooldown-range"] + [str(seconds) for seconds in cooldown_range]
    for option, on in (
        ("--disable-cache", disable_cache),
        ("--verbose", verbose),
        ("--gloo", use_gloo),
        ("--mpi", use_mpi),
    ):
        if on:
            options.append(option)
    return _run(options, (func, tuple(args), dict(kwargs or {})), num_proc, executable or sys.executable)


def _renamed(value, old_value, name, old_name):
    if old_value is None:
        return value
    if value is not None:
        raise ValueError("%s and %s are two names of one thing; give %s" % (old_name, name, name))
    warnings.warn("%s is deprecated, use %s" % (old_name, name), DeprecationWarning, stacklevel=3)
    return old_value


def _list(names):
    if names is None or isinstance(names, str):
        return names
    return ",".join(names)


def _run(options, call, num_proc, executable):
    folder = tempfile.mkdtemp(prefix="farandole-run-")  # of this user alone
    try:
        with open(os.path.join(folder, "function"), "wb") as function:
            # First where modules are found here: the call may need them to be unpickled.
            function.write(pickle.dumps([os.path.abspath(entry) for entry in sys.path]))
            function.write(pickler().dumps(call))
        code = _launch(options + ["--", executable, "-m", "farandole.run_function"], folder)
        if code != 0:
            raise RuntimeError(_failure(folder, code))
        return [_result(folder, rank) for rank in range(num_proc)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _launch(words, folder):
    """The launcher's exit code. A Ctrl-C on the terminal reaches the launcher too, each one; it is waited for."""
    environment = dict(os.environ)
    environment[FOLDER_VARIABLE] = folder
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = environment.get("PYTHONPATH", "").split(os.pathsep)
    if package not in path:
        environment["PYTHONPATH"] = os.pathsep.join([package] + [entry for entry in path if entry])
    try:
        launcher = subprocess.Popen(["horovodrun"] + words, env=environment)
    except FileNotFoundError:
        raise RuntimeError("horovodrun is not on PATH: horovod.run() starts it")
    interrupt = None
    while True:
        try:
            code = launcher.wait()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
    return code


def _failure(folder, code):
    try:
        with open(os.path.join(folder, "verdict"), encoding="utf-8") as file:
            verdict = json.load(file)
    except (OSError, ValueError):
        return "horovodrun ended with exit code %d before anything was started; its own words are on stderr" % code
    if "first_failure" not in verdict:
        return verdict["reason"]
    first = verdict["first_failure"]
    return FAILED.format(name=first["rank"], code=first["exit_code"]) + verdict["reason"]


def _result(folder, rank):
    path = os.path.join(folder, "result.%d" % rank)
    try:
        with open(path, "rb") as file:
            return pickle.load(file)
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        raise RuntimeError("rank %d ended with 0 and without a result: %s" % (rank, error))
