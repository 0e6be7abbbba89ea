# ruff: noqa: E501  (rows are whole command lines)
"""Every option of every command has an effect: the output of a run with the option differs from that of one without.

An option whose effect cannot be seen in this way has a reason in its row.  An option without a row is an error,
and so is a row without an option.
"""

import hashlib
import random
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pytest

from phrasetool_cli.main import COMMANDS, cli
from tests.commands import run_inside, write
from tests.decoder_models import SOURCE, TARGET
from tests.parallel_models import random_parallel_model, toy_lines
from tests.reranking_lists import make as make_lists
from tests.small_experiment import INI, small_model, table_lines, write_experiment, write_texts
from tests.syntax_models import toy_lines as syntax_lines
from tests.text_encoder_folders import WORDS, static_folder
from tests.text_encoder_folders import table_lines as lines_of_words
from tests.toy_treebanks import FAST as TAGGER
from tests.toy_treebanks import treebank_file
from tests.variants import for_each

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Why:
    """A reason why no two runs are compared.

    Args:
        reason: an explanation for readers.
        file: a test file that names the option and checks it in another way; empty if there is none.
    """

    reason: str
    file: str = ""


@dataclass(frozen=True)
class Fails:
    """Arguments that make the command fail.

    Args:
        arguments: appended to the command line.
        message: text that the error contains.
        base: command line to use instead of that in `BASES`.
    """

    arguments: str
    message: str
    base: str = ""


