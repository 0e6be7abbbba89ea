import re
from itertools import pairwise

import pytest

from phrasetool.bert.settings import PRESETS, MaskedLmSettings
from tests.variants import for_each


def test_the_preset_determines_sizes_that_are_not_set():
    assert MaskedLmSettings().units == PRESETS["small"]["units"] == 256
    settings = MaskedLmSettings.from_options({"preset": "tiny", "layers": 3}, seed=5)
    assert (settings.units, settings.layers, settings.heads, settings.seed) == (32, 3, 2, 5)
    assert MaskedLmSettings(**settings.as_dict()) == settings


def test_the_learning_rate_rises_and_falls_to_zero():
    settings = MaskedLmSettings(warm_up=0.2)
    rates = [settings.rate_share(updates, 10) for updates in range(10)]
    assert rates[:2] == [0.5, 1.0]
    assert all(later < earlier for earlier, later in pairwise(rates[1:]))
    assert 0 < rates[-1] <= 1 / 9
    assert MaskedLmSettings(warm_up=0).rate_share(0, 10) == 1.0


@for_each(
    ("options", "message"),
    [
        ({"preset": "large"}, "preset is 'large', expected one of small, smaller, tiny"),
        ({"han": "radicals"}, "han is 'radicals', expected one of words, characters"),
        ({"units": 30, "heads": 4}, "units is 30, expected a multiple of the 4 heads"),
        ({"heads": -1}, "heads is -1, expected at least 0"),
        ({"positions": 7}, "positions is 7, expected from 8 to 512"),
        ({"positions": 513}, "positions is 513, expected from 8 to 512"),
        ({"vocabulary_size": 31}, "vocabulary_size is 31, expected at least 32"),
        ({"batch_tokens": 127}, "batch_tokens is 127, expected at least the 128 positions"),
        ({"mask_share": 0.0}, "mask_share is 0.0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected more than 0"),
        ({"epochs": 0}, "epochs is 0, expected at least 1"),
        ({"beam": 2}, "masked-lm has no option beam"),
    ],
)
def test_invalid_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MaskedLmSettings.from_options(options)
