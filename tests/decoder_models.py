"""Small random models: for the naive decoder, for phrasetool's decoder, and as files with a moses.ini."""

import gzip
import math
import random

import numpy as np

from moses_compat.engine.arpa import load_language_model
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.features import FeatureSet, ReorderingModel
from phrasetool.smt.decoder.table import Entries, build_table
from phrasetool.smt.decoder.translator import SearchOptions, Translator
from tests import naive_decoder
from tests.naive_decoder import Entry, numbered

SOURCE = [b"a", b"b", b"c", b"d", b"e"]
TARGET = [b"v", b"w", b"x", b"y", b"z"]
# No table contains `q`, and no language model contains `z`.
UNKNOWN = b"q"
KINDS = ["", "msd", "mslr", "monotonicity", "leftright"]
DIRECTIONS = [("backward",), ("forward",), ("backward", "forward")]
EVERYTHING = SearchOptions(stack_size=4000, pop_limit=10**9, beam_threshold=0)


def random_arpa(rng):
    """Return an ARPA file of order 3 that contains the prefix and the suffix of each of its n-grams."""
    words = [b"<s>", b"</s>", *TARGET[:-1], UNKNOWN]
    levels = [[(word,) for word in [b"<unk>", *words]]]
    for chance in (0.4, 0.6):
        contexts = [gram for gram in levels[-1] if gram[-1] not in (b"</s>", b"<unk>")]
        # kenlm reserves little space for n-grams whose suffix is not an n-gram of the model.
        grams = [(*gram, w) for gram in contexts for w in words[1:] if (*gram[1:], w) in levels[-1]]
        levels.append([gram for gram in grams if rng.random() < chance])
    if not levels[2]:
        levels.pop()
    lines = [b"\\data\\", *(b"ngram %d=%d" % (n, len(level)) for n, level in enumerate(levels, 1))]
    for n, level in enumerate(levels, 1):
        lines += [b"", b"\\%d-grams:" % n]
        for gram in level:
            fields = [b"%.5f" % -rng.uniform(0.1, 4), b" ".join(gram)]
            if n < len(levels):
                fields.append(rng.choice([b"0", b"%.5f" % -rng.uniform(0, 1.5)]))
            lines.append(b"\t".join(fields))
    return b"\n".join([*lines, b"", b"\\end\\", b""])


class LanguageModels:
    """A few ARPA files, loaded with kenlm and with phrasetool."""

    def __init__(self, folder, count=5):
        import kenlm

        self.paths = [folder / f"random-{seed}.arpa" for seed in range(count)]
        for seed, path in enumerate(self.paths):
            path.write_bytes(random_arpa(random.Random(seed)))
        self.kenlm = [kenlm.Model(str(path)) for path in self.paths]
        self.ours = [load_language_model(str(path)) for path in self.paths]


def _log(rng):
    """Return a random log score in single precision, as read from a table; some stand for a probability of 0."""
    probability = rng.choice([rng.uniform(0.001, 1)] * 30 + [0.0, 2.718])
    return float(np.float32(math.log(probability))) if probability else -100.0


def random_entries(rng, sentence, tables, orientations, empty=0.1):
    """Return entries for some spans of a sentence and for two other phrases; those of table t have tables[t] scores."""
    spans = {tuple(sentence[i : i + 1]) for i in range(len(sentence)) if rng.random() < 0.9}
    for size in (2, 3):
        for i in range(len(sentence) - size + 1):
            if rng.random() < 0.4:
                spans.add(tuple(sentence[i : i + size]))
    spans |= {(b"a", b"a", b"q"), (b"e",)}
    entries = []
    for source in sorted(spans - {(UNKNOWN,)}):
        for _ in range(rng.choice([1, 1, 2, 3])):
            size = 0 if rng.random() < empty else rng.choice([1, 1, 1, 2, 3])
            words = tuple(rng.choices(TARGET, k=size))
            table = rng.randrange(len(tables)) if len(tables) > 1 else 0
            scores = tuple(_log(rng) for _ in range(tables[table]))
            reordering = tuple(_log(rng) for _ in range(orientations)) if rng.random() < 0.9 else ()
            joint = rng.randint(1, 3)
            counts = (joint + rng.randint(0, 3), joint + rng.randint(0, 3), joint)
            entries.append(Entry(source, words, scores, reordering, counts, table=table))
    return entries