SPEED = Why("changes speed and memory, never the output")
RAY = Why("the output of Ray is that of threads", "tests/phrasetool/cluster/test_ray_runner.py")
RESUMED = Why("matters after an interruption", "tests/cli/test_resume.py")
# Rows of options that have the same meaning in every command.
ANYWHERE = {
    "--quiet": "-q",
    "--verbose": "-v",
    "--json": "--json document.json",
    "--threads": SPEED,
    "--block-bytes": SPEED,
    "--memory": SPEED,
    "--temporary": Why("where temporary files are, which are gone at the end"),
    "--max-line": Fails("--max-line 8", "bytes"),
    "--engine": RAY,
    "--address": RAY,
    "--resume": RESUMED,
    "--device": Fails("--device nowhere", "nowhere"),
}
# Rows of options for reading tables: what replaces `{table}` in a command line, without and with the option.
READING = {
    "--on-error": ("{malformed}", "{malformed} --on-error skip"),
    "--allow-empty": ("{empty}", "{empty} --allow-empty"),
    "--sort": ("{unsorted}", "{unsorted} --sort"),
    "--force": ("{reordering}", "{reordering} --force"),
}
# Command -> its shortest useful command line.
BASES = {
    "prune": "{table} -m in/model -t 0.2 -o out",
    "annotate": "{table} -m in/model -o out",
    "augment": "{table} --text in/compounds -o out",
    "remove-orphans": "{table} --reordering-table in/more.reordering -o out",
    "filter-pt": "-f in/train.src -e in/train.trg -l 1 -n 3 -o out {table}",
    "threshold-filter": "0:0.3 {table} -o out",
    "export": "{table} --to lexicon -o out",
    "pivot": "in/ab in/bc -o out",
    "show": "in/table a --index index",
    "report": "in/table -o out",
    "inspect": "in/table",
    "convert": "in/table -o out.parquet",
    "align": "in/train.src in/train.trg -o out",
    "extract": "in/train.src in/train.trg in/aligned -o out",
    "lm": "in/train.trg -o out",
    "moses-ini": "--table in/table --lm in/lm.arpa -o out",
    "decode": "--moses-ini in/moses.ini in/one.src -o out",
    "tune": "--moses-ini in/moses.ini --dev in/dev.src in/dev.trg -o out --iterations 2 --force",
    "force-decode": "--moses-ini in/moses.ini in/train.src in/train.trg -o out",
    "translate": "in/test.src -m in/forward -o out",
    "rescore": "in/test.nbest --source in/test.src -m in/forward -o out",
    "rerank": "in/test.nbest --source in/test.src -m in/forward -m in/backward --dev-list in/dev.nbest"
    " --dev in/dev.nbest.src in/dev.nbest.ref -o out",
    "tag": "in/plain.en -m in/tagger --language en -o out",
    "filter-bitext": "in/toy.s in/toy.t -m in/classifier -o out.s out.t",
    "mine": "in/mixed.s in/mixed.t -m in/classifier -o out",
    "evaluate-mining": "in/mined in/gold",
    "evaluate": "in/hypothesis -r in/reference",
    "evaluate-model": "in/pairs -m in/model",
    "neighbours": "a -m in/model --pairs in/pairs",
    "reconstruct": "in/plain.en -m in/autoencoder",
    "improve": "--moses-ini in/moses.ini --train in/train.src in/train.trg --dev in/dev.src in/dev.trg -o out",
    "experiment": "in/experiment.toml -o out",
    "demo": "out --files",
    "compile": "",
}
BITEXT_MODELS = "in/dev.nbest.src in/dev.nbest.ref --lm in/target.arpa --keep 1 --scores s -o out.s out.t"
BITEXT_ENCODER = "in/words.s in/words.t --encoder in/encoder --threshold 0.5 -o out.s out.t"
MINE_ENCODER = "in/words.s in/words.t --encoder in/encoder -o out"
ANNOTATE_ENCODER = "in/words-table --encoder in/encoder -o out"
PRUNE_ENCODER = "in/words-table --encoder in/encoder -t 0.6 -o out"
WITH_INI = "{table} --moses-ini in/moses.ini --method composition --target-size 0.5 -o out"
BUDGET = (
    "{table} --moses-ini in/moses.ini --method count --max-bleu-loss 1 --dev in/dev.src in/dev.trg --keep-top 1"
    " --force -o out"
)
TBX = "{table} --to lexicon --format tbx --languages de,en -o out"
SHORTLIST = "{table} --to shortlist --source-vocab in/source.words --target-vocab in/target.words -o out"
DECODE = "--moses-ini in/moses.ini in/one.src -o out"
TUNE = BASES["tune"]
RERANK = BASES["rerank"]
"""Command -> option -> more arguments that change the outcome; or a pair of command lines whose outcomes differ."""
ROWS = {
    "prune": {
        "--threshold": ("{table} -m in/model -t 0.2 -o out", "{table} -m in/model -t 0.9 --keep-top 1 -o out"),
        "--target-size": (WITH_INI, WITH_INI + " --target-size 0.7"),
        "--max-bleu-loss": (BUDGET, BUDGET + " --max-bleu-loss 30"),
        "--non-inferior": (BUDGET, BUDGET + " --non-inferior"),
        "--sweep": ("{table} -m in/model --sweep 0:0.5:0.1", "{table} -m in/model --sweep 0:0.5:0.25"),
        "--method": (WITH_INI, WITH_INI + " --method count"),
        "--combine": (
            WITH_INI + " --method composition+count",
            WITH_INI + " --method composition+count --combine rank",
        ),
        "--seed": (WITH_INI + " --method random", WITH_INI + " --method random --seed 2"),
        "--keep-top": ("{table} -m in/model -t 0.9 -o out", "{table} -m in/model -t 0.9 --keep-top 2 -o out"),
        "--protect": (
            "{table} -m in/model -t 0.9 --keep-top 2 -o out",
            "{table} -m in/model -t 0.9 --keep-top 2 --protect none -o out",
        ),
        "--protect-frequent": (
            "{table} -m in/model -t 0.9 --keep-top 0 -o out",
            "{table} -m in/model -t 0.9 --keep-top 0 --protect-frequent 0 -o out",
        ),
        "--model": (
            "{table} -m in/model -t 0.5 --keep-top 1 -o out",
            "{table} -m in/model2 -t 0.5 --keep-top 1 -o out",
        ),
        "--translator-score": (
            "in/list-table -m in/forward -m in/backward -t 0.5 --keep-top 1 --similarities scores -o out",
            "in/list-table -m in/forward -m in/backward -t 0.5 --keep-top 1 --similarities scores -o out --translator-score unnormalised",
        ),
        "--similarities": "--similarities scores.parquet",
        "--similarity-columns": (
            "in/annotated --similarity-columns 5,6 -t 0.6 --keep-top 1 -o out",
            "in/annotated --similarity-columns 1,2 -t 0.6 --keep-top 1 -o out",
        ),
        "--scale": (
            "in/annotated --similarity-columns 5,6 -t 0.6 --keep-top 1 -o out",
            "in/annotated --similarity-columns 5,6 -t 0.6 --keep-top 1 -o out --scale raw",
        ),
        "--moses-ini": (
            "{table} --moses-ini in/moses.ini --method top --target-size 0.4 --protect none -o out",
            "{table} --moses-ini in/other.ini --method top --target-size 0.4 --protect none -o out",
        ),
        "--bitext": (
            "{table} --method significance -t 1 --keep-top 1 --bitext in/train.src in/train.trg -o out",
            "{table} --method significance -t 1 --keep-top 1 --bitext in/train2.src in/train2.trg -o out",
        ),
        "--forced-pairs": (
            "{table} --method usage --target-size 0.4 --keep-top 1 --forced-pairs in/pairs -o out",
            "{table} --method usage --target-size 0.4 --keep-top 1 --forced-pairs in/pairs2 -o out",
        ),
        "--encoder": (PRUNE_ENCODER, PRUNE_ENCODER.replace("encoder in/encoder", "encoder in/encoder2")),
        "--target-encoder": (PRUNE_ENCODER, PRUNE_ENCODER + " --target-encoder in/encoder2"),
        "--detokenise": (PRUNE_ENCODER, PRUNE_ENCODER + " --detokenise zh"),
        "--prefix": (PRUNE_ENCODER, PRUNE_ENCODER + " --prefix 'house red '"),
        "--normalise": (PRUNE_ENCODER, PRUNE_ENCODER + " --normalise cosine"),
        "--encoder-store": (PRUNE_ENCODER, PRUNE_ENCODER + " --encoder-store store"),
        "--output": "-o other",
        "--reordering-table": (
            "{table} -m in/model -t 0.9 --keep-top 1 -o out --reordering-table in/reordering --reordering-out reo",
            "{table} -m in/model -t 0.9 --keep-top 1 -o out --reordering-table in/more.reordering --reordering-out reo",
        ),
        "--reordering-out": "--reordering-table in/reordering --reordering-out reo",
        "--rejected": "--rejected gone",
        "--reasons": "--reasons reasons.parquet",
        "--stats": "--stats stats.json",
        "--temporary": Fails("--method count --target-size 0.5 --temporary in/nowhere", "in/nowhere"),
        "--dry-run": "--dry-run",
        "--dev": (BUDGET, BUDGET + " --dev in/one.src in/one.trg"),
        "--search": (BUDGET + " --stats s", BUDGET + " --stats s --search cube --pop-limit 1"),
        "--stack": (BUDGET + " --stats s", BUDGET + " --stats s --stack 1"),
        "--pop-limit": (
            BUDGET + " --stats s --search cube --pop-limit 50",
            BUDGET + " --stats s --search cube --pop-limit 1",
        ),
        "--beam-threshold": (BUDGET + " --stats s", BUDGET + " --stats s --beam-threshold 0.9"),
        "--distortion-limit": (BUDGET + " --stats s", BUDGET + " --stats s --distortion-limit 0"),
        "--table-limit": (BUDGET + " --stats s", BUDGET + " --stats s --table-limit 1"),
        "--force": ("in/words-table -m in/model -t 0.5 -o out", "in/words-table -m in/model -t 0.5 -o out --force"),
    },
    "annotate": {
        "--model": ("{table} -m in/model -o out", "{table} -m in/model2 -o out"),
        "--scale": "--scale raw",
        "--translator-score": (
            "in/list-table -m in/forward -o out",
            "in/list-table -m in/forward -o out --translator-score unnormalised",
        ),
        "--forced-pairs": "--forced-pairs in/pairs",
        "--smoothing": "--smoothing kneser-ney",
        "--syntax-columns": (
            "in/syntax-table -m in/syntax -o out",
            "in/syntax-table -m in/syntax --tagger in/tagger --languages de,en -o out --syntax-columns all",
        ),
        "--tagger": (
            "in/syntax-table -m in/syntax --syntax-columns all --tagger in/tagger --languages de,en -o out",
            "in/syntax-table -m in/syntax --syntax-columns all --tagger in/tagger2 --languages de,en -o out",
        ),
        "--languages": (
            "in/syntax-table -m in/syntax --syntax-columns all --tagger in/tagger --languages de,en -o out",
            "in/syntax-table -m in/syntax --syntax-columns all --tagger in/tagger --languages en,de -o out",
        ),
        "--encoder": (ANNOTATE_ENCODER, ANNOTATE_ENCODER.replace("encoder in/encoder", "encoder in/encoder2")),
        "--target-encoder": (ANNOTATE_ENCODER, ANNOTATE_ENCODER + " --target-encoder in/encoder2"),
        "--detokenise": (ANNOTATE_ENCODER, ANNOTATE_ENCODER + " --detokenise zh"),
        "--prefix": (ANNOTATE_ENCODER, ANNOTATE_ENCODER + " --prefix 'house red '"),
        "--normalise": (ANNOTATE_ENCODER, ANNOTATE_ENCODER + " --normalise cosine"),
        "--encoder-store": (ANNOTATE_ENCODER, ANNOTATE_ENCODER + " --encoder-store store"),
        "--output": "-o other",
        "--moses-ini": (
            "{table} -m in/model -o out --moses-ini in/moses.ini --moses-ini-out ini",
            "{table} -m in/model -o out --moses-ini in/other.ini --moses-ini-out ini",
        ),
        "--moses-ini-out": "--moses-ini in/moses.ini --moses-ini-out ini",
        "--weight": (
            "{table} -m in/model -o out --moses-ini in/moses.ini --moses-ini-out ini",
            "{table} -m in/model -o out --moses-ini in/moses.ini --moses-ini-out ini --weight 0.5",
        ),
        "--relative": (
            "{table} -m in/model -o out --moses-ini in/moses.ini --moses-ini-out ini",
            "{table} -m in/model -o out --moses-ini in/moses.ini --moses-ini-out ini --relative",
        ),
        "--force": ("in/words-table -m in/model -o out", "in/words-table -m in/model -o out --force"),
    },
    "augment": {
        "--allow-empty": (
            "{empty} --text in/compounds -o out --force",
            "{empty} --text in/compounds -o out --force --allow-empty",
        ),
        "--text": "--text in/plain.de",
        "--evidence": "--evidence copy",
        "--rare": "--rare 9",
        "--monolingual": "--evidence meaning,copy --monolingual in/compounds",
        "--seed": "--seed 2 --evidence compound,inflection,copy",
        "--output": "-o other",
        "--reordering-table": (
            "{table} --text in/compounds -o out --reordering-table in/reordering --reordering-out reo",
            "{table} --text in/compounds -o out --reordering-table in/more.reordering --reordering-out reo",
        ),
        "--reordering-out": "--reordering-table in/reordering --reordering-out reo",
        "--list": "--list list",
        "--reference": "--reference in/compounds.ref",
        "--moses-ini": (
            "{table} --text in/compounds -o out --moses-ini in/moses.ini --moses-ini-out ini",
            "{table} --text in/compounds -o out --moses-ini in/other.ini --moses-ini-out ini",
        ),
        "--moses-ini-out": "--moses-ini in/moses.ini --moses-ini-out ini",
        "--weight": (
            "{table} --text in/compounds -o out --moses-ini in/moses.ini --moses-ini-out ini",
            "{table} --text in/compounds -o out --moses-ini in/moses.ini --moses-ini-out ini --weight 0.5",
        ),
        "--relative": (
            "{table} --text in/compounds -o out --moses-ini in/moses.ini --moses-ini-out ini",
            "{table} --text in/compounds -o out --moses-ini in/moses.ini --moses-ini-out ini --relative",
        ),
        "--force": ("{table} --text in/plain.en -o out", "{table} --text in/plain.en -o out --force"),
    },
    "remove-orphans": {
        "--reordering-table": (
            "{table} --reordering-table in/more.reordering -o out",
            "{table} --reordering-table in/reordering -o out",
        ),
        "--output": "-o other",
        "--max-line": Fails("--max-line 12", "bytes"),
        "--on-error": (
            "{table} --reordering-table in/malformed.reordering -o out",
            "{table} --reordering-table in/malformed.reordering -o out --on-error skip",
        ),
        "--allow-empty": (
            "{table} --reordering-table in/empty -o out",
            "{table} --reordering-table in/empty -o out --allow-empty",
        ),
        "--force": (
            "{table} --reordering-table in/table -o out",
            "{table} --reordering-table in/table -o out --force",
        ),
    },
    "filter-pt": {
        "-f": (BASES["filter-pt"], BASES["filter-pt"].replace("in/train.src", "in/train2.src")),
        "-e": (BASES["filter-pt"], BASES["filter-pt"].replace("in/train.trg", "in/train2.trg")),
        "-l": "-l a+e",
        "-n": "-n 1",
        "-i": "-i 0",
        "-h": Why("reads rules, whose tables are others", "tests/cli/test_filter_pt.py"),
        "--output": "-o other",
        "-c": "-c",
        "-p": "-p",
        "--index": "--index index",
        "-t": SPEED,
        "-m": Why("has no effect: scripts written for Moses' program give it"),
    },
    "threshold-filter": {
        "--keep-words": ("0:0.9 {table} -o out", "0:0.9 {table} -o out --keep-words"),
        "--output": "-o other",
    },
    "export": {
        "--sort": ("{unsorted} --to vmap --always 0 -o out", "{unsorted} --to vmap --always 0 -o out --sort"),
        "--to": ("{table} --to lexicon -o out.gz", "{table} --to bicleaner -o out.gz"),
        "--output": "-o other",
        "--format": "--format csv",
        "--languages": (TBX, TBX.replace("de,en", "fr,en")),
        "--reverse-out": (
            "{table} --to bicleaner -o out.gz",
            "{table} --to bicleaner -o out.gz --reverse-out reverse.gz",
        ),
        "--sample": "--min-probability 0 --sample 3",
        "--targets": "--min-probability 0 --targets 1",
        "--longest": "--min-probability 0 --longest 1",
        "--always": (SHORTLIST, SHORTLIST + " --always 3"),
        "--min-probability": "--min-probability 0.5",
        "--min-pair-count": "--min-probability 0 --min-pair-count 8",
        "--stop-words": "--min-probability 0 --stop-words 3",
        "--source-vocab": (SHORTLIST, SHORTLIST.replace("in/source.words", "in/fewer.words")),
        "--target-vocab": (SHORTLIST, SHORTLIST.replace("in/target.words", "in/fewer-target.words")),
        "--model": "-m in/model --min-probability 0",
        "--similarity-columns": (
            "in/annotated --to lexicon --min-probability 0 -o out",
            "in/annotated --to lexicon --min-probability 0 -o out --similarity-columns 5,6",
        ),
        "--scale": (
            "in/annotated --to lexicon --min-probability 0 -o out --similarity-columns 5,6",
            "in/annotated --to lexicon --min-probability 0 -o out --similarity-columns 5,6 --scale raw",
        ),
        "--evaluate": (SHORTLIST, SHORTLIST + " --evaluate in/one.src in/one.trg"),
        "--force": (
            "in/words-table --to lexicon -m in/model -o out",
            "in/words-table --to lexicon -m in/model -o out --force",
        ),
    },
    "pivot": {
        "--output": "-o other",
        "--extra-columns": "--extra-columns paths",
        "--similarity-columns": (
            "in/ab.similar in/bc.similar -o out",
            "in/ab.similar in/bc.similar -o out --similarity-columns 5,6",
        ),
        "--scale": (
            "in/ab.similar in/bc.similar -o out --similarity-columns 5,6",
            "in/ab.similar in/bc.similar -o out --similarity-columns 5,6 --scale raw",
        ),
        "--reordering-tables": (
            "in/ab in/bc -o out --reordering-tables in/ab.reordering in/bc.reordering --reordering-out reo",
            "in/ab in/bc -o out --reordering-tables in/ab.reordering2 in/bc.reordering --reordering-out reo",
        ),
        "--reordering-out": "--reordering-tables in/ab.reordering in/bc.reordering --reordering-out reo",
        "--keep-best": "--keep-best 1",
        "--min-probability": "--min-probability 0.4",
        "--counts": "--counts min",
        "--sort": ("in/ab.unsorted in/bc -o out", "in/ab.unsorted in/bc -o out --sort"),
        "--on-error": ("in/ab.malformed in/bc -o out", "in/ab.malformed in/bc -o out --on-error skip"),
        "--allow-empty": ("in/empty in/bc -o out", "in/empty in/bc -o out --allow-empty"),
        "--force": ("in/ab in/reordering -o out", "in/ab in/reordering -o out --force"),
    },
    "show": {
        "--target": ("in/both-ways a --index index", "in/both-ways a --target --index index"),
        "--contains": "--contains",
        "--limit": "--limit 1",
        "--model": "-m in/model",
        "--reasons": "--reasons in/reasons.parquet",
        "--index": ("in/table a --index index", "in/table a --index other"),
        "--quiet": ("in/table a --contains --index index", "in/table a --contains --index index -q"),
    },
    "report": {
        "--model": "-m in/model",
        "--moses-ini": "--moses-ini in/moses.ini",
        "--bitext": "--bitext in/train.src in/train.trg",
        "--dev": "--dev in/dev.src in/dev.trg",
        "--compare": "--compare in/small",
        "--output": "-o other",
        "--seed": "--seed 2",
    },
    "inspect": {
        "--tagger": (
            "in/syntax-table",
            "in/syntax-table --tagger in/tagger --language-bitext de in/plain.de en in/plain.en",
        ),
        "--language-bitext": (
            "in/syntax-table --tagger in/tagger --language-bitext de in/plain.de en in/plain.en",
            "in/syntax-table --tagger in/tagger --language-bitext de in/words.s en in/words.t",
        ),
        "--quiet": Why("silences a progress bar, which a terminal alone shows"),
    },
    "convert": {
        "--output": "-o other.parquet",
        "--part-entries": ("in/table -o parts --part-entries 100", "in/table -o parts --part-entries 40"),
    },
    "align": {
        "--output": "-o other",
        "--forward": "--forward forward",
        "--reverse": "--reverse reverse",
        "--symmetrise": "--symmetrise intersection",
        "--only-symmetrise": (
            "in/aligned in/aligned2 -o out --only-symmetrise",
            "in/aligned in/aligned -o out --only-symmetrise",
        ),
        "--aligner-model": "--aligner-model 1",
        "--priors": "--priors in/priors",
        "--iteration-factor": "--iteration-factor 0.1",
        "--seed": "--seed 2",
        "--unseeded": Fails("--seed 1 --unseeded", "--unseeded"),
    },
    "extract": {
        "--output": "-o other",
        "--reordering-out": "--reordering-out reo",
        "--lexical": "--lexical lex",
        "--max-length": "--max-length 2",
        "--smoothing": "--smoothing kneser-ney",
        "--reordering-smoothing": (
            "in/train.src in/train.trg in/aligned -o out --reordering-out reo",
            "in/train.src in/train.trg in/aligned -o out --reordering-out reo --reordering-smoothing 2",
        ),
    },
    "lm": {
        "--output": "-o other",
        "--order": "--order 2",
        "--prune": "--order 2 --prune 0 --prune 9",
        "--estimator": Fails("--estimator lmplz", "lmplz"),
    },
    "moses-ini": {
        "--table": ("--table in/table --lm in/lm.arpa -o out", "--table in/table.gz --lm in/lm.arpa -o out"),
        "--reordering-table": "--reordering-table in/reordering",
        "--output": "-o other",
        "--lm": ("--table in/table --lm in/lm.arpa -o out", "--table in/table --lm in/lm2.arpa -o out"),
        "--reordering-type": (
            "--table in/table --lm in/lm.arpa -o out --reordering-table in/reordering",
            "--table in/table --lm in/lm.arpa -o out --reordering-table in/reordering --reordering-type phrase-msd-bidirectional-fe",
        ),
        "--distortion-limit": "--distortion-limit 2",
        "--force": (
            "--table in/reordering --lm in/lm.arpa -o out",
            "--table in/reordering --lm in/lm.arpa -o out --force",
        ),
        "--name": (
            "in/moses.ini --table in/table -o out --name TranslationModel0",
            "in/moses.ini --table in/table -o out --name Other0",
        ),
        "--weight": (
            "in/moses.ini --table in/annotated -o out",
            "in/moses.ini --table in/annotated -o out --weight 0.5",
        ),
        "--relative": "--relative",
        "--quiet": Why("there is nothing to silence"),
    },
    "decode": {
        "--moses-ini": (DECODE, DECODE.replace("moses.ini", "other.ini")),
        "--table": "--table in/small-table",
        "--reordering-table": (
            "--moses-ini in/reordering.ini in/one.src -o out",
            "--moses-ini in/reordering.ini in/one.src -o out --reordering-table in/reordering2",
        ),
        "--output": "-o other",
        "--n-best-list": "--n-best-list nbest 3",
        "--all-derivations": (
            DECODE + " --n-best-list nbest 20",
            DECODE + " --n-best-list nbest 20 --all-derivations",
        ),
        "--segmentation": (DECODE + " --n-best-list nbest 3", DECODE + " --n-best-list nbest 3 --segmentation"),
        "--search": (DECODE, DECODE + " --search cube --pop-limit 1"),
        "--stack": "--stack 1",
        "--pop-limit": (DECODE + " --search cube --pop-limit 50", DECODE + " --search cube --pop-limit 1"),
        "--beam-threshold": "--beam-threshold 0.9",
        "--distortion-limit": "--distortion-limit 0",
        "--table-limit": "--table-limit 1",
        "--force": (DECODE.replace("one.src", "plain.en"), DECODE.replace("one.src", "plain.en") + " --force"),
    },
    "tune": {
        "--moses-ini": (TUNE, TUNE.replace("moses.ini", "other.ini")),
        "--table": "--table in/small-table",
        "--reordering-table": (
            TUNE.replace("moses.ini", "reordering.ini"),
            TUNE.replace("moses.ini", "reordering.ini") + " --reordering-table in/reordering2",
        ),
        "--dev": (TUNE, TUNE.replace("in/dev.src", "in/dev2.src")),
        "--reference": "-r in/dev2.trg",
        "--output": "-o other",
        "--log": "--log log",
        "--relative": "--relative",
        "--algorithm": "--algorithm pro",
        "--iterations": "--iterations 3",
        "--restarts": "--restarts 2",
        "--patience": (TUNE + " --iterations 8 --patience 1", TUNE + " --iterations 8 --patience 5"),
        "--n-best-size": "--n-best-size 3",
        "--seed": "--seed 2",
        "--search": "--search cube --pop-limit 1",
        "--stack": "--stack 1",
        "--pop-limit": (TUNE + " --search cube --pop-limit 50", TUNE + " --search cube --pop-limit 1"),
        "--beam-threshold": "--beam-threshold 0.9",
        "--distortion-limit": "--distortion-limit 0",
        "--table-limit": "--table-limit 1",
        "--force": (TUNE.replace("dev.src", "plain.en").replace("dev.trg", "plain.de").replace("--force", ""), TUNE),
    },
    "force-decode": {
        "--moses-ini": (
            BASES["force-decode"] + " --partial",
            BASES["force-decode"].replace("moses.ini", "other.ini") + " --partial",
        ),
        "--table": "--table in/small-table",
        "--reordering-table": (
            BASES["force-decode"].replace("moses.ini", "reordering.ini") + " --partial",
            BASES["force-decode"].replace("moses.ini", "reordering.ini")
            + " --partial --reordering-table in/reordering2",
        ),
        "--output": "-o other",
        "--leave-one-out": (
            "--moses-ini in/extracted.ini in/train.src in/train.trg -o out",
            "--moses-ini in/extracted.ini in/train.src in/train.trg -o out --leave-one-out",
        ),
        "--partial": "--partial",
        "--stack": (BASES["force-decode"] + " --partial", BASES["force-decode"] + " --partial --stack 1"),
        "--distortion-limit": (
            BASES["force-decode"] + " --partial",
            BASES["force-decode"] + " --partial --distortion-limit 0",
        ),
        "--force": (
            "--moses-ini in/moses.ini in/plain.en in/plain.de -o out",
            "--moses-ini in/moses.ini in/plain.en in/plain.de -o out --force",
        ),
    },
    "translate": {
        "--model": ("in/test.src -m in/forward -o out", "in/test.src -m in/untrained -o out"),
        "--new-words": Why("needs a translator that predicts vectors", "tests/cli/test_translate.py"),
        "--target-vectors": Why("needs a translator that predicts vectors", "tests/cli/test_translate.py"),
        "--output": "-o other",
        "--n-best-list": (
            "in/test.src -m in/untrained -o out --beam 4",
            "in/test.src -m in/untrained -o out --beam 4 --n-best-list nbest 2",
        ),
        "--drop-repetitions": (
            "in/test.src -m in/untrained -o out",
            "in/test.src -m in/untrained -o out --drop-repetitions",
        ),
        "--escape": Why("needs words that Moses escapes", "tests/cli/test_translate.py"),
        "--beam": ("in/test.src -m in/untrained -o out", "in/test.src -m in/untrained -o out --beam 4"),
        "--table": "--table in/list-table",
        "--dictionary": Why("needs a translator that predicts unknown words", "tests/cli/test_translate.py"),
    },
    "rescore": {
        "--source": Fails("--source in/dev.nbest.src", "in/dev.nbest.src"),
        "--model": (
            "in/test.nbest --source in/test.src -m in/forward -o out",
            "in/test.nbest --source in/test.src -m in/backward -o out",
        ),
        "--lm": "--lm in/target.arpa",
        "--output": "-o other",
        "--length-normalisation": "--length-normalisation none",
        "--each": (BASES["rescore"] + " -m in/forward2", BASES["rescore"] + " -m in/forward2 --each"),
        "--force": (
            "in/test.nbest --source in/train.src -m in/forward -o out",
            "in/test.nbest --source in/train.src -m in/forward -o out --force",
        ),
    },
    "rerank": {
        "--source": Fails("--source in/one.src", "in/one.src"),
        "--model": (RERANK, RERANK.replace("in/backward", "in/untrained")),
        "--lm": (RERANK + " --save-weights w", RERANK + " --save-weights w --lm in/target.arpa"),
        "--reference": "-r in/test.ref",
        "--dev-list": (RERANK, RERANK.replace("in/dev.nbest ", "in/dev.other.nbest ")),
        "--dev": Fails("--dev in/one.src in/one.trg", "in/one.src"),
        "--dev-reference": (RERANK, RERANK.replace("in/dev.nbest.ref", "in/dev.other.ref")),
        "--weights": (
            RERANK,
            "in/test.nbest --source in/test.src -m in/forward -m in/backward --weights in/weights -o out",
        ),
        "--tune": (RERANK + " --save-weights w", RERANK + " --save-weights w --tune all"),
        "--seed": (RERANK + " --save-weights w --tune all", RERANK + " --save-weights w --tune all --seed 2"),
        "--output": "-o other",
        "--reranked-list": "--reranked-list nbest",
        "--save-weights": "--save-weights w",
        "--length-normalisation": (
            RERANK + " --save-weights w",
            RERANK + " --save-weights w --length-normalisation none",
        ),
        "--each": (RERANK + " --save-weights w -m in/forward2", RERANK + " --save-weights w -m in/forward2 --each"),
        "--force": (
            RERANK.replace("--source in/test.src", "--source in/shuffled.src"),
            RERANK.replace("--source in/test.src", "--source in/shuffled.src") + " --force",
        ),
    },
    "tag": {
        "--model": ("in/plain.en -m in/tagger --language en -o out", "in/plain.en -m in/tagger2 --language en -o out"),
        "--language": Fails("--language xx", "xx"),
        "--format": "--format conllu",
        "--output": "-o other",
        "--allow-empty": (
            "in/empty -m in/tagger --language en -o out",
            "in/empty -m in/tagger --language en -o out --allow-empty",
        ),
    },
    "filter-bitext": {
        "--model": (
            "in/toy.s in/toy.t -m in/classifier -o out.s out.t",
            "in/toy.s in/toy.t -m in/classifier2 -o out.s out.t",
        ),
        "--encoder": (BITEXT_ENCODER, BITEXT_ENCODER.replace("in/encoder", "in/encoder2")),
        "--target-encoder": (BITEXT_ENCODER, BITEXT_ENCODER + " --target-encoder in/encoder2"),
        "--detokenise": (BITEXT_ENCODER + " --scores s", BITEXT_ENCODER + " --scores s --detokenise zh"),
        "--prefix": (BITEXT_ENCODER + " --scores s", BITEXT_ENCODER + " --scores s --prefix 'house red '"),
        "--lm": (BITEXT_MODELS, BITEXT_MODELS.replace("--lm in/target.arpa", "--lm in/source.arpa")),
        "--general-lm": (BITEXT_MODELS, BITEXT_MODELS + " --general-lm in/source.arpa"),
        "--source-lm": (BITEXT_MODELS, BITEXT_MODELS + " --source-lm in/source.arpa"),
        "--general-source-lm": (
            BITEXT_MODELS + " --source-lm in/source.arpa",
            BITEXT_MODELS + " --source-lm in/source.arpa --general-source-lm in/target.arpa",
        ),
        "--threshold": "--threshold 0.999",
        "--drop-copies": (
            "in/plain.en in/copied.en -m in/classifier --force -o out.s out.t --threshold 0",
            "in/plain.en in/copied.en -m in/classifier --force -o out.s out.t --threshold 0 --drop-copies",
        ),
        "--output": "-o other.s other.t",
        "--scores": "--scores scores",
        "--rejected": "--rejected rejected",
        "--explain": (BASES["filter-bitext"] + " --scores s", BASES["filter-bitext"] + " --scores s --explain"),
        "--allow-empty": (
            "in/empty in/empty2 -m in/classifier -o out.s out.t",
            "in/empty in/empty2 -m in/classifier -o out.s out.t --allow-empty",
        ),
        "--force": Why("needs a larger text", "tests/cli/test_filter_bitext.py"),
        "--keep": "--keep 30%",
        "--cross-train": Why("trains two classifiers", "tests/cli/test_filter_bitext.py"),
        "--dev": Why("trains two classifiers", "tests/cli/test_filter_bitext.py"),
    },
    "mine": {
        "--model": ("in/mixed.s in/mixed.t -m in/classifier -o out", "in/mixed.s in/mixed.t -m in/classifier2 -o out"),
        "--encoder": (MINE_ENCODER, MINE_ENCODER.replace("in/encoder", "in/encoder2")),
        "--target-encoder": (MINE_ENCODER, MINE_ENCODER + " --target-encoder in/encoder2"),
        "--detokenise": (MINE_ENCODER, MINE_ENCODER + " --detokenise zh"),
        "--prefix": (MINE_ENCODER, MINE_ENCODER + " --prefix 'house red '"),
        "--encoder-store": (MINE_ENCODER, MINE_ENCODER + " --encoder-store store"),
        "--neighbours": "--neighbours 1",
        "--margin-type": "--margin-type distance",
        "--retrieval": (
            "in/mixed.s in/half.t -m in/classifier -o out",
            "in/mixed.s in/half.t -m in/classifier -o out --retrieval forward",
        ),
        "--neighbour-search": SPEED,
        "--rerank": "--rerank 0",
        "--probability-weight": "--probability-weight 1",
        "--block-rows": SPEED,
        "--threshold": "--threshold 1.2",
        "--dev-gold": "--dev in/mixed.s in/mixed.t --dev-gold in/mixed.gold",
        "--dev": Fails("--dev in/mixed.s in/mixed.t", "--dev is for --dev-gold"),
        "--min-cosine": "--min-cosine 0.95",
        "--drop-copies": (
            "in/toy.s in/copied.s -m in/classifier -o out",
            "in/toy.s in/copied.s -m in/classifier -o out --drop-copies",
        ),
        "--ids": (
            "in/mixed.ids.s in/mixed.ids.t -m in/classifier -o out",
            "in/mixed.ids.s in/mixed.ids.t -m in/classifier -o out --ids",
        ),
        "--explain": "--explain",
        "--output": "-o other",
    },
    "evaluate-mining": {"--figure": "--figure figure.svg"},
    "evaluate": {
        "--reference": "-r in/hypothesis",
        "--metrics": "--metrics bleu",
        "--tokenize": "--tokenize char",
        "--paired": (
            "in/hypothesis in/one.trg -r in/reference",
            "in/hypothesis in/one.trg -r in/reference --paired approximate-randomization",
        ),
        "--samples": (
            "in/hypothesis in/one.trg -r in/reference --samples 50",
            "in/hypothesis in/one.trg -r in/reference --samples 90",
        ),
        "--margin": ("in/hypothesis in/one.trg -r in/reference", "in/hypothesis in/one.trg -r in/reference --margin 1"),
        "--seed": ("in/hypothesis in/one.trg -r in/reference", "in/hypothesis in/one.trg -r in/reference --seed 5"),
        "--runs": ("in/hypothesis in/one.trg -r in/reference", "in/hypothesis in/one.trg -r in/reference --runs 2"),
        "--quiet": Why("silences a progress bar, which a terminal alone shows"),
    },
    "evaluate-model": {
        "--model": ("in/pairs -m in/model", "in/pairs -m in/model2"),
        "--candidates": "--candidates 5",
        "--limit": "--limit 40",
        "--max-length": "--max-length 1",
        "--language": Fails("--language xx", "xx", "in/bank.en -m in/tagger"),
        "--words": Why("of syntactic encoders", "tests/cli/test_evaluate_syntax.py"),
        "--literal": Why("of syntactic encoders", "tests/cli/test_evaluate_syntax.py"),
        "--seed": "--seed 2",
        "--force": ("in/words-table -m in/model", "in/words-table -m in/model --force"),
        "--quiet": Why("silences a progress bar, which a terminal alone shows"),
    },
    "neighbours": {
        "--model": ("a -m in/model --pairs in/pairs", "a -m in/model2 --pairs in/pairs"),
        "--pairs": ("a -m in/model --pairs in/pairs", "a -m in/model --pairs in/small-table"),
        "--side": ("a -m in/model --pairs in/pairs", "v -m in/model --pairs in/pairs --side target"),
        "--sentences": (
            "The -m in/autoencoder --sentences in/plain.en",
            "The -m in/autoencoder --sentences in/plain2.en",
        ),
        "--neighbours": "--neighbours 2",
        "--device": Fails("--device nowhere", "nowhere", "The -m in/autoencoder --sentences in/plain.en"),
        "--quiet": Why("silences a progress bar, which a terminal alone shows"),
    },
    "reconstruct": {
        "--model": ("in/plain.en -m in/autoencoder", "in/plain.en -m in/autoencoder2"),
        "--limit": "--limit 3",
        "--by-length": "--by-length",
        "--output": "-o out",
        "--quiet": Why("silences a progress bar, which a terminal alone shows"),
    },
    "improve": {
        "--moses-ini": Fails("--moses-ini in/none.ini", "in/none.ini"),
        "--train": Fails("--train in/train.src in/one.trg", "lines"),
        "--dev": Fails("--dev in/dev.src in/one.trg", "lines"),
        "--test": Why("a run takes long", "tests/cli/test_improve.py"),
        "--oov-text": Why("a run takes long", "tests/cli/test_improve.py"),
        "--monolingual": Why("a run takes long", "tests/cli/test_improve.py"),
        "--without": Fails("--without tune", "columns have no effect before tuning"),
        "--size": Fails("--size 2% --without prune", "a size is given, but pruning is left out"),
        "--seed": Why("a run takes long", "tests/cli/test_improve.py"),
        "--force": Why("a run takes long", "tests/cli/test_improve.py"),
        "--output": Fails("-o in/table", "is a file, expected a folder"),
        "--quiet": Why("a run takes long"),
        "--verbose": Why("a run takes long"),
        "--json": Why("a run takes long", "tests/cli/test_improve.py"),
    },
    "experiment": {
        "--output": Why("two runs of an experiment take long"),
        "--quick": Why("two runs of an experiment take long", "tests/cli/test_experiment.py"),
        "--seed": Why("two runs of an experiment take long", "tests/cli/test_experiment.py"),
        "--force": Why("two runs of an experiment take long", "tests/cli/test_experiment.py"),
        "--quiet": Why("two runs of an experiment take long"),
        "--verbose": Why("two runs of an experiment take long"),
        "--json": Why("two runs of an experiment take long"),
    },
    "demo": {
        "--files": Why("the whole demo takes long", "tests/cli/test_demo.py"),
        "--json": Why("as in every command", "tests/cli/test_json_output.py"),
    },
    "compile": {
        "--demo": Why("compiling takes a minute", "tests/cli/test_json_output.py"),
        "--quiet": Why("compiling takes a minute"),
        "--verbose": Why("compiling takes a minute"),
        "--json": Why("compiling takes a minute"),
    },
    # Takes no options of its own.
    "ems-prune": {},
}


