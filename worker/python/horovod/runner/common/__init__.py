"""See horovod.runner."""
