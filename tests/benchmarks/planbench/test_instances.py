"""PlanBench's instances and recorded plans, and folders laid out alike."""

import json

import pytest

from benchmarks.planbench.instances import read_instances, read_plans
from constrained.errors import DataError, PddlError
from tests.data import shared
from tests.planning_domains import BLOCKS, SUSSMAN


def test_a_folder_laid_out_alike_is_read(tmp_path):
    for number in (10, 2):
        path = tmp_path / "blocks" / "basic" / f"instance-{number}.pddl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SUSSMAN)
    (tmp_path / "blocks" / "domain.pddl").write_text(BLOCKS)
    instances = read_instances(tmp_path)
    assert [one.name for one in instances] == ["blocks/basic/2", "blocks/basic/10"]
    assert len(instances[0].task().objects) == 3


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(DataError, match="no .*domain.pddl or .* in"):
        read_instances(tmp_path / "none")
    with pytest.raises(DataError, match="no .*domain.pddl or .* in"):
        read_instances(tmp_path)
    (tmp_path / "blocks" / "basic").mkdir(parents=True)
    (tmp_path / "blocks" / "basic" / "instance-1.pddl").write_text(SUSSMAN)
    with pytest.raises(DataError, match="has no domain"):
        read_instances(tmp_path)


def test_an_instance_that_cannot_be_read_names_its_file(tmp_path):
    (tmp_path / "blocks" / "basic").mkdir(parents=True)
    (tmp_path / "blocks" / "domain.pddl").write_text(BLOCKS)
    (tmp_path / "blocks" / "basic" / "instance-1.pddl").write_text(SUSSMAN.replace("(on c a)", "(over c a)"))
    with pytest.raises(PddlError, match=r"blocks/basic/1\.pddl"):
        read_instances(tmp_path)[0].task()


def test_plans_are_texts_lists_or_missing(tmp_path):
    row = {"domain": "blocks", "set": "basic", "instance": 1, "model": "m", "prompt": "p", "correct": None}
    written = ["(a b)\n(c)\n", ["(a b)", "(c)"], None]
    path = tmp_path / "plans.jsonl"
    path.write_text("".join(json.dumps(row | {"plan": plan}) + "\n" for plan in written))
    assert [plan.lines for plan in read_plans(path)] == [("(a b)", "(c)"), ("(a b)", "(c)"), None]
    path.write_text(json.dumps(row | {"plan": 3}) + "\n")
    with pytest.raises(DataError, match="row 1"):
        list(read_plans(path))


def test_the_benchmark_has_467_instances_in_six_domains():
    shared("planbench")
    instances = read_instances()
    assert len(instances) == 467
    assert len({one.domain_name for one in instances}) == 6
