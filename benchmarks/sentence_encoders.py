"""External word vectors and sentence encoders: accuracy on held-out pairs, and time of first and later runs.

Nothing is downloaded: stand-ins for external encoders are trained here on Multi30k German-English, with the reference
run's forced-decoding pairs, 2,000 of which are held out.  Each true target is ranked among 1,000 held-out targets.

* Word vectors: word2vec with 300 dimensions on each side of the bitext separately; the source is mapped to the target's
  space by the best orthogonal matrix for training pairs of single words (Procrustes).  They are measured as a model
  folder (`--encoder mean`, identity and learnt), and as a static model with a vector for each word.
* A BERT of two layers, trained contrastively on the training pairs; as a folder of transformers and as one of
  sentence-transformers.

Cosines are used unchanged (raw), centred, with the margin alone (CSLS), and with both.  Speed is measured on the
reference table of 1.1 million entries: the first and later runs of `prune --encoder`, compared with `prune --scores`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import COMMAND, ROOT, WORK, alternate, reference, report, run, summary
from objectives import split

from moses_compat.lines.fields import phrase_text
from phrasetool.text_encoders.encoders import find_text_encoder
from phrasetool.text_encoders.margins import NORMALISATIONS, mean_direction, nearness, prepared, sample_rows, unit_rows

FOLDER = WORK / "sentence-encoders"
RESULTS = ROOT / "benchmarks" / "results" / "sentence_encoders.json"
DIMENSION, LOT = 300, 1000
BAR = 2.0
# Settings of the BERT.
UNITS, LAYERS, HEADS, TEMPERATURE, EPOCHS, BATCH = 128, 2, 4, 0.05, 2, 256


def pairs(path: str) -> list[tuple[str, str]]:
    """Read the texts of both sides of a file of pairs."""
    rows = []
    for line in Path(path).read_bytes().splitlines():
        source, target = line.split(b" ||| ")[:2]
        rows.append((phrase_text(source), phrase_text(target)))
    return rows


def sentences(side: str) -> Iterator[list[bytes]]:
    with gzip.open(reference().parent / f"train.{side}.gz") as file:
        for line in file:
            yield phrase_text(line).encode().split()


def word_vectors(side: str) -> dict[str, np.ndarray]:
    """Train word2vec.  With the default of five passes, too few for this text, accuracy@1 is one in fifty."""
    from gensim.models import Word2Vec

    text = [[word.decode() for word in sentence] for sentence in sentences(side)]
    model = Word2Vec(text, vector_size=DIMENSION, sg=1, min_count=1, workers=1, seed=1, epochs=15, sample=1e-3)
    return {word: model.wv[word] for word in model.wv.index_to_key}


def joined_vectors(train: list[tuple[str, str]]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return unit word vectors of both sides in one space, trained once."""
    stored = FOLDER / "joined.npz"
    if not stored.is_file():
        sides = []
        for side in ("de", "en"):
            known = word_vectors(side)
            matrix = np.stack(list(known.values()))
            matrix -= matrix.mean(0)
            matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
            sides.append((list(known), matrix))
        rows = [{word: row for row, word in enumerate(words)} for words, _ in sides]
        single = [(rows[0][s], rows[1][t]) for s, t in train if s in rows[0] and t in rows[1]]
        source, target = (sides[i][1][[pair[i] for pair in single]] for i in range(2))
        left, _, right = np.linalg.svd(source.T.astype(np.float64) @ target)
        sides[0] = sides[0][0], (sides[0][1] @ (left @ right)).astype(np.float32)
        np.savez(stored, a=np.array(sides[0][0]), b=sides[0][1], c=np.array(sides[1][0]), d=sides[1][1])
    vectors = np.load(stored)
    return dict(zip(vectors["a"].tolist(), vectors["b"], strict=True)), dict(
        zip(vectors["c"].tolist(), vectors["d"], strict=True)
    )


