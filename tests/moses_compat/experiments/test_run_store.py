"""Records of finished runs are found by their keys, or ignored if they are damaged."""

import hashlib
import json

import pytest

from moses_compat.experiments.build_commands import RunStore, digest_of, file_digest
from phrasetool.errors import PhraseToolError

RECORD = {"translations": {"dev": ['"ü\ufffd', "日本 \u2028", ""]}}


def test_any_text_can_be_kept(tmp_path):
    store = RunStore(str(tmp_path / "runs"))
    assert store.read("k") is None
    store.write("k", RECORD)
    assert store.read("k") == RECORD == json.loads((tmp_path / "runs" / "k.json").read_bytes())


def test_damage_is_as_if_nothing_were_there(tmp_path):
    store, path = RunStore(str(tmp_path)), tmp_path / "k.json"
    store.write("k", RECORD)
    for text in (path.read_text()[:-5], "{}", "[]"):
        path.write_text(text)
        assert store.read("k") is None


def test_digits_tell_parts_apart(tmp_path):
    """Digests of different parts differ, even if the joined parts are equal."""
    assert digest_of("ab", b"c") == digest_of(b"ab", "c") == hashlib.sha256(b"2:ab1:c").hexdigest()[:20]
    assert len({digest_of(*parts) for parts in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], [])}) == 5
    (tmp_path / "one").write_bytes(b"a")
    (tmp_path / "two").write_bytes(b"a")
    assert file_digest(str(tmp_path / "one")) == file_digest(str(tmp_path / "two"))
    (tmp_path / "two").write_bytes(b"b")
    assert file_digest(str(tmp_path / "one")) != file_digest(str(tmp_path / "two"))


def test_a_folder_that_cannot_be_made_and_a_file_that_is_not_there(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PhraseToolError, match="cannot make the folder"):
        RunStore(str(tmp_path / "file" / "runs"))
    with pytest.raises(PhraseToolError, match="cannot read"):
        file_digest(str(tmp_path / "none"))
