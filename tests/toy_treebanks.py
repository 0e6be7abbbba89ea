"""Treebanks of toy languages in which endings indicate the parts of speech of nouns, verbs and adjectives."""

import gzip

import numpy as np

from phrasetool.tagger.data import TaggedSentence

# Small settings that suffice to learn a toy language.
FAST = {
    "buckets": 997,
    "word_units": 12,
    "units": 10,
    "epochs": 6,
    "batch_size": 8,
    "learning_rate": 0.03,
    "dropout": 0.1,
}
_ENDINGS = {"en": {"NOUN": "er", "VERB": "ed", "ADJ": "ous"}, "de": {"NOUN": "ung", "VERB": "te", "ADJ": "lich"}}


def toy_sentences(language, count, seed):
    """Return sentences of a language; the tokens `im` (German) and `isn't` (English) are two words each."""
    rng = np.random.default_rng(seed)
    collected = []
    for _ in range(count):
        words, tags, tokens = [], [], []

        def add(word, tag, words=words, tags=tags, tokens=tokens):
            words.append(word)
            tags.append(tag)
            tokens.append((word, 1))

        def stem(rng=rng):
            return "".join(rng.choice(list("bdgklmnprst")) + rng.choice(list("aeiou")) for _ in range(2))

        ends = _ENDINGS[language]
        if language == "de" and rng.random() < 0.5:
            words += ["in", "dem"]
            tags += ["ADP", "DET"]
            tokens.append(("im", 2))
        else:
            add("The" if language == "en" else "Die", "DET")
        if rng.random() < 0.5:
            add(stem() + ends["ADJ"], "ADJ")
        add((stem() + ends["NOUN"]).capitalize(), "NOUN")
        if language == "en" and rng.random() < 0.3:
            words += ["is", "n't"]
            tags += ["AUX", "PART"]
            tokens.append(("isn't", 2))
        add(stem() + ends["VERB"], "VERB")
        add(".", "PUNCT")
        collected.append(TaggedSentence(tuple(words), tuple(tags), tuple(tokens)))
    return collected


def conllu(sentences):
    """Return sentences in CoNLL-U format."""
    lines = []
    for sentence in sentences:
        first = 0
        lines.append("# text = " + " ".join(form for form, _ in sentence.tokens))
        for form, count in sentence.tokens:
            if count > 1:
                lines.append("\t".join([f"{first + 1}-{first + count}", form, *["_"] * 8]))
            for number in range(first, first + count):
                columns = [str(number + 1), sentence.words[number], "_", sentence.tags[number], *["_"] * 6]
                lines.append("\t".join(columns))
            first += count
        lines.append("")
    return "".join(line + "\n" for line in lines).encode()


def treebank_file(path, language, count, seed):
    """Write a treebank, compressed if the name ends in .gz; return the path."""
    data = conllu(toy_sentences(language, count, seed))
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