def random_sentence(rng, size):
    return rng.choices([*SOURCE, UNKNOWN], weights=[4] * len(SOURCE) + [1], k=size)


def random_model(rng, sentence, language_model=None, empty=0.1, tables=1):
    """Return a `naive_decoder.Model` with entries for spans of the sentence."""
    kind = rng.choice(KINDS)
    directions = rng.choice(DIRECTIONS) if kind else ()
    collapsed = len(directions) == 1 and rng.random() < 0.3
    columns = [rng.choice([1, 4, 4, 5]) for _ in range(tables)]
    language_models = len(language_model) if isinstance(language_model, list) else 1
    orientations = len(directions) * naive_decoder.ORIENTATIONS.get(kind, 0)
    sizes = {"Distortion": 1, **{numbered("LM", i): 1 for i in range(language_models)}, "WordPenalty": 1}
    sizes |= {"PhrasePenalty": 1, **{numbered("TranslationModel", i): size for i, size in enumerate(columns)}}
    if kind:
        sizes = {"LexicalReordering": len(directions) if collapsed else orientations, **sizes}
    weights = {name: [round(rng.gauss(0.3, 0.5), 3) for _ in range(size)] for name, size in sizes.items()}
    return naive_decoder.Model(
        random_entries(rng, sentence, columns, orientations, empty),
        weights,
        language_model,
        kind,
        directions,
        collapsed,
        distortion_limit=rng.choice([-1, 0, 1, 2, 3, 6]),
        table_limit=rng.choice([0, 1, 2, 20]) if tables == 1 else tuple(rng.choices([0, 1, 2, 20], k=tables)),
        unknown_weight=rng.choice([1.0, 1.0, 0.02]),
    )


def reordering_type(model, spelling="wbe"):
    direction = "bidirectional" if len(model.directions) == 2 else model.directions[0]
    return f"{spelling}-{model.kind}-{direction}-fe-{'collapseff' if model.collapsed else 'allff'}"


def feature_set(model):
    reordering = ReorderingModel.parse(reordering_type(model)) if model.kind else None
    count = max(len(model.language_models), 1)
    return FeatureSet(tuple(model.tables), reordering, unknown_weight=model.unknown_weight, language_models=count)


def weight_vector(model):
    return np.array([w for name in feature_set(model).sizes for w in model.weights[name]])


def table_of(model, sentences):
    """Return the model's entries as a `TranslationTable`, and the sentences in its word ids."""
    source, target = Symbols(), Symbols()
    texts = source.read_lines(b"".join(b" ".join(sentence) + b"\n" for sentence in sentences))
    first = np.cumsum([0, *model.tables])
    scores = np.zeros((len(model.entries), first[-1]), np.float32)
    for row, entry in zip(scores, model.entries, strict=True):
        row[first[entry.table] : first[entry.table + 1]] = entry.scores
    orientations = len(model.directions) * naive_decoder.ORIENTATIONS.get(model.kind, 0)
    reordering = [entry.reordering or (0.0,) * orientations for entry in model.entries]
    entries = Entries(
        Phrases.from_lists([[source.add(word) for word in entry.source] for entry in model.entries]),
        Phrases.from_lists([[target.add(word) for word in entry.target] for entry in model.entries]),
        scores,
        np.array(reordering, np.float32).reshape(len(model.entries), orientations),
        Phrases.from_lists([[]] * len(model.entries)),
        np.array([entry.counts for entry in model.entries], np.float32).reshape(-1, 3),
        np.arange(len(model.entries)),
        np.array([entry.table for entry in model.entries], np.int32),
    )
    return build_table(entries, source, target, np.unique(texts.words).astype(np.int32)), texts


def translator_of(model, sentences, language_model):
    """Return a `Translator` with the model, and the sentences in its word ids."""
    table, texts = table_of(model, sentences)
    return Translator(table, language_model, feature_set(model), weight_vector(model), model.table_limit), texts


def search_options(model, **changes):
    """Return search options, by default without pruning."""
    options = {"stack_size": 4000, "pop_limit": 10**9, "beam_threshold": 0.0, **changes}
    return SearchOptions(distortion_limit=model.distortion_limit, table_limit=model.table_limit, **options)


