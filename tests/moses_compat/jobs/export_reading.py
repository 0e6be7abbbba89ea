"""Readers of exported files in plain Python, which follow those of the target systems."""

import struct
from collections import defaultdict
from itertools import pairwise

TABLE = """\
das ||| that ||| 0.5 1 0.125 1 ||| 0-0 ||| 2 8 1
das ||| the ||| 0.5 1 0.75 1 ||| 0-0 ||| 12 8 6
das haus ||| the house ||| 1 1 0.75 1 ||| 0-0 1-1 ||| 3 4 3
das haus ||| the home of ||| 1 1 0.25 1 ||| 0-0 1-1 ||| 1 4 1
das haus ist klein ||| the house is small ||| 1 1 1 1 ||| 0-0 1-1 2-2 3-3 ||| 1 1 1
haus &apos;s ||| house &apos;s ||| 1 1 1 1 ||| 0-0 1-1 ||| 2 2 2
haus ||| building ||| 0.5 1 0.125 1 ||| 0-0 ||| 2 8 1
haus ||| house ||| 0.5 1 0.75 1 ||| 0-0 ||| 8 8 6
klein ||| small ||| 1 1 1 1 ||| 0-0 ||| 4 4 4
"""


def unescaped(word):
    return word.replace("&apos;", "'")


def naive_map(text, longest=3, most=100, always=100, least=0.01):
    """Return source phrase -> candidates, best first, and the words that are always candidates."""
    scores, words, frequencies = {}, [], defaultdict(float)
    for line in text.splitlines():
        source, target, _, _, counts = line.split(" ||| ")
        key = tuple(map(unescaped, source.split()))
        total, joint = map(float, counts.split()[1:])
        if len(key) > longest:
            continue
        sums = scores.setdefault(key, defaultdict(float))
        for word in dict.fromkeys(map(unescaped, target.split())):
            words += [word] * (word not in words)
            sums[word] += max(joint - 0.5, 0) / total
        if len(key) == 1:
            for word in map(unescaped, target.split()):
                frequencies[word] += joint
    fixed = sorted(frequencies, key=lambda word: (-frequencies[word], words.index(word)))[:always]
    collected = {}
    for key in sorted(scores, key=len):
        known = set(fixed)
        if len(key) > 1:
            known.update(*(collected.get((word,), []) for word in key))
        order = sorted(scores[key], key=lambda word: (-scores[key][word], words.index(word)))
        collected[key] = [word for word in order if scores[key][word] >= least and word not in known][:most]
    return {key: collected[key] for key in scores if collected[key]}, fixed


def read_map(data):
    """Return the rules of a vocabulary map by the length of their keys, like src/vocabulary_map.cc of CTranslate2."""
    rules = defaultdict(dict)
    for line in data.decode().split("\n")[:-1]:
        key, tab, values = line.partition("\t")
        assert tab
        length = key.count(" ")
        assert key not in rules[length], "the second line would replace the first"
        rules[length][key] = values.split(" ") if values else []
    return rules


def candidates(rules, tokens):
    """Return the candidates of a sentence, like `get_candidates`."""
    collected = set(rules[0].get("", ()))
    for first in range(len(tokens)):
        for length in rules:
            key = " ".join(tokens[first : first + length + 1])
            if first + length < len(tokens):
                collected.update(rules[length].get(key, ()))
    return collected


def read_shortlist(data):
    """Return source -> target -> probability, like `LexicalShortlistGenerator::load` of Marian."""
    result = defaultdict(dict)
    fields = iter(data.decode().split())
    for target, source, probability in zip(fields, fields, fields, strict=True):
        result[source][target] = float(probability)
    return result


def read_binary_shortlist(data):
    """Return first, best and candidates of each source unit, with the checks of Marian's `BinaryShortlistGenerator`."""
    magic, checksum, first, best, size, count = struct.unpack_from("<6Q", data)
    assert magic == 0xF11A48D5013417F5
    assert len(data) == 48 + 8 * size + 4 * count
    seed, mask = 0, (1 << 64) - 1
    for (word,) in struct.iter_unpack("<Q", data[16 : 16 + (len(data) - 16) // 8 * 8]):
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & mask
    assert seed == checksum
    offsets = struct.unpack_from(f"<{size}Q", data, 48)
    lists = struct.unpack_from(f"<{count}I", data, 48 + 8 * size)
    assert all(offset < count for offset in offsets[:-1])
    assert offsets[-1] == count
    return first, best, [list(lists[a:b]) for a, b in pairwise(offsets)]
