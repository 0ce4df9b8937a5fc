"""The name under which scripts import farandole: `import horovod.torch as hvd`. Nothing here but names."""

from farandole import __version__ as _farandole_version
from farandole.launch import run

__all__ = ["run"]
__version__ = "0.28.1+farandole" + _farandole_version