def options_of(name):
    """Return the longest spelling of each visible option of a command except --help."""
    with cli.make_context("phrasetool", [], resilient_parsing=True) as overview:
        command = cli.get_command(overview, name)
        with click.Context(command, parent=overview) as context:
            options = [
                parameter
                for parameter in command.get_params(context)
                if isinstance(parameter, click.Option) and not parameter.hidden
            ]
            return {max(option.opts, key=len) for option in options} - {"--help"}


def rows_of(name):
    """Return option -> row of a command, including the rows of `ANYWHERE` and `READING`."""
    rows = dict(ROWS[name])
    for option in options_of(name) - rows.keys():
        if option in ANYWHERE:
            rows[option] = ANYWHERE[option]
        elif option in READING:
            rows[option] = tuple(
                (BASES[name] if "{table}" in BASES[name] else "{table}").replace("{table}", text)
                for text in READING[option]
            )
    return rows


def test_every_option_has_a_row():
    for name in ROWS:
        options = options_of(name)
        rows = rows_of(name)
        assert options - rows.keys() == set(), f"{name}: options without a row"
        assert rows.keys() - options == set(), f"{name}: rows without an option"


def test_every_command_has_rows():
    assert COMMANDS.keys() - ROWS.keys() == {"train", "binarize"}


