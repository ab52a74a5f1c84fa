"""Where vLLM and SGLang are installed, so is torchvision for CUDA, which transformers imports if it is there."""

from importlib.util import find_spec

if find_spec("vllm") or find_spec("sglang"):
    import tests.decoding.hosts.torchvision_operators  # noqa: F401
