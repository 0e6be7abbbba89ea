from phrasetool.models.fit import finding
from phrasetool.syntax.syntax_fit import fit_of_syntax
from tests.syntax_models import random_syntax_model, toy_lines


def lines(count):
    return [[line.encode() for line in side] for side in toy_lines(count)]


def test_its_languages_are_known():
    fit = fit_of_syntax(random_syntax_model(), *lines(100))
    assert (fit.source_known, fit.target_known, fit.auc) == (1, 1, None)
    assert finding(fit) is None


def test_other_writing_is_not():
    sources, _ = lines(100)
    others = ["的 确 是".encode()] * 100
    fit = fit_of_syntax(random_syntax_model(), sources, others)
    assert (fit.source_known, fit.target_known) == (1, 0)
    assert "trained on other languages" in finding(fit)


def test_nothing_is_said_of_nothing():
    assert finding(fit_of_syntax(random_syntax_model(), [], [])) is None