def write_table(folder, name, lines, change=lambda fields: fields):
    """Write lines of a table with changed fields; return the path."""
    fields = [change(line.rstrip(b"\n").split(b" ||| ")) for line in lines]
    return write(folder / name, b"".join(b" ||| ".join(line) + b"\n" for line in fields))


def reordering_lines(lines, seed):
    rng = random.Random(seed)
    for line in lines:
        source, target = line.split(b" ||| ")[:2]
        shares = [
            (first, second, 1 - first - second)
            for first, second in ((rng.uniform(0.1, 0.4), rng.uniform(0.1, 0.4)) for _ in "bf")
        ]
        scores = b" ".join(b"%.6f" % share for side in shares for share in side)
        yield b"%s ||| %s ||| %s\n" % (source, target, scores)


def write_inis(folder, lines):
    """Write inis, one with other weights and one with a reordering model, and reordering tables."""
    ini = INI.replace("path=", f"path={folder}/")
    ini = ini.replace("KENLM ", "KENLM ").replace("table.gz", "table")
    write(folder / "moses.ini", ini.encode())
    other_ini = ini.replace("LM0= 0.4", "LM0= 0.1").replace(
        "TranslationModel0= 0.3 0.2 0.4 0.1", "TranslationModel0= 0.1 0.1 0.9 0.1"
    )
    write(folder / "other.ini", other_ini.encode())
    feature = (
        f"LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff input-factor=0"
        f" output-factor=0 path={folder}/reordering\n[weight]\nLexicalReordering0= 0.5 0.3 0.3 0.3 0.3 0.3\n"
    )
    write(folder / "reordering.ini", ini.replace("[weight]\n", feature).encode())
    write(folder / "reordering", b"".join(reordering_lines(lines, 1)))
    write(folder / "reordering2", b"".join(reordering_lines(lines, 2)))
    longer = [*lines, b"zz zz ||| zz ||| 1\n"]
    write(folder / "more.reordering", b"".join(reordering_lines(longer, 3)))
    write(folder / "malformed.reordering", b"".join(reordering_lines(lines, 1)) + b"malformed\n")
    write(folder / "other.reordering", b"".join(reordering_lines([b"yy ||| yy ||| 1\n"] * 40, 3)))