def entries_in_order(model):
    """Return the model's entries grouped by source in order of first occurrence, as in a `TranslationTable`."""
    sources = list(dict.fromkeys(entry.source for entry in model.entries))
    return sorted(model.entries, key=lambda entry: sources.index(entry.source))


def naive_steps(model, translator, sentence, translation, derivation=0):
    """Convert a derivation of `Translator` to the naive decoder's list of (start, end, entry)."""
    steps, entries, result = translation.steps, entries_in_order(model), []
    for p in range(*steps.offsets[derivation : derivation + 2]):
        start, end, number = int(steps.starts[p]), int(steps.ends[p]), int(steps.entries[p])
        words = tuple(sentence[start : end + 1])
        entry = entries[number] if number < len(entries) else model.known(words)[0]
        assert entry.source == words
        assert entry.target == tuple(translator.table.target_symbols.words[w] for w in translator.table.targets[number])
        assert entry.copy == translator.table.copies[number]
        result.append((start, end, entry))
    return result


def _number(log):
    return b"%.9g" % (math.exp(log) if log > -100 else 0)


def table_text(model, table=0):
    rows = []
    for entry in model.entries:
        if entry.table != table:
            continue
        points = b" ".join(b"%d-%d" % (i, i) for i in range(min(len(entry.source), len(entry.target))))
        sides = b"%s ||| %s" % (b" ".join(entry.source), b" ".join(entry.target))
        numbers = b" ".join(map(_number, entry.scores)), points, b"%d %d %d" % entry.counts
        rows.append(sides + b" ||| %s ||| %s ||| %s ||| |||\n" % numbers)
    return b"".join(rows)


def reordering_text(model):
    # Moses uses the last line of a pair, so each pair is written once, with its last values.
    result = {(entry.source, entry.target): entry.reordering for entry in model.entries}
    return b"".join(
        b"%s ||| %s ||| %s \n" % (b" ".join(s), b" ".join(t), b" ".join(map(_number, values)))
        for (s, t), values in result.items()
        if values
    )


def table_file(table):
    return f"table{table or ''}.gz"


def ini_text(model, *language_models):
    """Return a moses.ini of the model; all paths except those of language models are relative to its folder."""
    lines = ["# a model", "[distortion-limit]", f"{model.distortion_limit}", "", "[mapping]"]
    lines += [*(f"{i} T {i}" for i in range(len(model.tables))), "", "[feature]", "UnknownWordPenalty"]
    limits = [model.table_limit] * len(model.tables) if isinstance(model.table_limit, int) else model.table_limit
    if model.kind:
        lines.append(
            f"LexicalReordering name=LexicalReordering0 num-features={len(model.weights['LexicalReordering'])} "
            f"type={reordering_type(model)} input-factor=0 output-factor=0 path=reordering.gz"
        )
    lines += [
        "Distortion", "WordPenalty", "PhrasePenalty",
        *(f"PhraseDictionaryMemory name=TranslationModel{i} num-features={size} path={table_file(i)} "
          f"input-factor=0 output-factor=0 table-limit={limits[i]}" for i, size in enumerate(model.tables)),
        *(f"KENLM name=LM{i} factor=0 path={path} order=3" for i, path in enumerate(language_models)),
        "", "[weight]", f"UnknownWordPenalty0= {model.unknown_weight}",
        *(f"{name}{'' if name[-1].isdigit() else 0}= {' '.join(map(str, values))}"
          for name, values in model.weights.items()),
    ]  # fmt: skip
    return "".join(line + "\n" for line in lines).encode()


def write_model(model, folder, *language_models):
    """Write the files of a model; return the path of its moses.ini."""
    folder.mkdir(exist_ok=True)
    for table in range(len(model.tables)):
        (folder / table_file(table)).write_bytes(gzip.compress(table_text(model, table), 1, mtime=0))
    if model.kind:
        (folder / "reordering.gz").write_bytes(gzip.compress(reordering_text(model), 1, mtime=0))
    (folder / "moses.ini").write_bytes(ini_text(model, *language_models))
    return folder / "moses.ini"
