import pytest

from tests.decoding.hosts.vllm_stand_in import config
from tests.decoding.tiny import tiny


@pytest.fixture(scope="session")
def settings(tmp_path_factory):
    """A stand-in for vLLM's configuration, with the tiny model's tokenizer on disk."""
    loaded, path = tiny(padding=13), tmp_path_factory.mktemp("tokenizer")
    loaded.tokenizer.save_pretrained(path)
    return config(str(path), loaded.logits_width)
