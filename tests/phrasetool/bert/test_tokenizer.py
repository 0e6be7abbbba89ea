import pytest

from phrasetool.bert.settings import MaskedLmSettings
from phrasetool.bert.tokenizer import SPECIAL, UNKNOWN_PIECE, train_word_pieces

pytest.importorskip("tokenizers", reason="the extra `encoders` is not installed")
LINES = [
    "我们 喜欢 小狗 。",
    "他们 喜欢 小猫 。",
    "We like small dogs .",
    "They like small cats .",
    "私 は 犬 が 好き で す 。",
] * 3


def pieces(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).tokens


def test_words_of_segmented_text_are_cut_into_pieces_and_nothing_is_unknown():
    tokenizer = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=400))
    assert [tokenizer.token_to_id(token) for token in SPECIAL] == [0, 1, 2, 3, 4]
    assert pieces(tokenizer, "喜欢 small") == ["喜欢", "small"]
    # Words that are new, text without spaces, and case.
    for text in ("我们喜欢小狗。", "狗们", "catdog", "dogWe", "犬好き"):
        found = pieces(tokenizer, text)
        assert "[UNK]" not in found
        assert "".join(piece.removeprefix("##") for piece in found) == text
    assert pieces(tokenizer, "ß") == ["[UNK]"]
    assert pieces(tokenizer, "Dogs") != pieces(tokenizer, "dogs")


def test_chinese_characters_by_themselves():
    tokenizer = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=400, han="characters"))
    assert pieces(tokenizer, "喜欢 小狗") == pieces(tokenizer, "喜欢小狗") == ["喜", "欢", "小", "狗"]
    assert "##欢" not in tokenizer.get_vocab()
    assert pieces(tokenizer, "small") == ["small"]


def test_special_tokens_stand_around_texts_and_between_those_of_a_pair():
    tokenizer = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=400))
    encoded = tokenizer.encode("小狗", "small dogs")
    assert encoded.tokens[0] == "[CLS]"
    assert encoded.tokens.count("[SEP]") == 2
    place = encoded.tokens.index("[SEP]")
    assert encoded.type_ids == [0] * (place + 1) + [1] * (len(encoded.tokens) - place - 1)


def test_the_same_text_gives_the_same_pieces():
    settings = MaskedLmSettings(vocabulary_size=80)
    found = {train_word_pieces(LINES, settings).to_str() for _ in range(5)}
    assert len(found) == 1


def test_the_size_is_kept_and_characters_take_half_of_it_at_most():
    for size in (32, 60, 400):
        tokenizer = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=size))
        assert tokenizer.get_vocab_size() <= size
        single = [p for p in tokenizer.get_vocab() if p not in SPECIAL and len(p.removeprefix("##")) == 1]
        assert len(single) <= size // 2
    small = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=32))
    assert UNKNOWN_PIECE in small.encode("They").ids


def test_characters_seen_seldom_are_no_pieces():
    lines = [*LINES, "Ω"]
    assert train_word_pieces(lines, MaskedLmSettings()).token_to_id("Ω") is None
    assert train_word_pieces(lines, MaskedLmSettings(min_count=1)).token_to_id("Ω") is not None


def test_text_of_nothing():
    for lines in ([], ["\u200b", "\u200b"]):
        with pytest.raises(ValueError, match="no text to learn pieces from"):
            train_word_pieces(lines, MaskedLmSettings())
