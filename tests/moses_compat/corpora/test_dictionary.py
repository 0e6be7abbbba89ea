import re

import pytest

from moses_compat.corpora.dictionary import read_dictionary
from phrasetool.errors import DataError
from tests.commands import write


@pytest.mark.parametrize(
    "data",
    [
        b"haus ||| house\n&apos;s ||| 's\n",
        b"haus house\n&apos;s 's\n",
        b"haus home 0.2\nhaus house 0.7000000\nhaus hut 0.7\nNULL house 0.9\n's &apos;s 1\nhaus NULL 1\n\n",
        b"haus ||| house ||| 3\nhaus ||| home ||| 2\n's ||| 's ||| 1\n",
    ],
)
def test_every_form_gives_the_best_target_without_escapes(tmp_path, data):
    assert read_dictionary(str(write(tmp_path / "d.gz", data))) == {b"haus": b"house", b"'s": b"'s"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a b\nhaus\n", "d:2: expected a source word, a target word"),
        (b"haus house much\n", "d:1: expected a source word, a target word"),
        (b"das haus ||| house\n", "d:1: expected one source word"),
        (b"haus |||\n", "d:1: expected one source word"),
        (b"\n", "d: there is no word in it"),
    ],
)
def test_other_files(tmp_path, data, message):
    with pytest.raises(DataError, match=re.escape(message)):
        read_dictionary(str(write(tmp_path / "d", data)))