def write_lists(folder):
    """Write n-best lists, and translators of their words: `forward`, `backward`, `untrained`."""
    lists = folder / "lists"
    lists.mkdir()
    make_lists(lists)
    for name in (
        "forward",
        "backward",
        "untrained",
        "test.src",
        "test.ref",
        "test.nbest",
        "target.arpa",
        "source.arpa",
    ):
        (lists / name).rename(folder / name)
    for old, new in (("dev.src", "dev.nbest.src"), ("dev.ref", "dev.nbest.ref"), ("dev.nbest", "dev.nbest")):
        (lists / old).rename(folder / new)
    shutil.copytree(folder / "forward", folder / "forward2")
    rng = random.Random(3)
    lines = (folder / "test.src").read_bytes().splitlines(keepends=True)
    write(folder / "shuffled.src", b"".join(rng.sample(lines, len(lines))))
    references = (folder / "dev.nbest.ref").read_bytes().splitlines(keepends=True)
    write(folder / "dev.other.ref", b"".join(rng.sample(references, len(references))))
    listed = (folder / "dev.nbest").read_bytes().splitlines(keepends=True)
    write(folder / "dev.other.nbest", b"".join(line for line in listed if rng.random() < 0.7))
    source = (folder / "test.src").read_bytes()
    write(folder / "unknown.src", source.replace(b"s1 ", b"qq "))
    write(folder / "escaped.src", source.replace(b"s1 ", b"&amp; "))
    write(folder / "dictionary", b"qq ||| QQ\n")
    words = [(b"s%d" % i, b"t%d" % j) for i in range(12) for j in (i, (i + 1) % 12)]
    write(
        folder / "list-table",
        b"".join(b"%s ||| %s ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 2 2 1\n" % pair for pair in sorted(words)),
    )
    outcome = run_inside("rerank", *shlex.split(RERANK.replace("in/", f"{folder}/").replace("-o out", f"-o {folder}/x")), "--save-weights", folder / "weights", "--tune", "all", "-q")  # fmt: skip
    assert outcome.code == 0, outcome.err


