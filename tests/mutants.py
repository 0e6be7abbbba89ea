"""Check that tests detect defects: put one defect at a time into the code, and run the tests that must then fail.

    .venv/bin/python tests/mutants.py [PART OF A NAME ...]

The committed state is checked out into a temporary git worktree.  The named tests must pass there first; then each
mutant is applied, its tests are run, and the file is restored.  The exit code is 1 if a mutant survives, if the text
to replace does not occur exactly once, or if a test cannot be run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("phrasetool", "moses_compat")
# Exit codes of pytest.
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Mutant:
    """A defect.

    Attributes:
        name: description of the defect.
        file: path of the changed file, relative to the repository.
        old: text to replace, which must occur exactly once in the file.
        new: replacement text.
        tests: pytest node IDs of the tests; each of them must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = [
    Mutant(
        "threshold: an entry at the threshold is removed",
        "phrasetool/pruning/decision.py",
        "ranking.scores < ranking.scores.dtype.type(threshold)",
        "ranking.scores <= ranking.scores.dtype.type(threshold)",
        ("tests/phrasetool/pruning/test_decision.py::test_a_threshold_removes_entries_with_lower_scores",),
    ),
    Mutant(
        "ten best: nine are kept",
        "phrasetool/pruning/protection.py",
        "return best_of_groups(group_offsets, keys, self.k, eligible)",
        "return best_of_groups(group_offsets, keys, min(self.k, 9), eligible)",
        ("tests/cli/test_prune.py::test_rule_on_moses_tables",),
    ),
    Mutant(
        "protection: sources of two words count as one word",
        "phrasetool/pruning/protection.py",
        "eligible &= np.repeat(source_lengths == 1,",
        "eligible &= np.repeat(source_lengths <= 2,",
        ("tests/cli/test_prune.py::test_rule_on_moses_tables",),
    ),
    Mutant(
        "ties: the later one of equal entries is kept",
        "phrasetool/pruning/protection.py",
        'np.argsort(-keys[first:last], kind="mergesort")',
        'np.argsort(keys[first:last], kind="mergesort")[::-1]',
        ("tests/phrasetool/pruning/test_protection.py::test_best_of_groups",),
    ),
    Mutant(
        "criteria: significance without a bitext is accepted",
        "moses_compat/jobs/prune_request.py",
        "if SIGNIFICANCE in method.needs and self.corpora is None:",
        "if SIGNIFICANCE in method.needs and self.table is None:",
        ("tests/cli/test_prune_method.py::test_bad_requests",),
    ),
    Mutant(
        "filter-pt: the worst entries are kept",
        "moses_compat/jobs/moses_filters.py",
        "best_of_groups(scan.group_offsets, scan.columns[:, 0], self.top, best)",
        "best_of_groups(scan.group_offsets, -scan.columns[:, 0], self.top, best)",
        ("tests/moses_compat/jobs/test_moses_filters.py::test_equals_the_naive_filter",),
    ),
    Mutant(
        "threshold-filter: sources of two words are saved",
        "moses_compat/jobs/moses_filters.py",
        "lost &= block.source_lengths == 1",
        "lost &= block.source_lengths <= 2",
        ("tests/moses_compat/jobs/test_moses_filters.py::test_threshold_equals_the_naive_filter",),
    ),
    Mutant(
        "table parsing: bars of two separators overlap",
        "moses_compat/tables/parser.py",
        "second = find_separator(text, first + 3, end) if first >= 0 else -1",
        "second = find_separator(text, first + 1, end) if first >= 0 else -1",
        ("tests/moses_compat/tables/test_parser.py::test_scan_agrees_with_naive",),
    ),
    Mutant(
        "gzip: a truncated file is read as a shorter one",
        "moses_compat/files/streams.py",
        'raise self._fault("end too early (truncated file?)") from error',
        'return b"".join(pieces)',
        ("tests/moses_compat/files/test_streams.py::test_every_truncation_is_an_error",),
    ),
    Mutant(
        "output: a run that dies leaves half a file under the name",
        "moses_compat/files/streams.py",
        "            if kind is None:\n                self._pack_waiting()\n",
        "            if True:\n                self._pack_waiting()\n",
        ("tests/moses_compat/files/test_streams.py::test_output_of_a_run_that_dies",),
    ),
    Mutant(
        "smoothing: Kneser-Ney discounts with a wrong factor",
        "phrasetool/smt/extraction/smoothing.py",
        "value = k - (k + 1) * share",
        "value = k - k * share",
        ("tests/phrasetool/smt/extraction/test_smoothing.py::test_kneser_ney_by_hand",),
    ),
    Mutant(
        "extraction: counts of a pair are replaced, not added",
        "phrasetool/smt/extraction/counted_rows.py",
        "store[candidate, c] += row[c]",
        "store[candidate, c] = row[c]",
        ("tests/phrasetool/smt/extraction/test_counted_rows.py::test_agrees_with_naive",),
    ),
    Mutant(
        "pivot: p(a|c) sums the wrong direction of the second table",
        "phrasetool/pivot/paths.py",
        "row[0] += first[INVERSE] * second[INVERSE]",
        "row[0] += first[INVERSE] * second[DIRECT]",
        ("tests/moses_compat/jobs/test_pivot.py::test_all_ways_are_summed",),
    ),
    Mutant(
        "annotate: columns of forced decoding in the other order",
        "moses_compat/jobs/annotate.py",
        "columns.append(forced_probabilities(used, *first.columns.T))",
        "columns.append(forced_probabilities(used, *first.columns.T)[:, ::-1])",
        ("tests/cli/test_annotate_forced.py::test_columns_are_as_the_formula_says",),
    ),
    Mutant(
        "language model: what is no context has no back-off",
        "phrasetool/smt/language_model/kneser_ney.py",
        "out=np.ones(len(lower)), where=total > 0",
        "out=np.zeros(len(lower)), where=total > 0",
        ("tests/phrasetool/smt/language_model/test_kneser_ney.py::test_the_formulas",),
    ),
    Mutant(
        "decoder: recombination compares the end of a span only",
        "phrasetool/smt/decoder/hypotheses.py",
        "return np.int64(start) << 32 | np.int64(end)",
        "return np.int64(end)",
        ("tests/phrasetool/smt/decoder/test_hypotheses.py::test_what_recombination_compares_of_a_span",),
    ),
    Mutant(
        "MIRA: steps are not limited",
        "phrasetool/smt/tuning/optimisers.py",
        "size = min(step, loss / distance)",
        "size = loss / distance",
        ("tests/phrasetool/smt/tuning/test_optimisers.py::test_weights_are_those_of_the_plain_loop",),
    ),
    Mutant(
        "BLEU: long translations are punished, short ones are not",
        "phrasetool/smt/evaluation/bleu.py",
        "brevity = min(0.0, 1 - total[REFERENCE_LENGTH] / total[LENGTH])",
        "brevity = min(0.0, 1 - total[LENGTH] / total[REFERENCE_LENGTH])",
        ("tests/phrasetool/smt/evaluation/test_bleu.py::test_corpus_bleu_is_sacrebleus",),
    ),
    Mutant(
        "significance: a term of the tail is left out",
        "phrasetool/pruning/significance.py",
        "while k > cfe and",
        "while k > cfe + 1 and",
        ("tests/phrasetool/pruning/test_significance.py::test_equals_exact_fractions",),
    ),
    Mutant(
        "similarity loss: the frequency of candidates is not corrected",
        "phrasetool/nn/losses.py",
        "(-row_log_shares).exp(), (-column_log_shares).exp()",
        "(0 * row_log_shares).exp(), (0 * column_log_shares).exp()",
        ("tests/phrasetool/nn/test_losses.py::test_in_batch_equals_the_obvious_formula_and_so_does_its_gradient",),
    ),
    Mutant(
        "moses.ini: sections that change translations are passed over",
        "moses_compat/ini/reading.py",
        "if _NEUTRAL[section](values):",
        "if values:",
        ("tests/moses_compat/ini/test_reading.py::test_messages_name_the_section_and_its_line",),
    ),
    Mutant(
        "n-best list: features have five digits",
        "moses_compat/engine/n_best.py",
        'format(value + 0.0, ".6g")',
        'format(value + 0.0, ".5g")',
        ("tests/moses_compat/engine/test_n_best.py::test_six_digits_and_no_negative_zero",),
    ),
    Mutant(
        "white space: Unicode spaces end words",
        "phrasetool/text_splitting.py",
        'words = line.strip(" \\t").split(" ")',
        "words = line.split()",
        ("tests/test_words_and_lines.py",),
    ),
    Mutant(
        "option: pivot ignores --min-probability",
        "cli/phrasetool_cli/commands/pivot.py",
        'keep_best, least_probability, counts == "min",',
        'keep_best, 0.0, counts == "min",',
        ("tests/cli/test_pivot.py::test_entries_of_a_low_probability_are_no_ways",),
    ),
    Mutant(
        "option: annotate ignores --translator-score",
        "cli/phrasetool_cli/commands/annotate.py",
        "scale, edit, scan, reading, encoder,",
        'scale, edit, scan, "normalised", encoder,',
        ("tests/cli/test_annotate_neural.py::test_a_column_is_the_score_that_was_asked_for",),
    ),
    Mutant(
        "option: tune ignores --seed",
        "cli/phrasetool_cli/commands/tune.py",
        "TuningOptions(optimiser, iterations, restarts, patience, seed, n_best)",
        "TuningOptions(optimiser, iterations, restarts, patience, 1, n_best)",
        ("tests/cli/test_tune.py::test_the_seed_decides_and_threads_do_not",),
    ),
]


