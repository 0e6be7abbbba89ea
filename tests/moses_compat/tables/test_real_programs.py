"""Verdicts of `inspect` on five programs of Moses, compared with the entries of odd tables that these programs use.

Skipped where Moses' programs are not on the PATH.
"""

import math
import re
import subprocess

import pytest

from moses_compat.files.streams import Input
from moses_compat.tables.inspect import inspect_table, verdicts
from tests.commands import write

pytestmark = pytest.mark.requires_moses

LM = (
    "\n\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n"
    "-1\t<unk>\t0\n-99\t<s>\t0\n-1\t</s>\t0\n\n\\2-grams:\n-1\t<s> </s>\n\n\\end\\\n"
)
INI = """[input-factors]
0
[mapping]
0 T 0
[distortion-limit]
0
[feature]
UnknownWordPenalty
WordPenalty
{table} name=TM num-features=4 input-factor=0 output-factor=0 table-limit=0
Distortion
KENLM name=LM factor=0 path=lm order=2
[weight]
UnknownWordPenalty0= 1
WordPenalty0= 0
TM= 1 1 1 1
Distortion0= 0
LM= 0
"""
FIRST = b"abc ||| the ||| 0.5 0.4 0.5 0.4 ||| 0-0 ||| 5 5 3\n"
LAST = b"zzz ||| last ||| 0.7 0.6 0.6 0.6 ||| 0-0 ||| 5 5 3\n"
SCORES = b" ||| 0.6 0.6 0.6 0.6 ||| "
SHORT = b"abc ||| the ||| 0.5 0.4 0.5 0.4%s\nhaus ||| house ||| 0.6 0.6 0.6 0.6%s\n"


def line(phrases, rest=b"0-0 ||| 5 5 3", scores=SCORES):
    return FIRST + phrases + scores + rest + b"\n" + LAST