def write_sentences(folder, classifier_folder, toy_tagger_folder, syntax_folder):
    """Write sentence models and texts for them."""
    for name, model in (("classifier", classifier_folder), ("tagger", toy_tagger_folder), ("syntax", syntax_folder)):
        shutil.copytree(model, folder / name)
    random_parallel_model(3).save(folder / "classifier2")
    for name, seed in (("plain", 1), ("plain2", 2)):
        for language, lines in zip(("en", "de"), syntax_lines(30, seed), strict=True):
            write(folder / f"{name}.{language}", "".join(line + "\n" for line in lines).encode())
    sides = toy_lines(40)
    rng = random.Random(4)
    order = rng.sample(range(40), 40)
    for side, lines, indices in zip("st", sides, (range(40), order), strict=True):
        write(folder / f"toy.{side}", b"".join(line + b"\n" for line in lines))
        write(folder / f"mixed.{side}", b"".join(lines[i] + b"\n" for i in indices))
        write(folder / f"mixed.ids.{side}", b"".join(b"%s%d\t%s\n" % (side.encode(), i, lines[i]) for i in indices))
    write(folder / "half.t", b"".join(line + b"\n" for line in sides[1][:20]))
    write(folder / "mixed.gold", b"".join(b"%s\t%s\n" % pair for pair in zip(*sides, strict=True)))
    write(folder / "mined", b"".join(b"%.3f\t%s\t%s\n" % (rng.random(), *pair) for pair in zip(*sides, strict=True)))
    write(folder / "gold", b"".join(b"%s\t%s\n" % pair for pair in list(zip(*sides, strict=True))[:30]))
    for name in ("plain.en", "toy.s"):
        shutil.copy(folder / name, folder / f"copied.{name[-2:].lstrip(chr(46))}")
    treebank_file(folder / "bank.en", "en", 30, 5)
    for name, seed in (("autoencoder", 1), ("autoencoder2", 2)):
        options = ("--word-units", 8, "--hidden", 16, "--epochs", 1, "--min-count", 1, "--seed", seed, "--threads", 1)
        outcome = run_inside("train", "autoencoder", folder / "plain.en", "-o", folder / name, *options, "-q")
        assert outcome.code == 0, outcome.err
    banks = [
        x for name in ("en", "de") for x in ("--treebank", name, treebank_file(folder / f"bank2.{name}", name, 30, 9))
    ]
    options = [x for name, value in TAGGER.items() for x in (f"--{name.replace('_', '-')}", value)]
    outcome = run_inside("train", "tagger", *banks, *options, "--epochs", 1, "-o", folder / "tagger2", "-q")
    assert outcome.code == 0, outcome.err
    pairs = sorted(
        set(zip(*[[line.split()[1] for line in lines] for lines in reversed(syntax_lines(30))], strict=True))
    )
    write(
        folder / "syntax-table",
        "".join(f"{s} ||| {t} ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n" for s, t in pairs).encode(),
    )
    static_folder(folder / "encoder")
    rng = np.random.default_rng(8)
    static_folder(folder / "encoder2", vectors=rng.normal(size=(len(WORDS), 8)))
    write(folder / "words-table", lines_of_words(200))
    lines = [line.split(b" ||| ")[:2] for line in lines_of_words(60).splitlines()]
    for number, side in enumerate("st"):
        write(folder / f"words.{side}", b"".join(line[number] + b"\n" for line in lines))


