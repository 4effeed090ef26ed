"""Build the wheel, install it into environments of its own, and see that it works in each.

python tests/wheel.py

It is tried with what it says it needs, with the lowest versions of that, and with every other Python that is here.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
UV = [sys.executable, "-m", "uv", "--quiet", "--system-certs"]
EXTRAS = ("cli", "providers", "middleware", "agui", "play", "cluster", "embeddings", "mcp")
USED = """
import cloudpickle, dotenv, langchain_mcp_adapters.client, langgraph.checkpoint.sqlite, numpy, rich, typer
import arq_graph.agui, arq_graph.middleware, arq_graph.play.server, uvicorn
from importlib.metadata import version

print(version("langgraph"))
"""
# The shims that pyenv puts on the path run one version alone.
PATH = os.pathsep.join([*map(str, Path.home().glob(".pyenv/versions/*/bin")), os.environ["PATH"]])


def main() -> int:
    """Return 1 where something failed, else 0."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.rmtree(
            ROOT / "build" / "lib", ignore_errors=True
        )  # setuptools packs what an earlier build left
        subprocess.run([*UV, "build", "--wheel", "--out-dir", str(work), str(ROOT)], check=True)
        (wheel,) = work.glob("*.whl")
        tried = [smoke(wheel, own), smoke(wheel, own, lowest=True)]
        tried += [smoke(wheel, python) for python in PYTHONS if python != own]
    return int(not all(tried))


def smoke(wheel: Path, python: str, *, lowest: bool = False) -> bool:
    """Whether the smoke tests pass, far from the checkout; a Python that is not here is left out."""
    versions = "lowest" if lowest else "highest"
    work = wheel.parent / f"{python}-{versions}"
    make = [*UV, "venv", "--no-python-downloads", "--python", python, str(work)]
    if subprocess.run(make, env={**os.environ, "PATH": PATH}, capture_output=True, check=False).returncode:
        print(f"Python {python}: not here, left out", flush=True)
        return True
    print(f"Python {python}, {versions} versions:", flush=True)
    ours = str(work / "bin" / "python")
    install = [*UV, "pip", "install", "--python", ours]
    if lowest:
        install_lowest(wheel, ours, install)
    else:
        subprocess.run([*install, f"{wheel}[cli]"], check=True)
    subprocess.run([*install, "pytest"], check=True)
    shutil.copy(ROOT / "tests" / "test_smoke.py", work / "test_smoke.py")
    environment = {**os.environ, "ARQ_GRAPH_INSTALLED": str(work)}
    environment.pop("PYTHONPATH", None)
    return not subprocess.run(
        [ours, "-m", "pytest", "-q", "-o", "markers=slow", "test_smoke.py"],
        cwd=work,
        env=environment,
        check=False,
    ).returncode


def install_lowest(wheel: Path, python: str, install: list[str]) -> None:
    """Install the wheel with the lowest versions that it and its extras name, and see that the extras import.

    Of a wheel that it installs, uv takes the wheel alone for direct, and so the highest of all that this needs.
    """
    project, low = ROOT / "pyproject.toml", wheel.parent / "lowest.txt"
    resolve = [*UV, "pip", "compile", "--python", python, "--resolution", "lowest-direct", str(project)]
    extras = [f"--extra={extra}" for extra in EXTRAS]
    subprocess.run([*resolve, *extras, "-o", str(low)], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*install, "-r", str(low)], check=True)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    done = subprocess.run([python, "-c", USED], cwd=wheel.parent, capture_output=True, text=True, check=True)
    if f'"langgraph>={done.stdout.strip()}"' not in project.read_text(encoding="utf-8"):
        raise SystemExit(
            f"langgraph is {done.stdout.strip()}, which is not the lowest that pyproject.toml names"
        )


if __name__ == "__main__":
    sys.exit(main())