TABLES = {
    "good": line(b"haus ||| house"),
    "three fields": SHORT % (b"", b""),
    "four fields": SHORT % (b" ||| 0-0", b" ||| 0-0"),
    "no final line feed": (SHORT % (b" ||| 0-0", b" ||| 0-0"))[:-1],
    "no alignment": line(b"haus ||| house", b"||| 5 5 3"),
    "carriage return after scores": SHORT % (b"\r", b"\r"),
    "carriage return after alignment": SHORT % (b" ||| 0-0\r", b" ||| 0-0\r"),
    "carriage return after counts": SHORT % (b" ||| 0-0 ||| 5 5 3\r", b" ||| 0-0 ||| 5 5 3\r"),
    "carriage return after bars": SHORT % (b" ||| 0-0 ||| 5 5 3 ||| |||\r", b" ||| 0-0 ||| 5 5 3 ||| |||\r"),
    "carriage return inside scores": line(b"haus ||| house", scores=b" ||| 0.6 0.6\r 0.6 0.6 ||| "),
    "carriage return inside a word": line(b"haus ||| ho\ruse"),
    "empty target": line(b"haus ||| ", b" ||| 5 5 3"),
    "empty target with a point": line(b"haus ||| "),
    "empty source": FIRST + LAST + b" ||| x" + SCORES + b" ||| 5 5 3\n",
    "empty source first": b" ||| x" + SCORES + b"0-0 ||| 5 5 3\n" + FIRST + LAST,
    "point beyond the target": line(b"haus ||| house", b"0-3"),
    "point beyond the source": line(b"haus ||| house", b"3-0"),
    "alignment of words": line(b"haus ||| house", b"x"),
    "alignment in parentheses": line(b"haus ||| house", b"(0) (0)"),
    "label in the target": line(b"haus ||| house [foo]"),
    "label alone": line(b"haus ||| [foo]"),
    "label alone without a point": line(b"haus ||| [foo]", b" ||| 5 5 3"),
    "label in the source": line(b"haus [foo] ||| house"),
    "bracket inside the target": line(b"haus ||| [foo] house"),
    "bracket inside the source": line(b"haus [foo] da ||| house"),
    "empty brackets": line(b"haus ||| house []"),
    "open bracket": line(b"haus ||| house ["),
    "non-terminal of the source": line(b"haus [X][X] da ||| house"),
    "non-terminal of the target": line(b"haus ||| house [X][X] da"),
    "non-terminals crossed": line(b"haus [X][X] da ||| house [X][X] da", b"0-1 1-0"),
    "zero": line(b"haus ||| house", scores=b" ||| 0 0.6 0.6 0.6 ||| "),
    "underflow": line(b"haus ||| house", scores=b" ||| 1e-50 0.6 0.6 0.6 ||| "),
    "overflow": line(b"haus ||| house", scores=b" ||| 1e50 0.6 0.6 0.6 ||| "),
    "negative": line(b"haus ||| house", scores=b" ||| -0.6 0.6 0.6 0.6 ||| "),
    "nan": line(b"haus ||| house", scores=b" ||| nan 0.6 0.6 0.6 ||| "),
    "inf": line(b"haus ||| house", scores=b" ||| inf 0.6 0.6 0.6 ||| "),
    "plus": line(b"haus ||| house", scores=b" ||| +0.5 .6 0.6 0.6 ||| "),
    "hexadecimal": line(b"haus ||| house", scores=b" ||| 0x1 0.6 0.6 0.6 ||| "),
    "decimal comma": line(b"haus ||| house", scores=b" ||| 0,5 0.6 0.6 0.6 ||| "),
    "three scores": line(b"haus ||| house", scores=b" ||| 0.6 0.6 0.6 ||| "),
    "five scores": line(b"haus ||| house", scores=b" ||| 0.6 0.6 0.6 0.6 0.6 ||| "),
    "no scores": line(b"haus ||| house", scores=b" ||| ||| "),
    "two fields": FIRST + b"haus ||| house\n" + LAST,
    "blank line": FIRST + b"\n" + LAST,
    "blank first line": b"\n" + FIRST + LAST,
    "first line of a number": b"1\n" + FIRST,
    "sources not sorted": LAST + FIRST,
    "first words come back": FIRST + LAST + b"abc haus ||| house" + SCORES + b"0-0\n",
    "longer source first": b"haus da ||| there" + SCORES + b"0-0\n" + line(b"haus ||| x").split(b"\n", 1)[1],
    "source not contiguous": FIRST + LAST + FIRST.replace(b"the", b"that"),
    "targets not sorted": FIRST + FIRST.replace(b"the", b"a") + LAST,
    "duplicate pair": FIRST + FIRST.replace(b"0.5 0.4", b"0.7 0.4") + LAST,
    "sparse scores": line(b"haus ||| house", b"0-0 ||| 5 5 3 ||| dom 1 |||"),
    "sparse scores that are none": line(b"haus ||| house", b"0-0 ||| 5 5 3 ||| dom |||"),
    "property": line(b"haus ||| house", b"0-0 ||| 5 5 3 ||| ||| {{Counts 5 5 3}}"),
    "unknown property": line(b"haus ||| house", b"0-0 ||| 5 5 3 ||| ||| {{Sim 5}}"),
    "property without braces": line(b"haus ||| house", b"0-0 ||| 5 5 3 ||| ||| Sim"),
    "eight fields": line(b"haus ||| house", b"0-0 ||| 5 5 3 ||| ||| ||| x"),
    "tab in the source": line(b"haus\tda ||| house"),
    "tab in the scores": line(b"haus ||| house", scores=b" ||| 0.6\t0.6 0.6 0.6 ||| "),
    "two spaces in the source": line(b"haus  da ||| house"),
    "two spaces in the scores": line(b"haus ||| house", scores=b" ||| 0.6  0.6 0.6 0.6 ||| "),
    "two spaces after bars": line(b"haus |||  house"),
    "leading space": line(b" haus ||| house"),
    "no space before bars": line(b"haus|||house"),
    "four bars": line(b"haus ||| house", scores=b" |||| 0.6 0.6 0.6 0.6 ||| "),
    "bar in the target": line(b"haus ||| ho|use"),
    "bar alone": line(b"haus ||| |"),
    "two bars alone": line(b"haus ||| ||"),
    "five factors": line(b"haus ||| a|b|c|d|e"),
    "counts of letters": line(b"haus ||| house", b"0-0 ||| x y z"),
    "zero byte": line(b"haus ||| ho\0use"),
    "Latin-1": line(b"haus ||| ho\xe9use"),
}


