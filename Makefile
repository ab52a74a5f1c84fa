# make plan: install and watch an agent solve a household game · make test: install and run the tests (JOBS=8: faster)
# make hosts: run the tests in vLLM's, SGLang's and llama.cpp's own code, and end with a table of what ran; it fetches
#   half a gigabyte of wheels and compiles llama-cpp-python (a C++ compiler; ten minutes on two cores)
# make lint: ruff and mypy · make docs: the documentation as a site in build/docs
# make embedded: train the embedded model again from nothing · make self-learning: what it is compared to, too
# make agents: play ALFWorld's seen games at every level, and record the tables of docs/agents_figures.md
# make editor: bundle the playground's editor component again (needs npm; what it makes is committed)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt

.PHONY: plan test hosts lint docs embedded self-learning agents editor clean

plan: $(VENV)/installed
	$(BIN)/constrained plan "heat an egg and put it in the fridge"

# So many processes share the tests, of a file all to one, which keeps what they share. Each takes about 1.5 GB. Three keep
# two cores busy, as many tests wait for other processes. Files start in the order of tests/conftest.py, the long ones first.
JOBS ?= 3

# Compiled code is kept, whatever the environment says: else each of some hundred processes compiles the package again.
test: $(VENV)/installed-test
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Beside what is installed for the tests, without vLLM's and SGLang's own requirements (CUDA builds of torch).
HOSTS := build/hosts
hosts: $(VENV)/installed-test tests/decoding/hosts/requirements.txt
	$(BIN)/python -m venv $(HOSTS)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > $$(echo $(HOSTS)/lib/python3*/site-packages)/tests.pth
	grep -v '^llama-cpp-python' tests/decoding/hosts/requirements.txt > build/hosts.txt
	$(HOSTS)/bin/python -m pip install --quiet --no-deps -r build/hosts.txt
	$(HOSTS)/bin/python -m pip install --quiet --no-deps $$(grep '^llama-cpp-python' tests/decoding/hosts/requirements.txt) \
	  || echo "llama-cpp-python can't be compiled here: its tests are skipped"
	VLLM_TARGET_DEVICE=cpu $(HOSTS)/bin/python -X faulthandler -m pytest -p tests.decoding.hosts.summary \
	  tests/decoding/hosts tests/automaton/test_export.py tests/models/test_llama_cpp.py

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/installed-test
	$(BIN)/python -m sphinx -q -W --keep-going docs build/docs
	@echo "open build/docs/index.html"

# Each can be stopped at any time, and then goes on from there. On two cores the teaching takes about an hour and a
# quarter; then half an hour a variant of self-learning, on one.
BUILD := build/embedded
LEARN := $(BIN)/constrained bench self-learning --model $(BUILD)/taught --output $(BUILD)/rounds

$(BUILD)/taught/README.md: | $(VENV)/installed-test
	$(BIN)/python -m tools.embedded_model.train --out $(BUILD)/taught --work $(BUILD)/work --no-play

embedded: $(BUILD)/taught/README.md
	$(LEARN) --variant full
	$(BIN)/python -m tools.embedded_model.merge_adapter $(BUILD)/rounds/full --round 4 --base $(BUILD)/taught \
	  --out constrained/models/embedded --command "make embedded"

self-learning: $(BUILD)/taught/README.md
	$(LEARN) --json benchmarks/results/self_learning.json --plot docs/self_learning.svg

# It can be stopped at any time, and then goes on from there; half an hour on one core.
agents: $(VENV)/installed-test
	$(BIN)/constrained bench agents --strategy act --strategy react --strategy knowagent --random 3 \
	  --json benchmarks/results/agents_alfworld_valid_seen.json --plot docs/agents.svg

editor:
	npm --prefix constrained/pages/editor ci
	npm --prefix constrained/pages/editor run build

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Stamps: a second call installs nothing unless the requirements changed. The install is editable,
# so changed code needs none either.
$(VENV)/installed: pyproject.toml setup.py constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/installed-test: pyproject.toml setup.py constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e ".[test]"
	touch $(VENV)/installed $@
