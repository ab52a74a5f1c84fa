"""Compile the C kernel; everything else about the distribution stands in pyproject.toml.

The folder `grammars/` stands beside `constrained/` in the checkout and is installed as `constrained/grammars/`; code
looks for it there first and beside the package second, so an installed copy, an editable one and a bare checkout
all find the same files.
"""

import hashlib
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup

KERNEL = Path("constrained/automaton/kernel")
# Compiled in, so that native.py notices a kernel that was built from other C files than the checkout's.
DIGEST = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(KERNEL.glob("*.[ch]")))).hexdigest()[:16]

setup(
    packages=[*find_packages(include=["constrained", "constrained.*"]), "constrained.grammars"],
    package_dir={"constrained.grammars": "grammars"},
    ext_modules=[
        Extension(
            "constrained.automaton._kernel",
            sources=sorted(str(file) for file in KERNEL.glob("*.c")),
            depends=sorted(str(file) for file in KERNEL.glob("*.h")),
            define_macros=[("KERNEL_SOURCES", DIGEST)],
            extra_compile_args=[] if sys.platform == "win32" else ["-O3"],
            optional=True,  # without a C compiler, Python does the kernel's work with the same results
        )
    ],
)
