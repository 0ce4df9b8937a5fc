"""What the launcher's environment says; see farandole.util."""

from farandole.util import get_env_rank_and_size  # noqa: F401
