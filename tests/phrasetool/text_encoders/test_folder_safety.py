import json
import os
import pickle
import subprocess
import sys

import pytest

from phrasetool.errors import ModelError
from phrasetool.text_encoders.encoders import find_text_encoder
from phrasetool.text_encoders.folder_safety import checked_folder, folder_identity, go_offline
from tests.commands import clean_environment, run_outside, write
from tests.text_encoder_folders import sentence_folder, static_folder, table_lines, transformer_folder


class _Touch:
    """Object whose pickle creates a folder when it is read."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def _code(sentinel):
    return f"import os\nos.mkdir({str(sentinel)!r})\n\n\nclass Evil:\n    pass\n"


def _change(file, **changes):
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, **changes}))


def auto_map(folder, sentinel):
    _change(folder / "config.json", auto_map={"AutoModel": "evil.Evil"}, model_type="evil")
    return "auto_map names code to run"


def python_file(folder, sentinel):
    (folder / "modeling_evil.py").write_text(_code(sentinel))
    return "may hold code or a pickle"


def tokenizer_auto_map(folder, sentinel):
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps({"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}))
    return "auto_map names code to run"


def pickle_file(folder, sentinel):
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Touch(sentinel)))
    (folder / "model.safetensors").unlink()
    return "may hold code or a pickle"


def nested_pickle(folder, sentinel):
    (folder / "2_Dense").mkdir(exist_ok=True)
    (folder / "2_Dense" / "weights.PT").write_bytes(pickle.dumps(_Touch(sentinel)))
    return "may hold code or a pickle"


def linked_code(folder, sentinel):
    outside = folder.parent / f"outside-{folder.name}"
    outside.mkdir()
    (outside / "evil.py").write_text(_code(sentinel))
    (folder / "linked").symlink_to(outside)
    return "may hold code or a pickle"


def unknown_module(folder, sentinel):
    # A module on the import path, whose code would run when it is imported.
    (folder.parent / "evil.py").write_text(_code(sentinel))
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]))
    return "the module evil.Evil is not one of"


def unlisted_module(folder, sentinel):
    kind = "sentence_transformers.models.Router"
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": kind}]))
    return "Router is not one of"


def disguised_module(folder, sentinel):
    (folder.parent / "evil.py").write_text(_code(sentinel))
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Transformer"}]))
    return "the module evil.Transformer is not one of"


def path_out_of_the_folder(folder, sentinel):
    kind = "sentence_transformers.models.Pooling"
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "../x", "type": kind}]))
    return "leads out of the folder"


def activation(folder, sentinel):
    (folder / "2_Dense").mkdir(exist_ok=True)
    (folder / "2_Dense" / "config.json").write_text(json.dumps({"activation_function": "torch.hub.load"}))
    return "the activation torch.hub.load is not one of"


def kernel_of_the_hub(folder, sentinel):
    _change(folder / "config.json", _attn_implementation="somebody/kernel")
    return "names code to run, somebody/kernel"


def adapter(folder, sentinel):
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "somebody/model"}')
    return "an adapter of a separate model"


def shards_elsewhere(folder, sentinel):
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../evil.bin"}}')
    return "expected files of safetensors next to it"


HOSTILE = [
    auto_map, python_file, tokenizer_auto_map, pickle_file, nested_pickle, linked_code, unknown_module,
    unlisted_module, disguised_module, path_out_of_the_folder, activation, kernel_of_the_hub, adapter, shards_elsewhere,
]  # fmt: skip


@pytest.mark.parametrize("attack", HOSTILE, ids=lambda attack: attack.__name__)
def test_hostile_folders_are_refused_and_nothing_runs(attack, tmp_path, monkeypatch):
    folder, sentinel = static_folder(tmp_path / "encoder"), tmp_path / "sentinel"
    expected = attack(folder, sentinel)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError) as error:
        find_text_encoder(folder)
    assert expected in str(error.value)
    assert not sentinel.exists()


def test_the_payloads_of_the_attacks_would_run(tmp_path):
    """The payloads of the attacks do run if they are loaded, without which the test above would prove nothing."""
    sentinel = tmp_path / "sentinel"
    pickle.loads(pickle.dumps(_Touch(sentinel)))
    assert sentinel.is_dir()
    sentinel.rmdir()
    exec(_code(sentinel), {})
    assert sentinel.is_dir()


@pytest.mark.parametrize("attack", [auto_map, python_file, pickle_file, unknown_module], ids=lambda a: a.__name__)
def test_commands_refuse_hostile_folders_in_one_line(attack, tmp_path):
    plain = transformer_folder(tmp_path / "encoder")
    sentinel = tmp_path / "sentinel"
    expected = attack(plain, sentinel)
    table = write(tmp_path / "t.gz", table_lines(30))
    outcome = run_outside("annotate", table, "--encoder", plain, PYTHONPATH=str(tmp_path))
    assert outcome.code == 1
    assert expected in outcome.message
    assert not sentinel.exists()
    assert not list(tmp_path.glob("*vectors*"))


def test_good_folders_pass(tmp_path):
    plain = transformer_folder(tmp_path / "plain")
    for folder in (plain, sentence_folder(tmp_path / "sentence", plain), static_folder(tmp_path / "static")):
        assert checked_folder(folder) == folder


def test_tokens_are_not_settings(tmp_path):
    folder = static_folder(tmp_path / "encoder", ["auto_map", "trust_remote_code"], vectors=__import__("numpy").eye(2))
    assert checked_folder(folder) == folder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such folder; an encoder is a folder on this machine, and nothing is downloaded"),
        (lambda path: path.write_text("x"), "is a file; an encoder is a folder"),
    ],
)
def test_paths_that_are_not_folders_are_refused(make, message, tmp_path):
    make(tmp_path / "sentence-transformers")
    with pytest.raises(ModelError) as error:
        checked_folder(tmp_path / "sentence-transformers")
    assert message in str(error.value)


def test_settings_that_are_not_json_are_refused(tmp_path):
    folder = static_folder(tmp_path / "encoder")
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match="not JSON"):
        checked_folder(folder)


def test_the_identity_depends_on_relevant_content_only(tmp_path):
    first, second = static_folder(tmp_path / "one"), static_folder(tmp_path / "other")
    assert folder_identity(first) == folder_identity(second)
    (second / "README.md").write_text("says nothing about vectors")
    assert folder_identity(first) == folder_identity(second)
    _change(second / "config.json", normalize=False)
    assert folder_identity(first) != folder_identity(second)


def test_finding_an_encoder_imports_no_library(tmp_path):
    plain = transformer_folder(tmp_path / "plain")
    code = (
        "import sys; from phrasetool.text_encoders.encoders import find_text_encoder; "
        "find_text_encoder(sys.argv[1]); sys.exit(bool({'torch', 'transformers', 'tokenizers'} & set(sys.modules)))"
    )
    outcome = subprocess.run([sys.executable, "-c", code, plain], env=clean_environment(), timeout=120, check=False)
    assert outcome.returncode == 0


def test_libraries_are_configured_to_work_offline(monkeypatch):
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "0")
    go_offline()
    assert os.environ["HF_HUB_OFFLINE"] == os.environ["TRANSFORMERS_OFFLINE"] == "1"
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
