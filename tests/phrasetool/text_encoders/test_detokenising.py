import pytest

from phrasetool.text_encoders.detokenising import detokeniser


@pytest.mark.parametrize(
    ("language", "tokens", "text"),
    [
        ("de", "das haus , das grün ist .", "das haus, das grün ist."),
        ("de", "( ein hund ) !", "(ein hund)!"),
        ("de", "„ ja “ , sagt er", "„ja “, sagt er"),
        ("en", "do n't you 're he 's", "don't you're he's"),
        ("de", "geht 's", "geht 's"),
        ("en", 'he says " yes " twice', 'he says "yes" twice'),
        ("en", "well @-@ known", "well-known"),
        ("fr", "l' homme d' ici", "l'homme d'ici"),
        ("en", "dogs ' tails", "dogs 'tails"),
        ("zh", "经济 发展 ， 很 好", "经济发展，很好"),
        ("zh", "用 Python 3 写 的", "用Python 3写的"),
        ("ja", "犬", "犬"),
        ("en", "", ""),
    ],
)
def test_tokens_are_put_together(language, tokens, text):
    assert detokeniser(language)(tokens) == text


@pytest.mark.parametrize("language", ["", "german", "DE", "e", "d-e"])
def test_what_is_no_language_is_refused(language):
    with pytest.raises(ValueError, match="is no language"):
        detokeniser(language)
