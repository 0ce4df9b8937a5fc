"""Process sets; see farandole.process_sets."""

from farandole.process_sets import (  # noqa: F401
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
