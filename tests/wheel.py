"""Build the wheel, install it with what it says it needs into an environment of its own, and see that it works.

python tests/wheel.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Return pytest's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        venv.create(work / "venv", with_pip=True)
        python = str(work / "venv" / "bin" / "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        shutil.rmtree(
            ROOT / "build" / "lib", ignore_errors=True
        )  # setuptools packs what an earlier build left
        subprocess.run([*pip, "wheel", "-qq", "--no-deps", "-w", str(work), str(ROOT)], check=True)
        (wheel,) = work.glob("*.whl")
        subprocess.run([*pip, "install", "-qq", f"{wheel}[sqlite]", "pytest"], check=True)
        shutil.copy(ROOT / "tests" / "test_smoke.py", work / "test_smoke.py")
        environment = {**os.environ, "ARQ_GRAPH_INSTALLED": str(work / "venv")}
        environment.pop("PYTHONPATH", None)
        tests = [python, "-m", "pytest", "-q", "test_smoke.py"]
        return subprocess.run(tests, cwd=work, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
