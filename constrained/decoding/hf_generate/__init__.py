"""transformers' ``model.generate(..., custom_generate=custom_generate)``: our loop inside theirs."""

from constrained.errors import ConstrainedError

try:
    from constrained.decoding.hf_generate.custom_generate import custom_generate
    from constrained.decoding.hf_generate.output import ConstrainedOutput
except ImportError as error:
    raise ConstrainedError(
        f"custom_generate needs more of transformers than is installed ({error})", "pip install -U transformers"
    ) from error

__all__ = ["ConstrainedOutput", "custom_generate"]
