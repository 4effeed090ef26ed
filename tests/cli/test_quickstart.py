"""docs/quickstart.md, as a newcomer follows it: each command is run, each change made, and each line shown appears."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
FILES = {"yaml": "agent.yaml", "py": "test_agent.py"}
"""By the language of a block, the file at whose end it is added."""


def run_pytest() -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("with_pytest", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_quickstart_goes_as_its_page_says(cli, with_pytest):
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert {language for language, _ in blocks} == {"console", *FILES}
    codes = []
    for language, text in blocks:
        if language in FILES:
            with Path(FILES[language]).open("a", encoding="utf-8") as file:
                file.write(f"\n\n{text}")
            continue
        for command, answer in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            typed = "".join(re.findall(r"^> (.*\n)", answer, re.MULTILINE))
            program, *arguments = command.split()
            if program == "cd":
                os.chdir(arguments[0])  # the fixture goes back
                continue
            if program == "pytest":
                words = run_pytest() if with_pytest else answer
            else:
                result = cli(*arguments, stdin=typed)
                codes.append(result.code)
                words = result.words
            for line in re.findall(r"^(?!> )(.+)\n", answer, re.MULTILINE):
                assert " ".join(line.split()) in words, command
    assert codes == [0, 0, 0, 5, 0, 0]
