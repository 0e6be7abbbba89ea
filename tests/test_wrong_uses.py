"""Every wrong use gets one clear line and leaves nothing behind; the page of the documents shows what is said."""

import importlib.util
import re
import sys

import pytest

from tests.test_documents import DOCS


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_wrong_uses", DOCS / "generate_wrong_uses.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
# A hundred commands: minutes, where something else runs beside them.
@pytest.mark.timeout(1200)
def test_wrong_uses_are_refused_in_a_line_and_leave_nothing(generator):
    answers = generator.answers()
    assert len(answers) >= 60
    for use, answer in answers.items():
        said = f"{use.title}: {answer}"
        assert answer.code in (1, 2, 130, 143), said
        assert not re.search("Traceback|Exception ignored", "\n".join(answer.lines)), said
        assert answer.made == [], said
        assert answer.lines, said
        assert answer.lines[-1].startswith(("phrasetool: ", "Error: ")), said
    # Another processor may round differently.
    written, now = (re.sub(r"\d[\d.,]*", "#", text) for text in (
        (DOCS / "wrong-uses.md").read_text("utf-8"), generator.page(answers)
    ))  # fmt: skip
    assert written == now, "docs/wrong-uses.md is stale; run `make documents`"
