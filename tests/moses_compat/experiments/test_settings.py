"""What a configuration asks to be measured."""

from phrasetool.pruning.measures import COUNTS, FORCED, LOSSES, SIMILARITIES, SMOOTHED, USES
from tests.moses_compat.experiments.written_configs import GOOD, config_of


def test_what_forced_decoding_is_needed_for(folder):
    config = config_of(folder, GOOD)
    assert not config.counts_uses
    config = config_of(folder, GOOD.replace('"random"', '"composition+usage"'))
    assert config.counts_uses
    assert config.needs == {SIMILARITIES, COUNTS, LOSSES, USES}
    config = config_of(folder, GOOD + '[annotate]\ncolumns = ["forced + semantic"]\n')
    assert config.counts_uses
    assert config.annotate.columns == ("forced+semantic",)
    assert config.needs == {SIMILARITIES, COUNTS, LOSSES, FORCED}
    pruned = '[annotate]\ncolumns = []\nsizes = [1, 0.1]\nmethod = "composition+usage"\n'
    assert config_of(folder, GOOD + pruned).counts_uses


def test_smoothed_columns_need_no_bitext_and_no_model(folder):
    config = config_of(folder, GOOD.replace('"random"', '"count"') + '[annotate]\ncolumns = ["kneser-ney+forced"]\n')
    assert config.needs >= {SMOOTHED, FORCED}
    only = config_of(folder, GOOD[: GOOD.index("[prune]")] + '[annotate]\ncolumns = "kneser-ney"\n')
    assert only.needs == {SMOOTHED}
    assert not only.encodes
    assert not only.counts_uses
