import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.bert.data import (
    BEGIN,
    END,
    MASK,
    PAD,
    SPECIAL,
    UNKNOWN_PIECE,
    Batches,
    PieceTexts,
    TextLines,
    held_out_lines,
    joined_batch,
    mask_pieces,
    piece_texts,
    single_batch,
    train_word_pieces,
)
from phrasetool.bert.settings import MaskedLmSettings
from phrasetool.phrases import Phrases

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
    # New words, text without spaces, and upper case.
    for text in ("我们喜欢小狗。", "狗们", "catdog", "dogWe", "犬好き"):
        result = pieces(tokenizer, text)
        assert "[UNK]" not in result
        assert "".join(piece.removeprefix("##") for piece in result) == text
    assert pieces(tokenizer, "ß") == ["[UNK]"]
    assert pieces(tokenizer, "Dogs") != pieces(tokenizer, "dogs")


def test_chinese_characters_as_separate_pieces():
    tokenizer = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=400, han="characters"))
    assert pieces(tokenizer, "喜欢 小狗") == pieces(tokenizer, "喜欢小狗") == ["喜", "欢", "小", "狗"]
    assert "##欢" not in tokenizer.get_vocab()
    assert pieces(tokenizer, "small") == ["small"]


def test_special_tokens_stand_around_texts_and_between_those_of_a_pair():
    tokenizer = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=400))
    encoded = tokenizer.encode("小狗", "small dogs")
    assert encoded.tokens[0] == "[CLS]"
    assert encoded.tokens.count("[SEP]") == 2
    separator = encoded.tokens.index("[SEP]")
    assert encoded.type_ids == [0] * (separator + 1) + [1] * (len(encoded.tokens) - separator - 1)


def test_the_same_text_gives_the_same_pieces():
    settings = MaskedLmSettings(vocabulary_size=80)
    result = {train_word_pieces(LINES, settings).to_str() for _ in range(5)}
    assert len(result) == 1


def test_the_vocabulary_size_is_respected_and_at_most_half_of_it_are_characters():
    for size in (32, 60, 400):
        tokenizer = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=size))
        assert tokenizer.get_vocab_size() <= size
        single = [p for p in tokenizer.get_vocab() if p not in SPECIAL and len(p.removeprefix("##")) == 1]
        assert len(single) <= size // 2
    small = train_word_pieces(LINES, MaskedLmSettings(vocabulary_size=32))
    assert UNKNOWN_PIECE in small.encode("They").ids


def test_rare_characters_are_not_pieces():
    lines = [*LINES, "Ω"]
    assert train_word_pieces(lines, MaskedLmSettings()).token_to_id("Ω") is None
    assert train_word_pieces(lines, MaskedLmSettings(min_count=1)).token_to_id("Ω") is not None


def test_empty_text_is_refused():
    for lines in ([], ["\u200b", "\u200b"]):
        with pytest.raises(ValueError, match="no text to learn subword units from"):
            train_word_pieces(lines, MaskedLmSettings())


pytest.importorskip("tokenizers", reason="the extra `encoders` is not installed")


def random_data(seed=1, texts=90, pairs=40, positions=30):
    rng = np.random.default_rng(seed)

    def some(count, longest):
        return Phrases.from_lists([rng.integers(5, 99, rng.integers(1, longest)).tolist() for _ in range(count)])

    return PieceTexts(some(texts, 28), some(pairs, 13), some(pairs, 13), positions, 0)


def test_pairs_are_joined_with_segments():
    batch = joined_batch(Phrases.from_lists([[7, 8], [9]]), Phrases.from_lists([[10], [11, 12, 13]]))
    assert batch.ids.tolist() == [
        [BEGIN, 7, 8, END, 10, END, PAD],
        [BEGIN, 9, END, 11, 12, 13, END],
    ]
    assert batch.segments.tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1]]
    assert batch.attended.tolist() == [[True] * 6 + [False], [True] * 7]
    single = single_batch(Phrases.from_lists([[7, 8], [9]]))
    assert single.ids.tolist() == [[BEGIN, 7, 8, END], [BEGIN, 9, END, PAD]]
    assert not single.segments.any()
    assert single.attended.sum() == 7


def test_joined_pairs_are_those_of_the_tokenizer():
    lines = ["a dog sees the cat", "the cat sees a dog", "le chien voit", "le chat voit le chien"] * 2
    tokenizer = train_word_pieces(lines, MaskedLmSettings())
    data = piece_texts(TextLines(lines[:2], lines[2:4]), tokenizer, 128)
    batch = joined_batch(data.sources, data.targets)
    for row in range(2):
        expected = tokenizer.encode(lines[row], lines[row + 2])
        assert batch.ids[row, batch.attended[row]].tolist() == expected.ids
        assert batch.segments[row, batch.attended[row]].tolist() == expected.type_ids


def test_an_epoch_has_each_text_once_in_batches_of_limited_size():
    data = random_data()
    batches = Batches(data, 100)
    rng = np.random.default_rng(2)
    drawn = batches.draw(rng)
    assert len(drawn) == len(batches)
    for kind, count in (("text", 90), ("pair", 40)):
        assert sorted(np.concatenate([rows for k, rows in drawn if k == kind]).tolist()) == list(range(count))
    epoch = [batches.batch(kind, rows, rng) for kind, rows in drawn]
    assert max(batch.ids.size for batch in epoch) <= 100
    assert sum(int(batch.attended.sum()) for batch in epoch) == data.tokens
    # Texts are grouped by length, so there is little padding.
    assert data.tokens > 0.8 * sum(batch.ids.size for batch in epoch)
    assert [rows.tolist() for _, rows in batches.draw(rng)] != [rows.tolist() for _, rows in drawn]


