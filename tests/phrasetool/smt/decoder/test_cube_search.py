from dataclasses import replace

from hypothesis import given, settings

from tests.decoder_models import (
    search_options,
)
from tests.phrasetool.smt.decoder.decoded_examples import SEEDS, close, example


@settings(max_examples=40)
@given(SEEDS)
def test_cube_search_with_room_for_all_is_stack_search(language_models, seed):
    """Longer sentences than the naive decoder can take, and n-best lists."""
    model, _, translator, ids = example(seed, language_models, longest=9)
    model = replace(model, distortion_limit=min(model.distortion_limit % 8, 3))
    lists = [
        translator.translate(ids, search_options(model, algorithm=algorithm), 20, distinct=False, factor=1000)
        for algorithm in ("stack", "cube")
    ]
    assert close(lists[0].steps.scores.tolist(), lists[1].steps.scores.tolist())
