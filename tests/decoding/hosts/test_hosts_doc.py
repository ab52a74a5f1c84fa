"""What docs/hosts.md shows is so: its code is run, and where vLLM would be needed, its requests are checked."""

import ast
import json
import re
from pathlib import Path

import pytest
from transformers.generation import configuration_utils

from constrained.decoding.hosts.specification import _KINDS, MAX_COMPILED, check_specification, read_specification
from constrained.decoding.hosts.vllm_processor import CONFLICTING
from tests.decoding.tiny import tiny
from tests.documents import blocks, run_page

PAGE = Path(__file__).parents[3] / "docs" / "hosts.md"
DOC = PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(configuration_utils, "ContinuousBatchingConfig"), reason="needs transformers 5.23")
def test_the_code_for_hosts_that_are_here_runs(tmp_path):
    loaded = tiny()
    loaded.tokenizer.pad_token, loaded.tokenizer.padding_side = "<s>", "left"
    names = run_page(PAGE, tmp_path, {"model": loaded.model, "tokenizer": loaded.tokenizer})
    for ids in (names["ids"], names["by_loop"], names["by_tables"]):
        texts = loaded.tokenizer.batch_decode(ids[:, names["inputs"]["input_ids"].shape[1] :], True)
        assert len(texts) == 2 and all(map(names["grammar"].matches, texts))
    result = loaded.tokenizer.decode(names["result"].generated_tokens, skip_special_tokens=True)
    assert names["grammar"].matches(result)
    assert names["knowledge"].check([names["action"]]).ok


def test_the_requests_for_servers_are_such_as_they_serve():
    code = [ast.parse(block.text) for block in blocks(PAGE) if block.elsewhere]
    assert len(code) == 4  # the last is for our own server
    assigned = {node.targets[0].id: node.value for node in ast.walk(code[0]) if isinstance(node, ast.Assign)}
    household = ast.literal_eval(assigned["household"])
    check_specification(household)
    assert read_specification(household).matches("take mug 1 from desk 1")
    for block in code[1:3]:
        calls = [node for node in ast.walk(block) if isinstance(node, ast.Call)]
        [dumped] = [call for call in calls if ast.unparse(call.func) == "json.dumps"]
        check_specification(json.dumps(ast.literal_eval(dumped.args[0])))


def test_names_and_numbers_are_those_of_the_code():
    assert f"The {MAX_COMPILED} most recently used" in DOC
    for name in {*_KINDS, *set().union(*_KINDS.values()), "begun"}:
        assert f'"{name}"' in DOC
    assert all(f"`{name}`" in DOC for name in CONFLICTING)
    for path in re.findall(r"`((?:tests|constrained)/[\w/.]+)`", DOC):
        assert (Path(__file__).parents[3] / path).exists()
