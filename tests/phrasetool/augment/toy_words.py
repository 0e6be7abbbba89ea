"""Words of a toy language: compounds of known parts, and inflected forms, with matching translations."""

from phrasetool.augment.evidence import WordEntries, WordEntry

PARTS = {
    "haus": "house", "stein": "stone", "rad": "bike", "weg": "path", "wald": "forest", "boot": "boat", "meer": "sea",
    "schule": "school", "hund": "dog", "tisch": "table",
}  # fmt: skip
STEMS = {"grün": "green", "klein": "small", "schnell": "fast", "blau": "blue", "gross": "big", "lang": "long"}
ENDINGS = ("e", "es", "er", "em", "en")


def entry(target, probability=0.8):
    return WordEntry(target, (0.5, 0.25, probability, 0.125))


def toy_entries(turned=False):
    """Return known words; with `turned`, the last part comes first in a translation."""
    result = {word: [entry(target), entry(f"the {target}", 0.1), entry(",", 0.1)] for word, target in PARTS.items()}
    counts = dict.fromkeys(PARTS, 20)
    compounds = [
        ("haus", "boot"),
        ("stein", "haus"),
        ("rad", "weg"),
        ("meer", "boot"),
        ("wald", "weg"),
        ("hund", "haus"),
    ]

    def together(first, second):
        words = PARTS[first], PARTS[second]
        return [entry(" ".join(words[::-1] if turned else words))]

    result.update({first + second: together(first, second) for first, second in compounds})
    # Compounds with a linking letter, and with a dropped letter.
    for first, second in (("boot", "haus"), ("wald", "haus"), ("hund", "boot"), ("weg", "stein")):
        result[f"{first}s{second}"] = together(first, second)
    for second in ("haus", "weg", "tisch", "boot"):
        result[f"schul{second}"] = together("schule", second)
    for stem, target in STEMS.items():
        for ending in ENDINGS:
            result[stem + ending] = [entry(target), entry(f"{target} one", 0.2)]
    counts.update({word: 2 for word in result if word not in counts})
    return WordEntries(result, counts)