def write_pivots(folder, lines):
    """Write source-pivot and pivot-target tables, and variants of them."""
    back = sorted(
        b" ||| ".join([fields[1], fields[0], *fields[2:]]) for fields in (line.split(b" ||| ") for line in lines)
    )
    write(folder / "ab", b"".join(lines))
    write(folder / "bc", b"".join(back))
    write(folder / "ab.unsorted", b"".join(reversed(lines)))
    write(folder / "ab.malformed", b"".join(lines[:9]) + b"malformed\n" + b"".join(lines[9:]))
    rng = random.Random(11)
    for name, part in (("ab", lines), ("bc", back)):

        def similar(fields):
            cosines = b"%.3f %.3f" % (rng.uniform(0.2, 0.9), rng.uniform(0.2, 0.9))
            return [*fields[:2], fields[2] + b" " + cosines, *fields[3:]]

        write_table(folder, f"{name}.similar", part, similar)
        write(folder / f"{name}.reordering", b"".join(reordering_lines(part, 1)))
    write(folder / "ab.reordering2", b"".join(reordering_lines(lines, 2)))


def write_alignments(folder):
    """Write two random alignments of the training text, and a model extracted with the first."""
    sides = [(folder / f"train.{side}").read_bytes().splitlines() for side in ("src", "trg")]
    rng = random.Random(2)
    for name in ("aligned", "aligned2"):
        lines = []
        for source, target in zip(*sides, strict=True):
            points = {(rng.randrange(len(source.split())), rng.randrange(len(target.split()))) for _ in range(4)}
            lines.append(b" ".join(b"%d-%d" % point for point in sorted(points)) + b"\n")
        write(folder / name, b"".join(lines))
    outcome = run_inside(
        "extract", folder / "train.src", folder / "train.trg", folder / "aligned", "-o", folder / "extracted", "-q"
    )
    assert outcome.code == 0, outcome.err
    ini = (folder / "moses.ini").read_bytes()
    write(folder / "extracted.ini", ini.replace(b"/table ", b"/extracted "))
    write(folder / "priors", b"LEX a v 30\nLEX b w 30\n")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, classifier_folder, toy_tagger_folder, syntax_folder):
    """Return the folder of all input files, which rows name as `in/`."""
    folder = tmp_path_factory.mktemp("inputs") / "in"
    write_experiment(folder)
    lines = sorted(table_lines())
    write_table(folder, "table", lines)
    write(folder / "malformed", b"".join(lines[:40]) + b"malformed\n" + b"".join(lines[40:]))
    write(folder / "unsorted", b"".join(random.Random(1).sample(lines, len(lines))))
    for name in ("empty", "empty2"):
        write(folder / name, b"")
    write(folder / "small-table", b"".join(line for line in lines if b" " not in line.partition(b" ||| ")[0]))
    write_inis(folder, lines)
    write_lists(folder)
    write_sentences(folder, classifier_folder, toy_tagger_folder, syntax_folder)
    write_pivots(folder, lines)
    write_alignments(folder)
    shutil.copy(folder / "lm.arpa", folder / "lm2.arpa")
    rng = random.Random(5)
    for name, sentences in (("train2", 60), ("dev2", 12)):
        write_texts(folder, name, sentences, rng)
    for name in ("pairs", "pairs2"):
        chosen = rng.sample(lines, 150)
        write_table(folder, name, sorted(chosen), lambda fields: [*fields[:2], b"%d" % rng.randint(1, 9)])
    small_model(7).save(folder / "model2")
    outcome = run_inside("annotate", folder / "table", "-m", folder / "model", "-o", folder / "annotated", "-q")
    assert outcome.code == 0, outcome.err
    write(folder / "both-ways", b"a ||| b ||| 0.5\na ||| c ||| 0.25\nb ||| a ||| 0.125\n")
    outcome = run_inside(
        "prune", folder / "table", "-m", folder / "model", "-t", "0.2", "--reasons", folder / "reasons.parquet", "-o",
        folder / "small", "-q",
    )  # fmt: skip
    assert outcome.code == 0
    write(folder / "compounds", b"ab bc\nab cd abcd\na b c\n")
    write(folder / "compounds.ref", b"v w\nw x ab\nv w x\n")
    write(folder / "hypothesis", (folder / "one.trg").read_bytes().replace(b"v", b"w"))
    shutil.copy(folder / "one.trg", folder / "reference")
    for name, words in (
        ("source.words", SOURCE),
        ("target.words", TARGET),
        ("fewer.words", SOURCE[:3]),
        ("fewer-target.words", TARGET[:3]),
    ):
        write(folder / name, b"".join(word + b"\n" for word in words))
    return folder


