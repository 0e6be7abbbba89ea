import shutil

import numpy as np
import pytest
import torch

from phrasetool.errors import ModelError
from phrasetool.pair_classifier.inputs import PretrainedInputs
from phrasetool.phrases import Phrases
from tests.parallel_models import WORDS, bert_folder

TEXTS = Phrases.from_lists([[3, 1, 2], [5], [0, 0, 4, 6, 7, 9]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return bert_folder(tmp_path_factory.mktemp("encoders") / "bert")


def read(inputs, texts=TEXTS, words=WORDS[0]):
    lexicon = inputs.lexicon(0, words)
    return inputs.vectors(0, texts, lexicon)


def gpt_folder(folder):
    """Save a GPT, which is not marked as a decoder, with the tokenizer of a BERT; return the folder."""
    transformers = pytest.importorskip("transformers", reason="the extra `encoders` is not installed")
    bert_folder(folder)
    sizes = {"vocab_size": 44, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
    transformers.GPT2Model(transformers.GPT2Config(**sizes)).save_pretrained(folder)
    return folder


def test_contextual_vectors_are_those_of_transformers(folder):
    from transformers import AutoModel, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    vectors, counts = read(PretrainedInputs(folder, "contextual", False))
    assert counts.tolist() == [3, 1, 6]
    expected = []
    for text in TEXTS:
        inputs = tokenizer(" ".join(WORDS[0][i].decode() for i in text), return_tensors="pt")
        with torch.no_grad():
            expected.append(model(input_ids=inputs["input_ids"])[0][0, 1:-1])
    assert np.allclose(vectors.numpy(), torch.cat(expected).numpy(), atol=1e-5)


def test_static_vectors_are_rows_of_its_table(folder):
    inputs = PretrainedInputs(folder, "static", False)
    vectors, counts = read(inputs)
    table = inputs.encoder.get_input_embeddings().weight
    assert counts.tolist() == [3, 1, 6]
    assert torch.equal(vectors, table[[4 + i for i in TEXTS.words.tolist()]])


@pytest.mark.parametrize("layer", ["static", "contextual"])
@pytest.mark.parametrize("tuned", [True, False])
def test_only_tuned_encoders_have_gradients(folder, layer, tuned):
    inputs = PretrainedInputs(folder, layer, tuned)
    # The dropout of the encoder itself is never active.
    inputs.train()
    assert torch.equal(read(inputs)[0], read(inputs)[0])
    vectors, _ = read(inputs)
    assert vectors.requires_grad == tuned
    if tuned:
        vectors.sum().backward()
        learnt = {name for name, value in inputs.encoder.named_parameters() if value.grad is not None}
        assert learnt >= {"embeddings.word_embeddings.weight"}
        assert (len(learnt) == 1) == (layer == "static")


def test_low_precision_is_used_only_while_layers_are_trained(folder):
    fine, coarse = (PretrainedInputs(folder, "contextual", True, precision) for precision in ("float32", "bfloat16"))
    with torch.no_grad():
        assert torch.equal(read(fine)[0], read(coarse)[0])
    vectors = [read(inputs)[0] for inputs in (fine, coarse)]
    assert vectors[1].dtype == torch.float32
    deviation = (vectors[0] - vectors[1]).abs().max().item()
    assert 1e-6 < deviation < 0.01
    gradients = []
    for inputs, encoded in zip((fine, coarse), vectors, strict=True):
        encoded.square().sum().backward()
        gradients.append(
            torch.cat([value.grad.flatten() for value in inputs.encoder.parameters() if value.grad is not None])
        )
    assert torch.nn.functional.cosine_similarity(*gradients, dim=0) > 0.99


def test_vectors_of_many_texts_are_in_their_order(folder):
    """Texts of similar length are encoded together, which does not change the order of the vectors."""
    rng = np.random.default_rng(1)
    texts = Phrases.from_lists([rng.integers(0, 8, rng.integers(1, 9)).tolist() for _ in range(150)])
    inputs = PretrainedInputs(folder, "contextual", False)
    together, counts = read(inputs, texts)
    separate = [read(inputs, texts.select(np.array([row])))[0] for row in range(len(texts))]
    assert counts.tolist() == [len(vectors) for vectors in separate]
    assert torch.allclose(together, torch.cat(separate), atol=1e-5)


def test_kept_vectors_are_those_computed_each_time(folder, monkeypatch):
    rng = np.random.default_rng(2)
    texts = Phrases.from_lists([rng.integers(0, 8, rng.integers(1, 9)).tolist() for _ in range(200)])
    new_texts = Phrases.from_lists([[0, 1, 0, 1, 0], [9]])
    plain, keeping = (PretrainedInputs(folder, "contextual", False) for _ in range(2))
    lexicon = keeping.lexicon(0, WORDS[0])
    keeping.keep(0, texts, lexicon)
    recorded = []
    read_now = keeping._read
    monkeypatch.setattr(
        keeping, "_read", lambda pieces, device: recorded.append(len(pieces)) or read_now(pieces, device)
    )
    first = texts.select(rng.permutation(200)[:70])
    for batch in (first, new_texts, texts, first):
        result, counts = keeping.vectors(0, batch, lexicon)
        expected, expected_counts = read(plain, batch)
        assert counts.tolist() == expected_counts.tolist()
        assert torch.allclose(result, expected, atol=1e-5)
        assert not result.requires_grad
    # Each distinct text is encoded once, whatever was requested first, and so are the two that are not kept.
    assert sum(recorded) == len({text.tobytes() for text in texts}) + 2
    # Another lexicon has other words under the same numbers.
    swapped = keeping.lexicon(0, WORDS[0][::-1])
    assert torch.allclose(keeping.vectors(0, first, swapped)[0], read(plain, first, WORDS[0][::-1])[0], atol=1e-5)


def test_kept_vectors_do_not_depend_on_the_order_of_requests(folder):
    rng = np.random.default_rng(3)
    texts = Phrases.from_lists([rng.integers(0, 8, rng.integers(1, 9)).tolist() for _ in range(200)])
    vectors = []
    for order in (np.arange(200), np.arange(200)[::-1].copy()):
        inputs = PretrainedInputs(folder, "contextual", False)
        lexicon = inputs.lexicon(0, WORDS[0])
        inputs.keep(0, texts, lexicon)
        for row in order:
            inputs.vectors(0, texts.select(row[None]), lexicon)
        vectors.append(inputs.vectors(0, texts, lexicon)[0])
    assert torch.equal(*vectors)


def test_the_longest_texts_are_not_kept_if_memory_is_short(folder, monkeypatch):
    monkeypatch.setattr("phrasetool.pair_classifier.inputs._KEPT_BYTES", 4 * 16 * 5)
    inputs = PretrainedInputs(folder, "contextual", False)
    lexicon = inputs.lexicon(0, WORDS[0])
    inputs.keep(0, TEXTS, lexicon)
    assert [inputs._kept[0].of(text) is None for text in TEXTS] == [False, False, True]
    assert torch.allclose(inputs.vectors(0, TEXTS, lexicon)[0], read(inputs, TEXTS)[0], atol=1e-5)


def test_unknown_pieces_and_long_texts(folder):
    inputs = PretrainedInputs(folder, "contextual", False)
    words = [b"?", WORDS[0][0], "日".encode()]
    texts = Phrases.from_lists([[0], [2, 1], [0, 2], [1] * 40])
    lexicon = inputs.lexicon(1, words)
    assert inputs.known(1, texts, lexicon).tolist() == [False, True, False, True]
    # 32 positions, minus two that later encoders count differently, minus two for the special tokens.
    assert inputs.vectors(1, texts, lexicon)[1].tolist() == [1, 2, 2, 28]
    with pytest.raises(UnicodeDecodeError):
        inputs.lexicon(0, [b"\xff"])


def test_a_saved_encoder_gives_the_same_vectors(folder, tmp_path):
    inputs = PretrainedInputs(folder, "contextual", True)
    with torch.no_grad():
        inputs.encoder.get_input_embeddings().weight[5] += 1
    inputs.save(tmp_path / "new")
    loaded = PretrainedInputs(tmp_path / "new", "contextual", True)
    assert torch.equal(read(inputs)[0], read(loaded)[0])
    assert not torch.equal(read(inputs)[0], read(PretrainedInputs(folder, "contextual", True))[0])


def test_folders_that_are_refused(folder, tmp_path):
    def changed(name, change):
        copy = tmp_path / name
        shutil.copytree(folder, copy)
        change(copy)
        return copy

    cases = {
        "nothing there": (tmp_path / "none", "no such folder"),
        "no tokenizer": (changed("a", lambda copy: (copy / "tokenizer.json").unlink()), "tokenizer.json"),
        "a pickle": (changed("b", lambda copy: (copy / "pytorch_model.bin").write_bytes(b"")), "may hold code"),
        "no weights": (changed("c", lambda copy: (copy / "model.safetensors").unlink()), "safe_serialization=True"),
        "more pieces than vectors": (bert_folder(tmp_path / "d", vocab_size=20), "20 vectors for 44 tokens"),
        "a decoder": (bert_folder(tmp_path / "e", is_decoder=True), "not an encoder"),
        "another decoder, by its kind": (gpt_folder(tmp_path / "f"), "not an encoder"),
    }
    for path, message in cases.values():
        with pytest.raises(ModelError, match=message):
            PretrainedInputs(path, "contextual", False)