def entries_of(table):
    """Return (source, target, logarithms) of every entry, as it is written."""
    collected = set()
    for text in table.split(b"\n"):
        fields = [field.split() for field in text.replace(b"\0", b"\x01").split(b"|||")]
        # Decoders accept no brackets in their input.
        if len(fields) < 3 or not fields[0] or any(word[:1] == b"[" for word in fields[0]):
            continue
        try:
            logs = tuple(round(max(math.log(float(score)), -100), 4) if float(score) else None for score in fields[2])
        except ValueError:
            logs = ("not a number",)
        collected.add((b" ".join(fields[0]), b" ".join(fields[1]), logs))
    return collected


class Programs:
    """Programs of Moses that are run in a folder with a table."""

    def __init__(self, moses, folder, table):
        self._moses, self._folder = moses, folder
        write(folder / "table", table)
        write(folder / "lm", LM.encode())
        self._sources = sorted({source for source, *_ in entries_of(table)})

    def _run(self, *command, text=b""):
        outcome = subprocess.run(command, cwd=self._folder, input=text, capture_output=True, timeout=60, check=False)
        return outcome.returncode == 0

    def _decoded(self, program, table):
        """Return the entries that a decoder uses; None if it fails."""
        write(self._folder / "ini", INI.format(table=table).encode())
        text = b"".join(source + b"\n" for source in self._sources)
        if not self._run(self._moses(program), "-f", "ini", "-n-best-list", "list", "100", text=text):
            return None
        collected = set()
        for hypothesis in (self._folder / "list").read_bytes().replace(b"\0", b"\x01").split(b"\n")[:-1]:
            number, _, rest = hypothesis.partition(b" ||| ")
            target = b"" if rest.startswith(b"||| ") else rest.partition(b" ||| ")[0]
            scores = re.search(rb" TM= ((?:\S+ ){4})", hypothesis)
            logs = tuple(round(float(value), 4) if float(value) > -100 else None for value in scores[1].split())
            collected.add((self._sources[int(number)], b" ".join(target.split()), logs))
        return collected

    def __call__(self, program, options):
        if program.startswith("moses"):
            return self._decoded(program, "PhraseDictionaryMemory path=table")
        moses = self._moses(program)
        if program == "processPhraseTableMin":
            succeeded = self._run(moses, "-in", "table", "-out", "compact", "-nscores", "4", *options)
            return self._decoded("moses", "PhraseDictionaryCompact path=compact.minphr") if succeeded else None
        if program == "CreateOnDiskPt":
            succeeded = self._run(moses, "1", "1", "4", "0", "2", "table", "ondisk")
            return self._decoded("moses", "PhraseDictionaryOnDisk path=ondisk") if succeeded else None
        succeeded = self._run(moses, "--num-scores", "4", "--input-pt", "table", "--output-dir", "probing")
        return self._decoded("moses2", "ProbingPT path=probing") if succeeded else None


@pytest.mark.parametrize("name", TABLES)
def test_verdicts_agree_with_the_programs(moses, tmp_path, name):
    table = TABLES[name]
    with Input(str(write(tmp_path / "inspected", table))) as source:
        judged = verdicts(inspect_table(source))
    programs, expected, wrong = Programs(moses, tmp_path, table), entries_of(table), {}
    for verdict in judged:
        reasons = " ".join(objection.reason for objection in verdict.objections)
        options = ["-encoding", "None"] if "needs -encoding None" in reasons else []
        used = programs(verdict.loader, options)
        if used is None:
            real = {"no"}
        elif expected <= used:
            # An n-best list shows neither omitted fields, for which it has no weights, nor faults that are not checked.
            real = {"yes", "yes, but"}
            if any(line.count(b"|||") < 2 for line in table.split(b"\n")[:-1]):
                real = {"no"} | real
        else:
            real = {"yes, but", "no"}
        if verdict.answer not in real:
            wrong[verdict.loader] = verdict.answer, used, reasons
    assert len(judged) == 5
    assert wrong == {}
