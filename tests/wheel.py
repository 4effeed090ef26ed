"""Build the wheel, install it into a folder of its own, and run the tests against it from outside the checkout.

python tests/wheel.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What the tests need besides the package: the README's code, examples that are not packaged, the benchmarks.
NEEDED = ("tests", "examples", "benchmarks", "README.md", "Makefile", "pyproject.toml")


def main() -> int:
    """Return pytest's exit code, or that of a step before it."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run("-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", str(work / "dist"), str(ROOT))
        (wheel,) = (work / "dist").glob("*.whl")
        run("-m", "pip", "install", "-qq", "--no-deps", "--target", str(work / "site"), str(wheel))
        for name in NEEDED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, work / "away" / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, work / "away" / name)
        # Before an editable install's own finder, and without the checkout's folder on the path.
        environment = {
            **os.environ,
            "PYTHONPATH": str(work / "site"),
            "ARQ_GRAPH_INSTALLED": str(work / "site"),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", *sys.argv[1:]]
        return subprocess.run(command, cwd=work / "away", env=environment, check=False).returncode


def run(*arguments: str) -> None:
    """Run Python with these arguments; a failure ends the program."""
    subprocess.run([sys.executable, *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
