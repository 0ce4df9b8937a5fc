"""The exceptions; see farandole.errors."""

from farandole.errors import HorovodInternalError, HorovodVersionMismatchError, HostsUpdatedInterrupt  # noqa: F401
