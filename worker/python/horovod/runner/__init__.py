"""What of the launcher scripts import. The launcher itself is a program: `horovodrun`."""

from farandole.launch import run

__all__ = ["run"]
