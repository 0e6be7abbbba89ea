import pytest

from phrasetool.errors import ModelError
from phrasetool.training.run import train_model
from tests.phrasetool.training.toy_language import settings, start


def test_a_checkpoint_of_other_settings_or_pairs_is_refused(pairs, tmp_path):
    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_model(pairs, settings("in-batch"), start, tmp_path, on_report=stop)
    with pytest.raises(ModelError, match="other settings"):
        train_model(pairs, settings("in-batch", seed=9), start, tmp_path, resume=True)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(ModelError, match="damaged"):
        train_model(pairs, settings("in-batch"), start, tmp_path, resume=True)
    with pytest.raises(ModelError, match="no checkpoint"):
        train_model(pairs, settings("in-batch"), start, tmp_path / "nowhere", resume=True)