def static_folder(vectors: dict[str, np.ndarray], name: str) -> str:
    """Write a static model with a vector for each word; return its folder."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = {"[UNK]": 0, **{word: row for row, word in enumerate(vectors, 1)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(
        {"embeddings": np.stack([np.zeros(DIMENSION, np.float32), *vectors.values()])}, folder / "model.safetensors"
    )
    (folder / "config.json").write_text('{"model_type": "model2vec", "normalize": true}')
    return str(folder)


def vector_file(vectors: dict[str, np.ndarray], name: str) -> str:
    path = FOLDER / name
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{len(vectors)} {DIMENSION}\n")
        for word, vector in vectors.items():
            file.write(f"{word} {' '.join(f'{value:.6g}' for value in vector)}\n")
    return str(path)


def transformer_folders(train: list[tuple[str, str]]) -> tuple[str, str]:
    """Train a small BERT contrastively; return its folders for transformers and for sentence-transformers."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from torch.nn import functional
    from transformers import BertConfig, BertModel

    plain, sentence = FOLDER / "transformer", FOLDER / "sentence"
    if (sentence / "modules.json").is_file():
        return str(plain), str(sentence)
    torch.manual_seed(1)
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    texts = (" ".join(pair) for pair in train)
    tokenizer.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=12_000, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=UNITS, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=2 * UNITS, max_position_embeddings=64, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    tokenizer.enable_padding()
    rng = np.random.default_rng(1)

    def encode(texts: list[str]) -> Any:
        batch = tokenizer.encode_batch(texts)
        ids, mask = (torch.tensor([getattr(e, name) for e in batch]) for name in ("ids", "attention_mask"))
        hidden = model(input_ids=ids, attention_mask=mask)[0] * mask.unsqueeze(2)
        return functional.normalize(hidden.sum(1) / mask.sum(1, keepdim=True))

    for _ in range(EPOCHS):
        # Batches of pairs of about equal length avoid padding.
        order = rng.permutation(len(train))
        order = order[np.argsort([len(train[i][0]) // 8 for i in order], kind="stable")]
        batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
        for number in rng.permutation(len(batches)):
            source, target = (encode([train[i][side] for i in batches[number]]) for side in range(2))
            scores = source @ target.T / TEMPERATURE
            targets = torch.arange(len(scores))
            loss = functional.cross_entropy(scores, targets) + functional.cross_entropy(scores.T, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    tokenizer.no_padding()
    model.eval().save_pretrained(plain)
    tokenizer.save(str(plain / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]",
                "cls_token": "[CLS]", "sep_token": "[SEP]", "model_max_length": 64}  # fmt: skip
    (plain / "tokenizer_config.json").write_text(json.dumps(settings))
    parts = [modules.Transformer(str(plain)), modules.Pooling(UNITS, "mean"), modules.Normalize()]
    SentenceTransformer(modules=parts, device="cpu").save(str(sentence))
    return str(plain), str(sentence)


def accuracy(source: np.ndarray, target: np.ndarray, names: tuple[list[str], list[str]]) -> float:
    """Return the share of sources whose true target is the best of its set; identical targets also count as true."""
    correct = 0
    for first in range(0, len(source), LOT):
        lot = slice(first, first + LOT)
        scores = source[lot] @ target[lot].T
        texts = np.array(names[1][lot])
        differs = texts[:, None] != texts[None, :]
        correct += int((((scores >= scores.diagonal()[:, None]) & differs).sum(1) == 0).sum())
    return round(correct / len(source), 4)


def normalised_accuracies(
    folders: tuple[str, str], train: list[tuple[str, str]], held_out: list[tuple[str, str]]
) -> dict[str, float]:
    """Return accuracy@1 of an encoder with each normalisation, by means and neighbours of the training phrases."""
    encoders = [find_text_encoder(folder).load() for folder in folders]

    def vectors(texts: list[str], side: int) -> np.ndarray:
        results = [
            encoders[side].encode(texts[i : i + 256], ("source", "target")[side]) for i in range(0, len(texts), 256)
        ]
        return unit_rows(np.concatenate(results)).astype(np.float16)

    training_vectors = [
        vectors(sorted({pair[side] for pair in train}, key=lambda text: (len(text), text)), side) for side in range(2)
    ]
    held_out_vectors = [vectors([pair[side] for pair in held_out], side) for side in range(2)]
    names = [pair[0] for pair in held_out], [pair[1] for pair in held_out]
    results = {}
    for normalisation in NORMALISATIONS.values():
        centres = [mean_direction(rows) if normalisation.centred else None for rows in training_vectors]
        near, rows = (
            [np.concatenate(list(prepared(part, centre))) for part, centre in zip(parts, centres, strict=True)]
            for parts in (training_vectors, held_out_vectors)
        )
        s, t = (part.astype(np.float32) for part in rows)
        if normalisation.margin:
            # 2 cos - r(s) - r(t), as a product of longer vectors.
            reached = [nearness(rows[side], sample_rows(near[1 - side]), 1)[:, None] for side in range(2)]
            ones = [np.ones_like(r) for r in reached]
            s, t = np.hstack([2 * s, -reached[0], ones[0]]), np.hstack([t, ones[1], -reached[1]])
        results[normalisation.name] = accuracy(s, t, names)
    return results


def model_accuracy(train: str, held_out: str, files: tuple[str, str], changes: list[str]) -> dict[str, float]:
    """Return accuracy@1 of a model of `train --architecture mean`."""
    model = str(FOLDER / "mean")
    vectors = ["--source-vectors", files[0], "--target-vectors", files[1]]
    # With `identity`, the vocabulary covers both files, as the word vectors do.
    both = FOLDER / "both.txt"
    both.write_bytes(
        Path(train).read_bytes() + Path(held_out).read_bytes() if "identity" in changes else Path(train).read_bytes()
    )
    subprocess.run(
        [COMMAND, "train", str(both), "--architecture", "mean", *vectors, *changes, "-o", model, "--overwrite", "-q"],
        check=True,
    )
    process = subprocess.run(
        [COMMAND, "evaluate-model", held_out, "-m", model, "--json"], check=True, capture_output=True
    )
    return {"centred": round(json.loads(process.stdout)["accuracy_at_1"], 4)}


def middle(entries: int) -> tuple[str, int]:
    """Return a file with entries from the middle of the reference table (all for 0), and their number."""
    table = reference() / "phrase-table.gz"
    with gzip.open(table) as file:
        if not entries:
            return str(table), sum(1 for _ in file)
        lines = file.read().splitlines(keepends=True)
    first = max(0, (len(lines) - entries) // 2)
    part = lines[first : first + entries]
    path = FOLDER / "middle.gz"
    path.write_bytes(gzip.compress(b"".join(part), 6))
    return str(path), len(part)


def speed(folder: str, rounds: int, entries: int) -> dict[str, Any]:
    """Return the seconds of the first run, and of later runs compared with --scores."""
    (table, count), store, scores = middle(entries), FOLDER / "vectors", FOLDER / "scores.parquet"
    shutil.rmtree(store, ignore_errors=True)
    scores.unlink(missing_ok=True)
    prune = [COMMAND, "prune", table, "--threshold", "0.0", "-o", str(FOLDER / "pruned.gz"), "-q"]
    encoder = [*prune, "--encoder", folder, "--encoder-store", str(store)]
    first = run([*encoder, "--similarities", str(scores)])[0]
    times = alternate({"second run": encoder, "--scores": [*prune, "--similarities", str(scores)]}, rounds)
    ratios = [a / b for a, b in zip(times["second run"], times["--scores"], strict=True)]
    return {
        "entries": count, "first_run": round(first, 1),
        **{name: summary(values) for name, values in times.items()},
        "ratio": summary(ratios), "bar": BAR, "passed": summary(ratios)["median"] <= BAR,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of timing; 0: speeds stay as they were measured before")
    parser.add_argument("--no-transformer", action="store_true", help="leave out the BERT; then nothing is kept")
    parser.add_argument("--entries", type=int, default=0, help="time on N entries of the table; 0: on all")
    options = parser.parse_args()
    if options.entries < 0:
        parser.error(f"--entries is {options.entries}, expected 1 or more, or 0 for all")
    FOLDER.mkdir(parents=True, exist_ok=True)
    paths = split("multi30k-de-en")
    train, held_out = (pairs(path) for path in paths)
    source, target = joined_vectors(train)
    files = vector_file(source, "source.vec"), vector_file(target, "target.vec")
    static = static_folder(source, "static-source"), static_folder(target, "static-target")
    both = static_folder({**target, **source}, "static")
    results: dict[str, Any] = {
        "mean, identity": model_accuracy(*paths, files, ["--transformation", "identity"]),
        "mean, learnt": model_accuracy(*paths, files, []),
        "static, a folder a side": normalised_accuracies(static, train, held_out),
        "static, one folder": normalised_accuracies((both, both), train, held_out),
    }
    print(json.dumps(results, indent=1))
    if not options.no_transformer:
        for name, folder in zip(("transformers", "sentence-transformers"), transformer_folders(train), strict=True):
            results[name] = normalised_accuracies((folder, folder), train, held_out)
    figures: dict[str, Any] = {"pairs": len(train), "held_out": len(held_out), "accuracy_at_1": results}
    before = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    figures["speed"] = speed(both, options.rounds, options.entries) if options.rounds else before.get("speed", {})
    if options.no_transformer:
        print(json.dumps(figures, indent=1))
    else:
        report("sentence_encoders", figures)


if __name__ == "__main__":
    main()
