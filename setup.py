"""Packaging: one distribution, whose data (grammars, the embedded model) travels inside the package.

The folders `grammars/` and `benchmarks/` stand beside `constrained/` in the checkout. In a wheel the grammars
become `constrained/grammars/`; code looks for them there first and beside the package second, so that an
installed copy, an editable one and a bare checkout all find the same files.
"""

import sys
from pathlib import Path

from setuptools import Extension, find_namespace_packages, find_packages, setup

EXTRAS = {
    # Its planner is under the GPL (fast-downward: 3, jericho: 2) and compiles for minutes: in no other extra.
    "alfworld": ["alfworld>=0.4", "textworld[pddl]>=1.6.1"],
    "docs": ["sphinx>=8.1", "myst-parser>=4", "furo>=2024.8"],
    "gguf": ["gguf>=0.10", "sentencepiece>=0.2"],
    "lsp": ["pygls>=2"],
    "plot": ["matplotlib>=3.8"],
    "scienceworld": ["scienceworld>=1.2.3,<1.3"],  # with its simulator; needs Java 11 or later, too
    "peers": ["xgrammar", "llguidance", "outlines_core", "lm-format-enforcer"],
    "mistral": ["mistral-common>=1.8"],
    "ray": ["ray>=2.10"],
    "tantivy": ["tantivy>=0.25"],
    "triton": ['triton>=3.1; platform_system == "Linux" and platform_machine == "x86_64"'],
}
EXTRAS["test"] = ["pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100", "jsonschema>=4.18", "playwright>=1.40"]
EXTRAS["test"] += EXTRAS["gguf"] + EXTRAS["plot"] + EXTRAS["mistral"] + EXTRAS["tantivy"] + EXTRAS["triton"]
EXTRAS["test"] += EXTRAS["scienceworld"] + EXTRAS["docs"] + EXTRAS["lsp"]
EXTRAS["test"] += ["ipykernel>=6.29", "nbclient>=0.10", "nbconvert>=7.16"]  # what notebooks show
EXTRAS["dev"] = EXTRAS["test"] + EXTRAS["peers"]

# Without a C compiler the build goes on, and Python does the kernel's work with the same results.
KERNEL = Path("constrained/automaton/kernel")
EXTENSION = Extension(
    "constrained.automaton._kernel",
    sources=sorted(str(file) for file in KERNEL.glob("*.c")),
    depends=sorted(str(file) for file in KERNEL.glob("*.h")),
    extra_compile_args=[] if sys.platform == "win32" else ["-O3"],
    optional=True,
)

setup(
    name="constrained",
    version="0.1.0",
    description="Language-model agents whose every action token is admitted by written action knowledge",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    packages=find_packages(include=["constrained", "constrained.*"])
    + find_namespace_packages(include=["benchmarks", "benchmarks.*"], exclude=["*.__pycache__"])
    + ["constrained.grammars"],
    package_dir={"constrained.grammars": "grammars"},
    package_data={
        "constrained": ["models/embedded/*"],
        "constrained.pages": ["static/*", "static/*/*"],
        "constrained.grammars": ["*.lark", "*/*.lark"],
        "benchmarks": ["results/*.json"],
    },
    ext_modules=[EXTENSION],
    install_requires=[
        "torch>=2.4",
        "transformers>=4.50",
        "outlines>=1.0",
        "lark>=1.2",
        "networkx>=3",
        "peft>=0.12",
        "accelerate>=1.1",
        "numpy>=2.0",
        "safetensors>=0.4",
        "sympy>=1.12",
        "filelock>=3.12",
        "tqdm>=4.60",
        "flask>=3",
    ],
    extras_require=EXTRAS,
    entry_points={
        "console_scripts": ["constrained = constrained.cli:main"],
        "vllm.logits_processors": ["constrained = constrained.decoding.hosts.vllm_processor:VllmLogitsProcessor"],
    },
)
