"""The name under which scripts import farandole: `import horovod.torch as hvd`. Nothing here but names."""

from farandole import __version__ as _farandole_version

__version__ = "0.28.1+farandole" + _farandole_version


def run(*args, **kwargs):
    """Not in this version: raises NotImplementedError."""
    from horovod.runner import run as later

    return later(*args, **kwargs)
