"""Builds the wheel: the modules, `libadasum.so`, the program `adasum-run` and the headers.

One `cargo build` makes library and program. setuptools-rust would build the crate once for each of them, and maturin carries either an
extension module or a program; this library is neither, it is loaded by ctypes, so the same wheel serves every Python 3."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

# setuptools brings distutils with it.
from distutils.command.build_scripts import build_scripts

ROOT = Path(__file__).resolve().parent


def built() -> Path:
    """The folder with what cargo has built."""
    subprocess.run(["cargo", "build", "--locked", "--release"], cwd=ROOT, check=True)
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"


class BuildModules(build_py):
    """Puts library and headers beside the modules."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            # The source tree has both.
            built()
            return
        package = Path(self.build_lib) / "adasum"
        shutil.copy2(built() / "libadasum.so", package)
        (package / "include").mkdir(exist_ok=True)
        for header in (ROOT / "include").iterdir():
            shutil.copy2(header, package / "include")


class BuildProgram(build_scripts):
    """Puts the program where scripts go; it is none that Python could read."""

    def run(self) -> None:
        folder = Path(self.build_dir)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built() / "adasum-run", folder)


class Wheel(bdist_wheel):
    """For every Python 3, on this kind of machine."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


class Binary(Distribution):
    """Not for every machine."""

    def has_ext_modules(self) -> bool:
        return True


setup(
    version=re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1],
    scripts=["adasum-run"],
    distclass=Binary,
    cmdclass={"build_py": BuildModules, "build_scripts": BuildProgram, "bdist_wheel": Wheel},
)
