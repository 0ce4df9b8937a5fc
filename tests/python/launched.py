"""Runs files of the folder np/ as jobs of several ranks."""

import os
import sys

from job import Job

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "np")
DEADLINE = 150.0  # seconds; a job takes a few, most of them for importing torch


def start(size, *command, **options):
    """A Job of `size` ranks on this machine; use it in a with statement."""
    return Job("-np", str(size), "-H", "localhost:%d" % size, sys.executable, "-B", *command, **options)


def finish(job):
    """(exit code, standard output, standard error) once the job has ended and nothing of it is left."""
    code = job.wait(DEADLINE)
    job.assert_nothing_left(10.0)
    return code, job.stdout, job.stderr


def run(size, *command, **options):
    """Runs a job of `size` ranks to its end."""
    with start(size, *command, **options) as job:
        return finish(job)


def run_script(size, script, *arguments, **options):
    """Runs np/`script`."""
    return run(size, os.path.join(FOLDER, script), *arguments, **options)


def run_tests(size, module, **options):
    """Runs the tests in np/`module` on `size` ranks together: every rank runs all of them, in one order, up to the
    first that fails, which ends the job."""
    path = os.path.join(FOLDER, module)
    command = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", path)
    code, stdout, stderr = run(size, *command, **options)
    assert code == 0, "exit code %d\n%s\n%s" % (code, stdout, stderr)
    assert stdout.count(" passed") == size and " skipped" not in stdout, stdout
