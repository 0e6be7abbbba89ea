"""filter-pt and threshold-filter in plain Python: sentences searched one by one, exact integer arithmetic."""

import math
from itertools import pairwise

from tests import naive


def occurs(phrase, sentence):
    return any(sentence[i : i + len(phrase)] == phrase for i in range(len(sentence) - len(phrase) + 1))


def sentences_of(phrases, corpus):
    """Return indices of sentences with all phrases (lists of words); none if there is no phrase or one is empty."""
    if not phrases or not all(phrases):
        return set()
    return {i for i, sentence in enumerate(corpus) if all(occurs(phrase, sentence) for phrase in phrases)}


def negative_log_p(joint, source, target, sentences):
    """Return -log p of Fisher's exact test, with integers of arbitrary size."""
    terms = range(joint, min(source, target) + 1)
    tail = sum(math.comb(source, k) * math.comb(sentences - source, target - k) for k in terms)
    return math.log(math.comb(sentences, target)) - math.log(tail)


def runs(field, hierarchical):
    """Return the phrases to search for: the whole field, or the word sequences between labels."""
    result = [[]]
    for token in naive.tokens(field):
        if hierarchical and naive.is_label(token):
            result.append([])
        else:
            result[-1].append(token)
    return [run for run in result if run]


def filter_table(data, source, target, *, threshold=None, top=0, column=2, counts=False, values=False, rules=False):
    """Return the output of filter-pt for a well-formed table; source and target are lists of lists of words."""
    lines, groups = naive.parse_table(data, naive.first_score_count(data))
    best = set(range(len(lines)))
    for first, last in pairwise(groups):
        if top:
            ranked = sorted(range(first, last), key=lambda i: (-lines[i].values[column], i))
            best -= set(ranked[top:])
    out = []
    for i in sorted(best):
        text = data[lines[i].start : lines[i].end]
        if threshold is not None or counts or values:
            parts = [runs(field, rules) for field in (lines[i].source, lines[i].target)]
            holders = [sentences_of(part, corpus) for part, corpus in zip(parts, (source, target), strict=True)]
            numbers = len(holders[0] & holders[1]), len(holders[0]), len(holders[1])
            value = negative_log_p(*numbers, len(source))
            if all(parts) and value < (threshold or 0) - 1e-9:
                continue
            content = text.rstrip(b"\r\n")
            ending = text[len(content) :]
            if counts:
                content += b" ||| %d %d %d" % numbers
            if values:
                content += b" ||| " + (b"%.6f" % abs(value)).rstrip(b"0").rstrip(b".")
            text = content + ending
        out.append(text)
    return b"".join(out)


def threshold_lines(data, thresholds, keep_words=False):
    lines, groups = naive.parse_table(data, naive.first_score_count(data))
    kept = {i for i, line in enumerate(lines) if all(line.values[c] >= t for c, t in thresholds.items())}
    for first, last in pairwise(groups):
        group = range(first, last)
        words = [token for token in naive.tokens(lines[first].source) if not naive.is_label(token)]
        if keep_words and len(words) == 1 and not kept & set(group):
            margins = [min((lines[i].values[c] - t) / abs(t or 1) for c, t in thresholds.items()) for i in group]
            kept.add(first + margins.index(max(margins)))
    return b"".join(data[lines[i].start : lines[i].end] for i in sorted(kept))
