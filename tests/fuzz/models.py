"""Targets: model folders.  An input is the concatenation of the files of a folder; checksums are corrected, because
otherwise a damaged file would be refused by its checksum alone."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

from phrasetool.models.saved_model import load_saved_model
from phrasetool.text_encoders.encoders import find_text_encoder
from tests.comparable_text import encoder_folder
from tests.fuzz.target import Target, scratch
from tests.neural_models import random_model
from tests.parallel_models import random_parallel_model
from tests.small_experiment import small_model
from tests.syntax_models import random_syntax_model

_MARK = b"\n%%%% file "
_CONFIG, _CHECKSUMS = "config.json", "checksums"


def joined(files: Mapping[str, bytes]) -> bytes:
    """Return files as one input."""
    return b"".join(b"%s%s\n%s" % (_MARK, name.encode(), data) for name, data in files.items())


def _written_folder(data: bytes) -> Path:
    """Write the files of an input to a folder; return it."""
    folder = scratch("folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = {}
    for part in data.split(_MARK)[1:]:
        name, _, body = part.partition(b"\n")
        # Only file contents are fuzzed; other file names are ignored.
        if name.decode("latin-1") in _NAMES:
            files[name.decode()] = body
    if _CONFIG in files:
        files[_CONFIG] = _with_right_sums(files)
    for name, body in files.items():
        (folder / name).write_bytes(body)
    return folder


def _with_right_sums(files: Mapping[str, bytes]) -> bytes:
    try:
        config = json.loads(files[_CONFIG])
        config[_CHECKSUMS] = {
            name: hashlib.sha256(files[name]).hexdigest() if name in files else sum_
            for name, sum_ in config[_CHECKSUMS].items()
        }
        return json.dumps(config).encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return files[_CONFIG]


def _run_model(data: bytes) -> None:
    model = load_saved_model(_written_folder(data))
    if hasattr(model, "scorer"):
        from tests.fuzz.tables import score_few

        score_few(model)


def _run_encoder(data: bytes) -> None:
    encoder = find_text_encoder(_written_folder(data))
    encoder.load().encode(["s1 s2", "", "t5 nothing"], "source")


def _run_safetensors(data: bytes) -> None:
    """Load a model whose weights have a fuzzed JSON header of correct length."""
    size = struct.pack("<Q", len(data))
    folder = scratch("folder")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_model_folder(), folder)
    weights = folder / "model.safetensors"
    (folder / _weights_name(folder)).write_bytes(size + data + _tensor_bytes())
    weights.unlink(missing_ok=True)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / _CONFIG).write_bytes(_with_right_sums(files))
    load_saved_model(folder)


def _model_folder() -> Path:
    folder = scratch("model")
    if not folder.exists():
        small_model().save(folder)
    return folder


def _weights_name(folder: Path) -> str:
    return next(path.name for path in folder.iterdir() if path.suffix == ".safetensors")


def _header_and_bytes() -> tuple[bytes, bytes]:
    folder = _model_folder()
    data = (folder / _weights_name(folder)).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    return data[8 : 8 + length], data[8 + length :]


def _tensor_bytes() -> bytes:
    return _header_and_bytes()[1]


def _files_of(make: Callable[[Path], object]) -> bytes:
    folder = scratch("made")
    shutil.rmtree(folder, ignore_errors=True)
    make(folder)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    _NAMES.update(files)
    shutil.rmtree(folder)
    return joined(files)


_NAMES: set[str] = set()
_MADE = (
    small_model(), random_model([b"a", b"b"], [b"x", b"y"]), random_parallel_model(), random_syntax_model(),
)  # fmt: skip
_SEEDS = [_files_of(lambda folder, model=model: model.save(folder)) for model in _MADE]  # type: ignore[misc]
_WORDS = (
    b"null", b"true", b"[]", b"{}", b'""', b"1e999", b"-1", b'"dimension": 7', b'"model": "brae"', b'"training": 1',
    b"F32", b"F16", b"I64", b"[0, 0]", b'"shape": [2, 3]', b'"data_offsets": [0, 99999999999]', b"NaN", b"[" * 300,
)  # fmt: skip

TARGETS = (
    Target("model folder", _SEEDS, _run_model, _WORDS),
    Target("encoder folder", [_files_of(encoder_folder)], _run_encoder, _WORDS),
    Target("safetensors header", [_header_and_bytes()[0]], _run_safetensors, _WORDS),
)
