import errno

import pytest

from phrasetool.errors import DataError, LengthError, PhraseToolError, first_line, reason


@pytest.mark.parametrize(("line", "text"), [(None, "a.gz: is bad"), (0, "a.gz:0: is bad"), (7, "a.gz:7: is bad")])
def test_a_data_error_names_the_file_and_the_line(line, text, tmp_path):
    error = DataError("a.gz", "is bad", line, remedy="skip")
    assert str(error) == text
    assert (error.path, error.line, error.remedy) == ("a.gz", line, "skip")
    assert DataError(tmp_path, "x").path == str(tmp_path)


def test_a_remedy_is_not_part_of_the_message():
    error = PhraseToolError("too large", remedy="smaller")
    assert (str(error), error.remedy, PhraseToolError("x").remedy) == ("too large", "smaller", None)


def test_a_length_error_is_a_value_error():
    assert issubclass(LengthError, ValueError)


def test_the_first_line_of_an_error():
    assert first_line(ValueError("\n one\ntwo\n")) == "one"
    assert first_line(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "the disk is full"),
        (OSError(errno.EACCES, "Permission denied"), "Permission denied"),
        (OSError("1000 requested and 24 written"), "the disk is full"),
        (OSError("something\nmore"), "something"),
    ],
)
def test_reasons_of_operating_system_errors(error, said):
    assert reason(error) == said
