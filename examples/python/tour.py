# %% [markdown]
# # phrasetool from Python
#
# This script works on what `make demo` leaves in `demo-output/`: a phrase table of 1,020 Chinese-English sentence
# pairs, a `moses.ini`, and a model.  Run it there, as a whole or cell by cell.

# %%
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

import phrasetool

matplotlib.use("Agg")
DEMO = Path("demo-output")
TABLE, INI = DEMO / "engine" / "phrase-table.gz", DEMO / "engine" / "moses.ini"

# %% [markdown]
# A model knows phrases of two languages.  Its vectors are arrays; two similarities say how well a pair fits.

# %%
model = phrasetool.load_model(DEMO / "model")
print(model)

vectors = model.encode(["经济 发展", "会议"], "source")
print(vectors.shape, vectors.dtype)

pairs = [("经济", "the economy"), ("经济", "the weather"), ("会议", "meeting")]
for (source, target), both in zip(pairs, model.similarity(*zip(*pairs, strict=True)), strict=True):
    print(f"{source} - {target}: {both[0]:+.2f} {both[1]:+.2f}")

# %% [markdown]
# A phrase table is a frame.  Tables that do not fit into memory come block by block (`phrasetool.table_blocks`).

# %%
table = phrasetool.read_table(TABLE)
print(table[["source", "target", "score_3", "count_joint"]].head(3).to_string())

single = (table.count_joint == 1).mean()
print(f"{len(table):,} entries, {single:.0%} of them seen once")

# %% [markdown]
# Which phrases of the table are nearest to a phrase?

# %%
candidates = table.target[table.target.str.split().str.len() <= 2].unique()
print(model.nearest("经济", candidates, 5).to_string(index=False))

# %% [markdown]
# Pruning writes a table, and says of every entry what was decided and why.

# %%
pruned = phrasetool.prune(
    TABLE, "small.gz", method="count+semantic", target_size=0.5, protect="words", model=DEMO / "model"
)
print(pruned.signature)
print(f"kept {pruned.statistics.kept:,} of {pruned.statistics.entries:,}")
print(table[~pruned.entries.keep].head(3)[["source", "target"]].to_string(index=False))

# %% [markdown]
# Annotation appends score columns; the new `moses.ini` knows them.

# %%
counts = phrasetool.annotate(
    TABLE, "annotated.gz", [DEMO / "model"], smoothing="kneser-ney", moses_ini=INI, moses_ini_out="annotated.ini"
)
print(f"{counts.entries:,} entries, {counts.scores} scores before")

# %% [markdown]
# What is lost by it?  Translate with the whole table and with half of it, and compare.

# %%
sentences = (DEMO / "engine" / "test.zh").read_text(encoding="utf-8").splitlines()
references = (DEMO / "engine" / "test.en").read_text(encoding="utf-8").splitlines()
systems = [phrasetool.decode(sentences, INI), phrasetool.decode(sentences, INI, table="small.gz")]
(bleu,) = phrasetool.evaluate(systems, [references], metrics=["bleu"], samples=100)
for name, score in zip(["whole table", "half of it"], bleu.systems, strict=True):
    print(f"{name}: BLEU {score.score:.2f} ±{score.interval:.2f}")

# %% [markdown]
# How similar are the sides of the entries that stay, and of those that go?

# %%
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for kept, label in ((True, "kept"), (False, "removed")):
    axes.hist(pruned.entries.semantic[pruned.entries.keep == kept].clip(-1, 1), 40, alpha=0.6, label=label)
axes.set(xlabel="better of the two similarities", ylabel="entries")
axes.legend()
figure.savefig("similarities.svg")
