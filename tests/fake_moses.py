"""Stand-ins for Moses' binarisers: they take the same arguments, check their input in the same way and fail with
errors; their output records their arguments and input."""

import os
import stat
import sys

PROGRAMS = ("processPhraseTableMin", "processLexicalTableMin", "CreateProbingPT", "CreateOnDiskPt")

_SOURCE = '''#!{python} -ES
import gzip, json, os, sys, time

NAME = os.path.basename(sys.argv[0])
ARGUMENTS = sys.argv[1:]


def fail(message):
    print("ERROR:", message, file=sys.stderr)
    sys.exit(1)


def lines_of(path):
    """By the name alone, as Moses does."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        text = file.read()
    if text[:2] == b"\\x1f\\x8b":
        fail("compressed data read as text")
    return text.removesuffix(b"\\n").split(b"\\n")


def options(known, flags=()):
    found, rest = {{}}, list(ARGUMENTS)
    while rest:
        name = rest.pop(0)
        if name in flags:
            found[name] = True
        elif name in known and rest:
            found[name] = rest.pop(0)
        else:
            fail("unknown option " + name)
    return found


def record(path, lines):
    with open(path, "wb") as file:
        file.write(json.dumps([NAME, ARGUMENTS]).encode() + b"\\n" + b"\\n".join(lines))


def fields_of(line):
    return [field.strip(b" \\t\\n\\r\\f\\v") for field in line.split(b"|||")]


def ascending(keys):
    for before, after in zip(keys, keys[1:]):
        if before > after:
            fail("Input file does not appear to be sorted with  LC_ALL=C sort")
        if before == after:
            os.abort()


def phrase_table_min():
    given = options(("-in", "-out", "-nscores", "-threads", "-rankscore", "-encoding", "-quantize"))
    scores = int(given.get("-nscores", 4))
    if int(given.get("-rankscore", 2)) >= scores:
        print("ERROR: -rankscore is out of range", file=sys.stderr)
        sys.stderr.flush()
        os.abort()
    encoded = given.get("-encoding") != "None"
    lines = lines_of(given["-in"])
    pairs, sources = [], []
    for line in lines:
        fields = fields_of(line)
        if len(fields) < (4 if encoded else 3):
            fail("wrong format")
        if encoded and len(fields[3]) <= 1:
            fail("no alignment information; Use -encoding None")
        if len(fields[2].split()) != scores:
            fail("wrong number of scores")
        pairs.append(fields[0] + b" ||| " + fields[1] + b" ||| ")
        if not sources or sources[-1] != fields[0] + b" ||| ":
            sources.append(fields[0] + b" ||| ")
    if encoded:
        ascending(pairs)
    ascending(sources)
    record(given["-out"] + ".minphr", lines)


def lexical_table_min():
    given = options(("-in", "-out", "-threads"))
    lines = lines_of(given["-in"])
    keys, count = [], None
    for line in lines:
        fields = line.split(b" ||| ")
        scores = fields[-1].split()
        if count not in (None, len(scores)):
            fail("Wrong number of scores detected")
        count = len(scores)
        keys.append(fields[0] + b" ||| " + (fields[1] + b" ||| " if len(fields) > 2 and fields[1] else b""))
    ascending(keys)
    record(given["-out"] + ".minlexr", lines)


def probing():
    given = options(
        ("--num-scores", "--num-lex-scores", "--input-pt", "--output-dir", "--max-cache-size"), ("--scfg", "--log-prob")
    )
    scores, lexical = int(given.get("--num-scores", 4)), int(given.get("--num-lex-scores", 0))
    lines = lines_of(given["--input-pt"])
    sources = []
    for line in lines:
        fields = fields_of(line)
        if any(not token for token in fields[2].split(b" ")) or len(fields[2].split(b" ")) != scores:
            fail("the real program would write garbage")
        if b"  " in fields[0] or b"  " in fields[1] or b"\\t" in line or b"\\r" in line:
            fail("the real program would make empty tokens")
        properties = fields[6] if len(fields) > 6 else b""
        found = properties.partition(b"{{{{LexRO ")[2].partition(b"}}}}")[0]
        if len(found.split()) != lexical:
            fail("the real program would write garbage after the scores")
        if not sources or sources[-1] != fields[0]:
            sources.append(fields[0])
    if len(set(sources)) != len(sources) and "--scfg" not in given:
        fail("Hash table is full")
    folder = given["--output-dir"]
    os.makedirs(folder, exist_ok=True)
    for name in ("probing_hash.dat", "TargetVocab.dat", "source_vocabids", "Alignments.dat", "cache"):
        record(os.path.join(folder, name), [])
    record(os.path.join(folder, "TargetColl.dat"), lines)
    claimed = os.environ.get("FAKE_SCORES", scores)
    with open(os.path.join(folder, "config"), "w") as file:
        file.write("API_VERSION\\t15\\nuniq_entries\\t%d\\nnum_scores\\t%s\\n" % (len(sources), claimed))
        file.write("num_lex_scores\\t%d\\nlog_prob\\t0\\n" % lexical)


def on_disk():
    if len(ARGUMENTS) != 7:
        fail("Usage: numSourceFactors numTargetFactors numScores tableLimit sortScoreIndex inputPath outputPath")
    source_factors, target_factors, scores, limit, rank = map(int, ARGUMENTS[:5])
    if rank >= scores:
        os.abort()
    lines = lines_of(ARGUMENTS[5])
    left, now = set(), []
    for line in lines:
        words = [token for token in line.split(b" ") if token]
        stage = counted = 0
        for word in words:
            if word == b"|||":
                stage += 1
            elif stage == 2:
                counted += 1
            elif stage > 6:
                os.abort()
        if counted != scores:
            os.abort()
        source = words[: words.index(b"|||")]
        same = 0
        while same < min(len(source), len(now)) and source[same] == now[same]:
            same += 1
        # Nodes that are left are written; they cannot be entered again.
        for end in range(same + 1, len(now) + 1):
            if same < len(source):
                left.add(tuple(now[:end]))
        if any(tuple(source[:end]) in left for end in range(1, len(source) + 1)):
            fail("Already saved")
        now = source if same < len(source) else now
    folder = ARGUMENTS[6]
    os.mkdir(folder)
    for name in ("Source.dat", "TargetInd.dat", "Vocab.dat"):
        record(os.path.join(folder, name), [])
    record(os.path.join(folder, "TargetColl.dat"), lines)
    with open(os.path.join(folder, "Misc.dat"), "w") as file:
        file.write("Version 7\\nNumSourceFactors %d\\nNumTargetFactors %d\\n" % (source_factors, target_factors))
        file.write("NumScores %d\\nRootNodeOffset 1\\n" % scores)


print("Starting...", file=sys.stderr)
if os.environ.get("FAKE_FAILURE") == NAME:
    print("cmph: no memory", file=sys.stderr)
    sys.exit(3)
if os.environ.get("FAKE_SLEEP") == NAME:
    open("half", "w").close()
    time.sleep(60)
if os.environ.get("FAKE_NOTHING") != NAME:
    {{
        "processPhraseTableMin": phrase_table_min, "processLexicalTableMin": lexical_table_min,
        "CreateProbingPT": probing, "CreateOnDiskPt": on_disk,
    }}[NAME]()
'''


def install(folder, programs=PROGRAMS):
    """Write the programs to a folder; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in programs:
        path = folder / name
        path.write_text(_SOURCE.format(python=os.path.realpath(sys.executable)))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder
