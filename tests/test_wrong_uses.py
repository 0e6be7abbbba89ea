"""Every wrong use fails with a clear error line and leaves no files; the page of the manual shows the messages."""

import json
import re
import subprocess
import sys

import pytest

from tests.test_documents import DOCS


@pytest.mark.slow
# Two hundred commands take minutes on a busy machine.
@pytest.mark.timeout(1200)
def test_wrong_uses_fail_with_an_error_line_and_leave_no_files(tmp_path):
    report_file = tmp_path / "told.json"
    subprocess.run([sys.executable, DOCS / "generate_wrong_uses.py", "--json", report_file], check=True)
    report = json.loads(report_file.read_text("utf-8"))
    assert len(report["answers"]) >= 200
    for answer in report["answers"]:
        lines, details = answer["lines"], str(answer)
        assert answer["code"] in (1, 2, 130, 143), details
        assert not re.search("Traceback|Exception ignored", "\n".join(lines)), details
        assert answer["made"] == [], details
        assert lines, details
        expected = "phrasetool: " if answer["code"] in (130, 143) else "phrasetool: error: "
        assert lines[-1].startswith(expected), details
    # Another processor may round differently.
    written, current = (re.sub(r"\d[\d.,]*", "#", text) for text in (
        (DOCS / "wrong-uses.md").read_text("utf-8"), report["page"]
    ))  # fmt: skip
    assert written == current, "docs/wrong-uses.md is stale; run `make documents`"
