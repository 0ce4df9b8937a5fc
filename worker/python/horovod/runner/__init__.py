"""What of the launcher scripts import. The launcher itself is a program: `horovodrun`."""

from farandole import _later

run = _later.function("horovod.run")
