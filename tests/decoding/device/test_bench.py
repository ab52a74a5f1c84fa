"""constrained bench device: on a CPU the reference is measured; without a GPU `--device cuda` says so."""

from __future__ import annotations

import json

import pytest
import torch

from constrained.cli import main

SMALL = ["--vocabulary", "embedded", "--layers", "1", "--width", "16", "--repeats", "1"]


def test_the_table_and_the_same_figures_as_json(capsys, tmp_path):
    file = tmp_path / "device.json"
    given = ["--device", "cpu", "--batch", "1", "--batch", "3", *SMALL, "--json", str(file)]
    assert main(["bench", "device", *given]) == 0
    result = json.loads(file.read_text())
    assert [(row["batch"], row["rows"]) for row in result["rows"]] == [
        (1, "wide"),
        (1, "text"),
        (3, "wide"),
        (3, "text"),
    ]
    for row in result["rows"]:
        assert all(
            row[figure] > 0 for figure in ("argmax", "step", "step by chance", "decode", "decode within", "apply")
        )
        assert row["apply equal"] in (True, None), "xgrammar's kernel leaves the same logits, where it is installed"
    assert result["rows"][0]["allowed"] > 500, "free text"
    assert result["hardware"]["torch"] == torch.__version__ and result["tables"]["states"] > 1000
    out = capsys.readouterr().out
    assert "| rows | kind | argmax | masked step |" in out and f"torch {torch.__version__}" in out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_there_is_one_clear_error(capsys):
    assert main(["bench", "device", "--device", "cuda", *SMALL]) == 1
    assert capsys.readouterr().err == (
        "error: torch finds no CUDA device\n  hint: run it where there is one, or --device cpu: the torch reference\n"
    )


def test_numbers_that_make_no_sense_are_an_error(capsys):
    assert main(["bench", "device", "--device", "cpu", "--batch", "0"]) == 1
    assert "--batch, --repeats and --layers from 1" in capsys.readouterr().err
