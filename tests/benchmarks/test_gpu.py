"""constrained bench gpu: on a CPU a small form of all parts runs; without a GPU `--device cuda` says so."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks.gpu import tests as gpu_tests
from constrained.cli import main

SMALL = ["--layers", "1", "--width", "16", "--repeats", "1", "--batch", "2"]


def test_kernels_and_texts_as_tables_and_json(capsys, tmp_path):
    file = tmp_path / "gpu.json"
    parts = ["--part", "kernels", "--part", "texts"]
    assert main(["bench", "gpu", "--device", "cpu", *parts, *SMALL, "--json", str(file)]) == 0
    result = json.loads(file.read_text())
    assert [(row["batch"], row["rows"]) for row in result["kernels"]] == [(2, "wide"), (2, "text")]
    for row in result["kernels"]:
        assert all(row[name] > 0 for name in ("argmax", "step", "step by chance", "decode", "decode within", "apply"))
        assert row["apply equal"] in (True, None), "xgrammar's kernel leaves the same logits, where it is installed"
    assert result["kernels"][0]["allowed"] > 500, "free text"
    assert result["hardware"]["torch"] == torch.__version__ and result["workload"]["states"] > 1000
    for row in result["texts"]:
        if "reason" not in row:
            assert row["tokens/s"] > 0 and row["whole"] in (None, 2), "every text within the grammar is whole"
    by_loop = {row["loop"]: row for row in result["texts"]}
    assert by_loop["host loop"]["passes"] < by_loop["device loop"]["passes"], "forced text costs the host no pass"
    out = capsys.readouterr().out
    assert "| rows | kind | argmax | masked step |" in out and "| rows | loop | tokens/s |" in out


def test_what_there_is_no_time_for_is_said(capsys):
    assert main(["bench", "gpu", "--device", "cpu", "--part", "texts", *SMALL, "--minutes", "0.0001"]) == 0
    assert "Not measured: texts of 2 rows" in capsys.readouterr().out


def test_tests_run_and_their_failures_are_named(tmp_path):
    file = tmp_path / "test_of_this.py"
    file.write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert False\n@pytest.mark.skip\ndef test_c(): pass\n"
    )
    found = gpu_tests.run("cpu", 120, [str(file)])
    assert (found["passed"], found["skipped"]) == (1, 1) and found["failed"][0].endswith("::test_b: assert False")
    assert gpu_tests.table(found).startswith("Tests: 1 passed, 1 skipped, 1 failed\n- ")
    assert "not done after 0 s" in gpu_tests.table(gpu_tests.run("cpu", 0.05, [str(file)]))
    assert "reason" in gpu_tests.run("cpu", 120, [str(tmp_path / "none.py")])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_there_is_one_clear_error(capsys):
    assert main(["bench", "gpu", "--device", "cuda", *SMALL]) == 1
    assert capsys.readouterr().err == (
        "error: torch finds no CUDA device\n"
        "  hint: run it where there is one, or --device cpu: a small form in plain torch\n"
    )


def test_numbers_that_make_no_sense_are_an_error(capsys):
    assert main(["bench", "gpu", "--device", "cpu", "--batch", "0"]) == 1
    assert "--batch, --repeats and --layers from 1" in capsys.readouterr().err