def test_texts_and_pairs_alternate():
    rng = np.random.default_rng(2)
    phrases = Phrases.from_lists([[7] * 10] * 50)
    kinds = [kind for kind, _ in Batches(PieceTexts(phrases, phrases, phrases, 30, 0), 23).draw(rng)]
    assert kinds == ["text", "pair"] * 50
    texts = PieceTexts(phrases, Phrases.from_lists([]), Phrases.from_lists([]), 30, 0)
    assert {kind for kind, _ in Batches(texts, 24).draw(rng)} == {"text"}


def test_either_side_comes_first_and_partners_stay_together():
    sources = Phrases.from_lists([[10 + i] for i in range(60)])
    targets = Phrases.from_lists([[100 + i] for i in range(60)])
    batches = Batches(PieceTexts(sources, sources, targets, 30, 0), 600)
    ids = batches.batch("pair", np.arange(60), np.random.default_rng(1)).ids
    assert (np.abs(ids[:, 1] - ids[:, 3]) == 90).all()
    assert 10 < (ids[:, 1] < 100).sum() < 50


def test_long_texts_are_cut_and_counted_and_empty_ones_left_out():
    lines = ["a " * 20, "a b", "a " * 9, "\u200b"]
    tokenizer = train_word_pieces(["a b"] * 4, MaskedLmSettings())
    data = piece_texts(TextLines(lines, ["b", "b " * 20, "b " * 9, "b"]), tokenizer, 12)
    assert data.texts.lengths.tolist() == [10, 2, 9, 1, 10, 9, 1]
    assert data.sources.lengths.tolist() == [8, 2, 4]
    assert data.targets.lengths.tolist() == [1, 7, 5]
    # Two texts and all three pairs are cut.
    assert data.cut == 5
    changed = piece_texts(TextLines(lines, ["b", "b " * 20, "b " * 9, "a"]), tokenizer, 12)
    assert changed.fingerprint != data.fingerprint


def test_one_source_in_twenty_is_held_out_with_all_its_translations():
    sources = [f"line {i % 60}" for i in range(180)]
    lines = TextLines(sources, [f"translation {i}" for i in range(180)], ["more"])
    kept, held = held_out_lines(lines, 1)
    assert len(set(held.sources)) == 3
    assert len(held.sources) == 9
    assert not set(held.sources) & set(kept.sources)
    assert sorted([*kept.targets, *held.targets]) == sorted(lines.targets)
    assert (kept.others, list(held.others)) == (["more"], [])
    assert held_out_lines(lines, 2)[1].sources != held.sources
    with pytest.raises(ValueError, match="at least two different lines"):
        held_out_lines(TextLines(["one"] * 5), 1)


PIECES = 1000


def batch(rng, rows, width):
    """Return the ids of texts of different lengths between special tokens, with some unknown pieces."""
    ids = rng.integers(1, PIECES, (rows, width))
    ids[:, 0] = BEGIN
    for row, length in enumerate(rng.integers(2, width + 1, rows)):
        ids[row, length - 1], ids[row, length:] = END, PAD
    return ids


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(2, 12), st.floats(0.01, 0.99))
def test_special_tokens_are_never_chosen_and_never_drawn(seed, rows, width, share):
    rng = np.random.default_rng(seed)
    ids = batch(rng, rows, width)
    masked = mask_pieces(ids, share, PIECES, rng)
    assert not masked.chosen[ids < len(SPECIAL)].any()
    assert (masked.ids[~masked.chosen] == ids[~masked.chosen]).all()
    assert masked.targets.tolist() == ids[masked.chosen].tolist()
    shown = masked.ids[masked.chosen]
    assert ((shown == MASK) | (shown >= len(SPECIAL))).all()
    assert (shown < PIECES).all()
    assert masked.chosen.any() == (ids >= len(SPECIAL)).any()


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_shares_of_chosen_masked_and_replaced_pieces(share):
    rng = np.random.default_rng(1)
    ids = batch(rng, 4000, 60)
    masked = mask_pieces(ids, share, PIECES, rng)
    assert masked.chosen.sum() / (ids >= len(SPECIAL)).sum() == pytest.approx(share, rel=0.03)
    shown = masked.ids[masked.chosen]
    assert np.mean(shown == MASK) == pytest.approx(0.8, abs=0.01)
    assert np.mean(shown == masked.targets) == pytest.approx(0.1, abs=0.01)
    drawn = shown[(shown != MASK) & (shown != masked.targets)]
    assert len(drawn) / len(shown) == pytest.approx(0.1, abs=0.01)
    # All pieces are drawn with the same probability.
    assert drawn.mean() == pytest.approx((PIECES + len(SPECIAL)) / 2, rel=0.05)


def test_masking_is_determined_by_the_seed():
    ids = batch(np.random.default_rng(1), 20, 30)
    first, repeated, other_seed = (mask_pieces(ids, 0.15, PIECES, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert (first.ids == repeated.ids).all()
    assert (first.ids != other_seed.ids).any()


def test_at_least_one_piece_of_a_text_is_chosen():
    ids = np.array([[BEGIN, 7, END]])
    for seed in range(20):
        assert mask_pieces(ids, 0.01, PIECES, np.random.default_rng(seed)).targets.tolist() == [7]
    assert not len(mask_pieces(ids[:, ::2], 0.5, PIECES, np.random.default_rng(1)).targets)
