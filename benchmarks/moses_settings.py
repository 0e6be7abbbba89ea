"""Does our decoder ignore a setting of a moses.ini that changes Moses' output?

Every section of Moses, with several values, and every argument of the features that our decoder supports, is added to
the ini of a small model.  A real Moses and our decoder translate the same text with this ini: our decoder must print
the same translations with the same scores, or reject the setting by its name.  `passed over` in the results must be
empty.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from measuring import ROOT, report

from moses_compat.ini.reading import SUPPORTED, known_sections
from tests import moses_settings

# Values of sections; other sections are tried with `_SWITCHES`.
_SWITCHES = ("0", "1", "false", "true", "2")
_VALUES: dict[str, tuple[tuple[str, ...], ...]] = {
    "mapping": (("0 T 0",), ("T 0",), ("0 T 1",), ("0 G 0",), ("0 TM",)),
    "input-factors": (("0",), ("0", "1"), ("1",)), "output-factors": (("0",), ("0", "1"), ("1",)),
    "distortion-limit": (("0",), ("2",), ("-1",), ("x",)), "stack": (("1",), ("3",), ("200",), ("0",)),
    "beam-threshold": (("0.5",), ("0",), ("1e-5",), ("2",)), "search-algorithm": (("0",), ("1",), ("4",), ("5",)),
    "max-phrase-length": (("1",), ("2",), ("20",), ("30",), ("0",)),
    "max-trans-opt-per-coverage": (("1",), ("2",), ("0",), ("5000",)),
    "max-partial-trans-opt": (("1",), ("10000",)), "n-best-factor": (("20",), ("1",)),
    "translation-option-threshold": (("0",), ("0.9",)), "early-discarding-threshold": (("0",), ("0.5",)),
    "unknown-word-prefix": (("<",),), "unknown-word-suffix": ((">",),),
    "weight-overwrite": (("LM= 5",), ("TM= x 2",), ("TM= 0.1 0.2 LM= 0.1",), ("TM= 1",), ("Other= 1",)),
    "weight-add": (("LM= 5",), ("Other= 1",)), "feature-overwrite": (("TM table-limit=1",),),
    "feature-add": (("PhrasePenalty",),), "feature-name-overwrite": (("KENLM KENLM",),),
    "factor-delimiter": (("|",), ("-",)), "xml-input": (("pass-through",), ("exclusive",), ("0",)),
    "threads": (("1",), ("2",), ("all",)), "time-out": (("0",), ("-1",), ("100",)),
    "segment-time-out": (("0",), ("-1",), ("100",)), "description": (("a", "b"),), "references": (("file",),),
    "n-best-list": (("list", "2"),), "lattice-samples": (("list", "2"),), "weight-file": (("file",),),
    "alternate-weight-setting": (("id=1", "LM= 2"),), "decoding-graph-backoff": (("0",), ("1",)),
    "xml-brackets": (("{{ }}",),), "non-terminals": (("X",),), "unknown-lhs": (("file",),),
    "context-window": (("1",), ("all",)), "context-weights": (("a:1",),), "session-timeout": (("30m",),),
    "input-file": (("file",),), "output-search-graph-slf": (("folder",),), "server-log": (("file",),),
    "output-search-graph-hypergraph": (("true", "txt", "folder"),), "output-word-graph": (("file", "0"),),
    **dict.fromkeys(("spe-src", "spe-trg", "spe-aln"), (("file",),)),
    # With these, Moses runs as a server and does not exit.
    "server": (("true",),), "daemon": (("true",),),
}  # fmt: skip
_OTHER_SECTIONS = (
    ("distorsion-limit", "0"), ("dl", "0"), ("s", "1"), ("mu", "1"), ("Stack", "1"), (" stack", "1"), ("table", "x"),
    ("ttable-limit", "1"), ("input-type", "1"), ("", "x"), ("mark-unknown",), ("drop-unknown",), ("no-such-section",),
)  # fmt: skip
_GENERAL = (
    "num-features=1", "num-features=2", "num-features=0", "tuneable=true", "tuneable=no", "tuneable=2",
    "tuneable-components=true", "tuneable-components=true,false", "verbosity=2", "filterable=false",
    "require-sorting-after-source-context=false", "require-sorting-after-source-context=true", "no-such-argument=1",
)  # fmt: skip
_FACTORS = ("input-factor=0", "input-factor=1", "output-factor=0", "output-factor=1")
_ARGUMENTS = {
    "UnknownWordPenalty": (), "WordPenalty": (), "PhrasePenalty": ("per-phrase-table=false", "per-phrase-table=true"),
    "Distortion": (
        "sparse=false", "sparse=true", "sparse-distance=true", "sparse-input-factor=0", "sparse-output-factor=0",
        "sparse-subordinate=x", "sparse-subordinate-output-factor=0",
    ),
    "LexicalReordering": (
        *_FACTORS, "default-scores=0.5,0.5,0.5,0.5,0.5,0.5", "sparse-phrase=1", "sparse-words-top=file", "type=msd",
        "type=wbe-msd-bidirectional-f-allff", "type=wbe-mslr-bidirectional-fe-allff", "type=hier-msd-forward-fe",
    ),
    "PhraseDictionaryMemory": (
        *_FACTORS, "table-limit=1", "table-limit=0", "table-limit=x", "tabel-limit=1", "cache-size=5", "load=lazy",
    ),
    "KENLM": (
        "factor=0", "factor=1", "order=1", "order=7", "load=lazy", "load=read", "load=fast", "lazyken=1", "lazyken=x",
        "oov-feature=0", "oov-feature=1", "input-factor=0",
    ),
}  # fmt: skip


def inis() -> dict[str, tuple[str, str]]:
    """Map the description of a setting to its section, or its class and argument, and to the text of the ini."""
    settings = {}
    for name in sorted({*known_sections()} - {"feature", "weight"}):
        for values in _VALUES.get(name, tuple((value,) for value in _SWITCHES)):
            # Prefix and suffix have an effect only if unknown words are marked.
            additional_lines = ["[mark-unknown]", "1"] if name.startswith("unknown-word") else []
            settings[f"[{name}] {', '.join(values)}"] = (
                f"[{name}]",
                moses_settings.with_section(name, *values, *additional_lines),
            )
    for name, *values in _OTHER_SECTIONS:
        settings[f"[{name}] {', '.join(values)}"] = f"[{name}]", moses_settings.with_section(name, *values)
    for kind, arguments in _ARGUMENTS.items():
        for argument in (*_GENERAL, *arguments):
            settings[f"{kind} {argument}"] = (
                f"{kind} {argument.split('=')[0]}=", moses_settings.with_argument(kind, argument)
            )  # fmt: skip
    return settings


def classified(outcomes: dict[str, Counter[str]]) -> dict[str, list[str]]:
    """Classify sections and arguments by our decoder's behaviour."""
    known, supported = ({f"[{section}]" for section in names} for names in (known_sections(), SUPPORTED))
    classes: dict[str, list[str]] = {
        "supported": [], "no effect": [], "only switched off": [], "refused": [], "unknown": []
    }  # fmt: skip
    for name, counts in sorted(outcomes.items()):
        accepted = counts["same"] == counts.total()
        if name in supported:
            kind = "supported"
        elif name.startswith("[") and name not in known:
            kind = "unknown"
        elif name.startswith("["):
            kind = "no effect" if accepted else "only switched off" if counts["same"] else "refused"
        else:
            kind = "supported" if counts["same"] else "refused"
        classes[kind].append(name)
    return classes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verbose", action="store_true", help="print what both decoders do with each setting")
    verbose = parser.parse_args().verbose
    moses = shutil.which("moses") or shutil.which("moses", path=os.environ.get("MOSES_BIN"))
    if moses is None:
        raise SystemExit("the program moses is neither on the PATH nor in MOSES_BIN")
    outcomes: dict[str, Counter[str]] = {}
    passed_over: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        moses_settings.write_files(Path(folder))
        os.chdir(folder)
        settings = inis()
        for name, (setting, ini) in settings.items():
            moses_outcome, our_outcome = moses_settings.of_moses(moses, ini), moses_settings.of_ours(ini)
            verdict = moses_settings.verdict(moses_outcome, our_outcome)
            if verbose:
                print(f"{name}: {verdict}  {moses_outcome.message[:80]} | {our_outcome.message}", flush=True)
            if verdict not in ("same", "refused", "both stop"):
                passed_over[name] = verdict
            outcomes.setdefault(setting, Counter())[verdict if name not in passed_over else "passed over"] += 1
        os.chdir(ROOT)
    document: dict[str, Any] = {
        "settings": len(settings), "sections and arguments": len(outcomes), "passed over": passed_over,
        "classes": classified(outcomes),
    }  # fmt: skip
    report("moses_settings", document)


if __name__ == "__main__":
    main()
