from hypothesis import given, settings

from phrasetool.smt.decoder.stack_search import find_spans, future_costs
from tests import naive_decoder as naive
from tests.phrasetool.smt.decoder.decoded_examples import SEEDS, close, example


@settings(max_examples=60)
@given(SEEDS)
def test_future_costs_agree_with_naive(language_models, seed):
    model, sentence, translator, ids = example(seed, language_models)
    spans = find_spans(translator.table.index, ids)
    result = future_costs(spans, translator.options)
    for i in range(len(sentence) + 1):
        for j in range(i, len(sentence) + 1):
            assert close(result[i, j], naive.future_cost(model, sentence, i, j))
