"""Models by role: what is named twice is loaded once, adapters stand around the same weights."""

import pytest
from peft import LoraConfig, get_peft_model

from constrained.errors import ModelError
from constrained.models import load, load_roles
from constrained.models.source import EMBEDDED


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapter")
    get_peft_model(load().model, LoraConfig(r=2, target_modules=["q_proj"])).save_pretrained(folder)
    return folder


def test_a_role_without_a_model_has_none():
    models = load_roles(None, {"planner": None})
    assert list(models) == ["policy"] and models["policy"].is_embedded


def test_what_is_named_twice_is_loaded_once(adapter):
    models = load_roles(
        None, {"planner": str(EMBEDDED), "grounder": EMBEDDED, "explorer": adapter, "extractor": adapter}
    )
    assert models["planner"] is models["grounder"] is not models["policy"]
    assert models["explorer"] is models["extractor"]


def test_an_adapter_is_put_around_the_policys_weights(adapter):
    models = load_roles(None, {"planner": adapter})
    base = {id(weight) for weight in models["policy"].model.parameters()}
    own = [weight for weight in models["planner"].model.parameters() if id(weight) not in base]
    assert len(own) == 2 * models["policy"].model.config.num_hidden_layers


def test_objects_are_taken_as_they_are():
    loaded = load()
    assert load_roles(loaded, {"planner": loaded})["planner"] is loaded


def test_a_missing_model_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="no config.json"):
        load_roles(None, {"planner": tmp_path})
