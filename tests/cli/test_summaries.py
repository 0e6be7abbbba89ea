from moses_compat.jobs.remove_orphans import OrphanCounts
from phrasetool_cli.summaries import say_kept, tell_orphans


def test_counts_of_kept_and_of_removed_lines(capsys):
    say_kept(1500, 2000, "entries", [(0, "vanished"), (1234, "went")])
    say_kept(0, 0, "lines", [])
    assert capsys.readouterr().err.splitlines() == [
        "phrasetool: kept 1,500 of 2,000 entries (75.0%)",
        "phrasetool:   1,234 went",
        "phrasetool: kept 0 of 0 lines (100.0%)",
    ]


def test_a_reordering_table_of_another_model(capsys):
    counts = OrphanCounts(lines=3, kept=0, orphans=3, pairs=2, pairs_without_line=2)
    tell_orphans(counts)
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == "phrasetool: kept 0 of 3 reordering lines (0.0%)"
    assert second == "phrasetool:   3 were left out because the phrase table lacks their pair"
    assert third.startswith("phrasetool: warning: 2 of 2 pairs of the phrase table have no reordering line;")