def run_tests(tree: Path, tests: list[str]) -> tuple[int, str]:
    """Run tests of a worktree; return the exit code and the output of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    path = os.pathsep.join(map(str, (tree, tree / "cli")))
    run = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    return run.returncode, run.stdout + run.stderr


def check(tree: Path, mutant: Mutant) -> str:
    """Apply a mutant, run its tests and restore the file; return a problem, or an empty string if all tests failed."""
    file = tree / mutant.file
    text = file.read_text("utf-8")
    if text.count(mutant.old) != 1:
        return f"{mutant.file}: the text to replace occurs {text.count(mutant.old)} times: {mutant.old!r}"
    file.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    try:
        for test in mutant.tests:
            code, output = run_tests(tree, [test])
            if code == PASSED:
                return f"survived {test}"
            if code != FAILED:
                return f"{test} could not be run:\n{output}"
    finally:
        file.write_text(text, "utf-8")
    return ""


def main(parts: list[str]) -> int:
    """Run the mutants whose names contain one of the parts, all by default; return the exit code."""
    chosen = [mutant for mutant in MUTANTS if not parts or any(part in mutant.name for part in parts)]
    with tempfile.TemporaryDirectory(prefix="mutants.") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree)], cwd=ROOT, check=True)
        try:
            # Precompiled kernels, so that only those of mutated files have to be compiled.
            for package in PACKAGES:
                for library in (ROOT / package).glob("_kernels.*"):
                    shutil.copy2(library, tree / package)
            code, output = run_tests(tree, sorted({test for mutant in chosen for test in mutant.tests}))
            if code != PASSED:
                print(f"the tests do not pass without a mutant:\n{output}")
                return 1
            survivors = 0
            for mutant in chosen:
                begin = time.perf_counter()
                problem = check(tree, mutant)
                survivors += bool(problem)
                print(f"{'KILLED' if not problem else 'ALIVE '} {time.perf_counter() - begin:4.0f} s  {mutant.name}")
                if problem:
                    print(f"       {problem}")
                sys.stdout.flush()
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
