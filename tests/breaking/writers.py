"""All commands that write files, on small inputs: `@x` is an input, `{gz}` the file ending, `{threads}` a number."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

_DECODED = "--moses-ini @moses.ini"
_TOY = (
    "--piece-units 12 --units 10 --layers 2 --tag-units 6 --decoder-units 14 --batch-size 8 --epochs 2 --min-length 1"
)
_PRUNED = "-o small{gz} --rejected gone{gz} --stats stats --threads {threads} --block-bytes 20000"


@dataclass(frozen=True)
class Writer:
    """A command that writes.

    Attributes:
        words: its command line, without `phrasetool`.
        outputs: names of the files and model folders that it writes.
        kept: names of files that it keeps between runs: vectors, finished steps, checkpoints.
        resume: whether it has the option --resume.
        overwrite: option that a training command needs if its output exists.
        copies: inputs to copy into its folder first, as pairs of input name and name in the folder.
        slow: whether it takes seconds instead of tenths of a second; such commands are killed less often.
    """

    words: str
    outputs: tuple[str, ...]
    kept: tuple[str, ...] = ()
    resume: bool = False
    overwrite: str = ""
    copies: tuple[tuple[str, str], ...] = ()
    slow: bool = False

    @property
    def command(self) -> str:
        """Name of the command; for `train`, with the kind of model."""
        words = self.words.split()
        return " ".join(words[:2]) if words[0] == "train" else words[0]

    def arguments(self, inputs: str, *more: str) -> list[str]:
        """Return the words of the command line; `inputs` is the folder of the inputs."""
        words = (word.replace("@", f"{inputs}/", 1) if word.startswith("@") else word for word in self.words.split())
        return [*words, *more]

    def ways(self) -> Iterator[Writer]:
        """Yield variants with one and two threads, and with plain and compressed outputs."""
        ends = ("", ".gz") if "{gz}" in self.words else ("",)
        threads = ("1", "2") if "{threads}" in self.words else ("1",)
        for end, count in itertools.product(ends, threads):
            outputs = tuple(name.replace("{gz}", end) for name in self.outputs)
            kept = tuple(name.replace("{gz}", end) for name in self.kept)
            words = self.words.replace("{gz}", end).replace("{threads}", count)
            yield replace(self, words=words, outputs=outputs, kept=kept)


def _trains(words: str, **options: bool) -> Writer:
    return Writer(f"train {words} -o m", ("m",), overwrite="--overwrite", resume=True, **options)


WRITERS = (
    Writer(f"prune @large.gz --columns 2,4 --scale raw -t 0.6 --keep-top 1 {_PRUNED}",
           ("small{gz}", "gone{gz}", "stats"), resume=True),
    Writer(f"prune @table.gz -m @model -t 0.1 {_PRUNED} --reasons why --scores scores", (
        "small{gz}", "gone{gz}", "stats", "why", "scores"), resume=True),
    Writer(f"prune @large.gz --method count+probability --target-size 0.5 {_PRUNED} --protect none "
           "--reordering-table @order.gz --reordering-out r{gz}", ("small{gz}", "gone{gz}", "stats", "r{gz}"),
           resume=True),
    Writer(f"prune @large.gz --method usage --forced-pairs @pairs --target-size 0.5 --protect none {_PRUNED}",
           ("small{gz}", "gone{gz}", "stats"), resume=True),
    Writer("remove-orphans @table.gz --reordering-table @order.gz -o r{gz} --threads {threads} --block-bytes 20000",
           ("r{gz}",)),
    Writer("filter-pt @large.gz -n 2 -o small{gz} --threads {threads} --block-bytes 20000", ("small{gz}",)),
    Writer("filter-pt @table.gz -f @text.src -e @text.trg -l a-e --force -o small{gz} --threads {threads}",
           ("small{gz}",)),
    Writer("threshold-filter 3:0.55 @large.gz -o small{gz} --threads {threads} --block-bytes 20000", ("small{gz}",)),
    Writer("ems-prune --method count -t 1 --protect none table small", ("small.gz",),
           copies=(("large.gz", "table.gz"),)),
    Writer("annotate @large.gz -m @model --force -o out{gz} --threads {threads} --block-bytes 20000", ("out{gz}",),
           resume=True),
    Writer("annotate @table.gz --smoothing kneser-ney --force -o out{gz} --threads {threads} --moses-ini @moses.ini "
           "--moses-ini-out new.ini", ("out{gz}", "new.ini"), resume=True),
    Writer("annotate @large.gz --forced-pairs @pairs -o out{gz} --threads {threads} --block-bytes 20000", ("out{gz}",),
           resume=True),
    Writer("annotate @large.gz --encoder @encoder --encoder-store store --force -o out{gz} --threads {threads}",
           ("out{gz}",), kept=("store",), resume=True),
    Writer("augment @words.gz --text @unknown --list list{gz} -o out{gz} --reordering-table @turns.gz "
           "--reordering-out r{gz} --threads {threads} --block-bytes 20000 --sort", ("out{gz}", "list{gz}", "r{gz}")),
    Writer("export @large.gz --to vmap -o map{gz} --threads {threads} --block-bytes 20000", ("map{gz}",)),
    Writer("export @large.gz --to bicleaner -o a.gz --reverse-out b.gz --threads {threads}", ("a.gz", "b.gz")),
    Writer("pivot @large.gz @onwards.gz --reordering-tables @order.gz @turned.gz -o out{gz} --reordering-out r{gz} "
           "--memory 100K --threads {threads} --block-bytes 20000", ("out{gz}", "r{gz}")),
    Writer("inspect @large.gz --json found.json --threads {threads}", ("found.json",)),
    Writer("convert @large.gz -o t.parquet --threads {threads}", ("t.parquet",)),
    Writer("convert t.parquet -o back{gz} --threads {threads}", ("back{gz}",), copies=(("t.parquet", "t.parquet"),)),
    Writer("align @few.de @few.en -o a{gz} --forward f{gz} --reverse r{gz} --iterations 0.5 "
           "--threads {threads}", ("a{gz}", "f{gz}", "r{gz}"), slow=True),
    Writer("extract @text.src @text.trg @aligned -o table{gz} --reordering-table r{gz} --lexical lex "
           "--threads {threads}", ("table{gz}", "r{gz}", "lex.f2e", "lex.e2f")),
    Writer("extract @text.src @text.trg @aligned -o table{gz} --memory 20K --threads {threads}", ("table{gz}",)),
    Writer("lm @text.trg --order 3 --estimator built-in -o lm.arpa{gz}", ("lm.arpa{gz}",)),
    Writer("lm @text.trg --order 3 --estimator built-in --memory 20K -o lm.arpa{gz}", ("lm.arpa{gz}",)),
    Writer("moses-ini --table @table.gz --lm @lm.arpa -o new.ini", ("new.ini",)),
    Writer("binarize @large.gz --to compact -o small --threads {threads} --moses-bin @programs", ("small.minphr",)),
    Writer("binarize @large.gz --to probing -o small --threads {threads} --moses-bin @programs", ("small",)),
    Writer(f"tune {_DECODED} --source @dev.src -r @dev.trg --iterations 3 --log log --force -o new.ini "
           "--threads {threads}", ("new.ini", "log"), resume=True, slow=True),
    Writer(f"decode {_DECODED} @text.src -o out{{gz}} --n-best-list list{{gz}} 5 --threads {{threads}}",
           ("out{gz}", "list{gz}"), resume=True),
    Writer(f"force-decode {_DECODED} @text.src @text.trg -o pairs{{gz}} --partial --threads {{threads}}",
           ("pairs{gz}",), resume=True),
    Writer("translate @list.src -m @forward --beam 4 -o out{gz} --threads {threads}", ("out{gz}",)),
    Writer("rescore @list.nbest --force --source @list.src -m @forward -m @backward -o new{gz} --threads {threads}",
           ("new{gz}",)),
    Writer("rerank @list.nbest --force --source @list.src -m @forward --dev-list @list.nbest --dev-source @list.src "
           "--dev-reference @list.ref -o best{gz} --threads {threads}", ("best{gz}",), slow=True),
    Writer("tag @tagged.txt -m @tagger --language de -o tags{gz} --threads {threads}", ("tags{gz}",)),
    Writer("filter-bitext @dirty.s @dirty.t -m @classifier --threshold 0.5 -o s{gz} t{gz} --scores all{gz} "
           "--rejected gone{gz} --force --threads {threads}", ("s{gz}", "t{gz}", "all{gz}", "gone{gz}"),
           kept=("s{gz}.scores-1",)),
    Writer("mine @s.txt @t.txt --encoder @encoder --threshold 1.05 -o pairs{gz} --encoder-store store "
           "--threads {threads}", ("pairs{gz}",), kept=("store",)),
    Writer("reconstruct @few.de -m @auto -o back{gz} --threads {threads}", ("back{gz}",)),
    Writer("evaluate-model @pairs -m @model --candidates 5 --force --json found.json", ("found.json",)),
    Writer("evaluate-mining @mined.tsv @gold.tsv --json found.json", ("found.json",)),
    Writer("evaluate @list.ref -r @list.ref --json found.json --samples 20", ("found.json",)),
    Writer("experiment @experiment.toml -o out -q --threads {threads}", ("out",), kept=("out",), slow=True),
    _trains("phrases @pairs --dimension 6 --epochs 6 --vectors random --force --threads {threads}"),
    _trains("autoencoder @few.de --word-units 6 --hidden 8 --heads 2 --epochs 3 --min-count 1 "
            "--force --threads {threads}"),
    _trains("translator --units 16 --word-units 8 --dimension 16 --epochs 2 --batch-size 16 --min-count 1 "
            "--target-vectors @vectors --force @few.de @few.en --threads {threads}", slow=True),
    _trains("classifier --word-units 8 --units 8 --hidden 8 --length-units 4 --search-units 4 --epochs 2 "
            "--min-count 1 --force @few.de @few.en --threads {threads}", slow=True),
    _trains("bert --preset tiny --epochs 2 --vocabulary-size 60 --batch-tokens 256 --force "
            "@few.de @few.en --threads {threads}", slow=True),
    _trains("tagger --treebank en @bank.en --treebank de @bank.de --buckets 997 --word-units 12 "
            "--units 10 --batch-size 8 --epochs 3 --force --threads {threads}",
            slow=True),
    _trains(f"syntax --language-bitext de @few.de en @few.en --tagger @tagger --pieces 330 {_TOY} --force "
            "--threads {threads}", slow=True),
)  # fmt: skip

# Commands that make further inputs, run in the folder of the inputs.
RECIPE = (
    "train tagger --treebank en bank.en --treebank de bank.de --epochs 3 -o tagger --threads 1 -q",
    "train autoencoder few.de --word-units 6 --hidden 8 --heads 2 --epochs 1 --min-count 1 -o auto -q --force "
    "--threads 1",
    "convert large.gz -o t.parquet -q",
)


def recipe() -> Iterator[list[str]]:
    """Return the command lines that make further inputs."""
    return map(shlex.split, RECIPE)
