"""Every wrong use gets one clear line and leaves nothing behind; the page of the documents shows what is said."""

import json
import re
import subprocess
import sys

import pytest

from tests.test_documents import DOCS


@pytest.mark.slow
# Two hundred commands: minutes, where something else runs beside them.
@pytest.mark.timeout(1200)
def test_wrong_uses_are_refused_in_a_line_and_leave_nothing(tmp_path):
    told = tmp_path / "told.json"
    subprocess.run([sys.executable, DOCS / "generate_wrong_uses.py", "--json", told], check=True)
    report = json.loads(told.read_text("utf-8"))
    assert len(report["answers"]) >= 200
    for answer in report["answers"]:
        lines, said = answer["lines"], str(answer)
        assert answer["code"] in (1, 2, 130, 143), said
        assert not re.search("Traceback|Exception ignored", "\n".join(lines)), said
        assert answer["made"] == [], said
        assert lines, said
        expected = "phrasetool: " if answer["code"] in (130, 143) else "phrasetool: error: "
        assert lines[-1].startswith(expected), said
    # Another processor may round differently.
    written, now = (re.sub(r"\d[\d.,]*", "#", text) for text in (
        (DOCS / "wrong-uses.md").read_text("utf-8"), report["page"]
    ))  # fmt: skip
    assert written == now, "docs/wrong-uses.md is stale; run `make documents`"
