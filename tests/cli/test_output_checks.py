import pytest

from phrasetool.errors import PhraseToolError
from phrasetool_cli.shared.output_checks import check_outputs


def test_files_that_differ(tmp_path):
    check_outputs([str(tmp_path / "a"), None, "-"], ["-", None, str(tmp_path / "b")])


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (["a"], ["a"], "^a: the output is the input a; choose another name$"),
        (["link"], ["b", "a"], "^a: the output is the input link; choose another name$"),
        ([], ["a", "link"], "^link: two outputs go to one file$"),
        ([], ["-", None, "-"], "^-: two outputs go to one file$"),
    ],
)
def test_files_that_are_one(tmp_path, monkeypatch, inputs, outputs, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(PhraseToolError, match=message):
        check_outputs(inputs, outputs)