@pytest.fixture(scope="module")
def only_place(inputs, tmp_path_factory):
    """Return the working directory: the same for all tests, because some outputs contain its path."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "in").symlink_to(inputs)
    return folder


@pytest.fixture
def place(only_place, monkeypatch):
    """Change into the working directory, which has the inputs as `in/`; return it."""
    monkeypatch.chdir(only_place)
    return only_place


def observed(name, line, place):
    """Run a command; return its outcome, and its code, streams without times, and digests of its files."""
    for path in place.iterdir():
        if path.name != "in":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    tables = {kind: f"in/{kind}" for kind in ("table", "malformed", "empty", "unsorted", "reordering")}
    outcome = run_inside(name, *shlex.split(line.format(**tables)))
    streams = [
        re.sub(r"[0-9][0-9:.,]* ?(ms|s)\b", "TIME", text)
        for text in (outcome.err, outcome.out.decode("utf-8", "replace"))
    ]
    files = {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*")) if path.is_file() and "in" not in path.relative_to(place).parts[:1]
    }  # fmt: skip
    return outcome, (outcome.code, streams, files)


OBSERVED = {}


def observed_once(name, line, place):
    """Return the result of `observed`, cached because many rows begin with the same command."""
    if (name, line) not in OBSERVED:
        OBSERVED[name, line] = observed(name, line, place)
    return OBSERVED[name, line]


def options_with_runs(name):
    """Return the options of a command whose effect is checked by runs."""
    return sorted(option for option, row in rows_of(name).items() if not isinstance(row, Why))


def check_option(name, option, place):
    """Check that an option changes the output."""
    row = rows_of(name)[option]
    if isinstance(row, Fails):
        outcome, _ = observed(name, f"{row.base or BASES[name]} {row.arguments}", place)
        assert outcome.code in (1, 2), outcome.err
        assert row.message in outcome.err
        return
    before, after = row if isinstance(row, tuple) else (BASES[name], f"{BASES[name]} {row}")
    outcome_without, result_without = observed_once(name, before, place)
    outcome_with, result_with = observed(name, after, place)
    assert 2 not in (outcome_without.code, outcome_with.code), outcome_without.err + outcome_with.err
    assert 0 in (outcome_without.code, outcome_with.code), outcome_without.err + outcome_with.err
    assert result_without != result_with


@pytest.mark.parametrize("name", [name for name in ROWS if options_with_runs(name)])
def test_options_change_the_output(name, place):
    for_each("option", options_with_runs(name))(check_option)(name=name, place=place)


def test_the_file_of_a_reason_names_the_option():
    for name in ROWS:
        for option, row in rows_of(name).items():
            if isinstance(row, Why):
                assert row.reason, (name, option)
                assert not row.file or option in (ROOT / row.file).read_text("utf-8"), (name, option)


# The other commands are slow and have separate tests.
@for_each("name", sorted(BASES.keys() - {"improve", "experiment", "demo", "compile"}))
def test_repeated_commands_give_the_same_output(name, place):
    outcome, result = observed_once(name, BASES[name], place)
    assert outcome.code == 0, outcome.err
    assert observed(name, BASES[name], place)[1] == result
