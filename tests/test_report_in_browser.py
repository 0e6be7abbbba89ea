"""HTML reports in a real browser without a network: display, toggles, sorting, search, and no requests."""

import html
import json
import re
import shutil
import subprocess

import pytest

from moses_compat.experiments.report.pages import write_report
from tests.commands import clean_environment, run_inside, write
from tests.moses_compat.experiments.report.report_frames import FACTS, all_frames
from tests.small_experiment import small_model, table_lines

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
)  # fmt: skip
# Script that adds a description of the displayed page to the page.
PROBE = """
<script>
addEventListener("load", () => {
  const all = selector => [...document.querySelectorAll(selector)];
  const box = item => { const b = item.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
  const seen = item => { const b = item.getBoundingClientRect(); return b.width > 0 && b.height > 0; };
  const found = {};
  try {
    STEPS
    found.sections = Object.fromEntries(all("section").map(item => [item.id, seen(item)]));
    found.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    found.figures = all("figure.curves").filter(seen).map(item => item.dataset.text);
    found.drawings = all(".drawing").filter(seen).length;
    found.names = all("#map .halo text").filter(seen).map(box);
    found.smallest = Math.min(...all(".drawing text").filter(seen).map(item => item.getBoundingClientRect().height));
    found.gone = [...new Set(all(".gone").map(item => item.dataset.series))].sort();
    found.lines = all(".drawing .line").filter(seen).map(item => item.dataset.series);
    found.rows = Object.fromEntries(all("table").map(table => [table.id,
      [...table.tBodies[0].rows].filter(seen).map(row => [...row.cells].map(cell => cell.innerText))]));
    found.dark = getComputedStyle(document.body).backgroundColor;
    found.hash = location.hash;
  } catch (error) { found.error = String(error); }
  const result = document.createElement("pre");
  result.id = "probe";
  result.textContent = JSON.stringify(found);
  document.body.append(result);
});
</script>
</body>"""


@pytest.fixture(scope="module")
def browser():
    result = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if result is None:
        pytest.skip(f"none of {', '.join(PROGRAMS)} is on the PATH")
    return result


@pytest.fixture(scope="module")
def report():
    return write_report("Small & <quick>", all_frames(), FACTS)["report.html"].decode()


@pytest.fixture
def look(browser, report, tmp_path):
    def look_at(fragment="", steps="", width=1280, flags=(), page=report):
        path = tmp_path / "report.html"
        path.write_text(page.replace("</body>", PROBE.replace("STEPS", steps)), encoding="utf-8")
        if width < 500:
            # Windows cannot be as narrow as a telephone, but a frame can.
            frame = tmp_path / "frame.html"
            probe = "document.body.append(document.querySelector('iframe').contentDocument.getElementById('probe'))"
            frame.write_text(
                f'<iframe src="report.html" style="width:{width}px;height:4000px;border:0"></iframe>'
                f"<script>addEventListener('load', () => setTimeout(() => {{ {probe} }}, 100))</script>"
            )
            path, flags = frame, (*flags, "--allow-file-access-from-files", "--virtual-time-budget=2000")
        command = [
            browser, *QUIET, *flags, f"--window-size={width},1000", f"--user-data-dir={tmp_path / 'profile'}",
            f"--log-net-log={tmp_path / 'net.json'}", "--dump-dom", f"{path.as_uri()}{fragment}",
        ]  # fmt: skip
        outcome = subprocess.run(
            command, capture_output=True, text=True, check=True, encoding="utf-8", env=clean_environment()
        )
        console = [line for line in outcome.stderr.splitlines() if "CONSOLE" in line]
        assert not console
        parsed = json.loads(html.unescape(re.search(r'<pre id="probe">(.*?)</pre>', outcome.stdout, re.DOTALL)[1]))
        assert "error" not in parsed
        return parsed, tmp_path

    return look_at


def overlaps(boxes):
    return [
        (first, second)
        for index, first in enumerate(boxes)
        for second in boxes[:index]
        if first[0] < second[2] and second[0] < first[2] and first[1] + 1 < second[3] and second[1] + 1 < first[3]
    ]


def requested(log):
    """Return the URLs that a page requested; the browser's own requests have no page as their initiator."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    started = [line for line in lines if re.search(r'"initiator":"(?!not an origin")', line)]
    return {match[1] for line in started for match in re.finditer(r'"url":"([^"]*)"', line)}


def test_everything_is_visible_and_nothing_is_requested(look):
    result, folder = look()
    assert result["sections"] == dict.fromkeys(
        [
            "curves",
            "contests-section",
            "annotation-section",
            "ladder-section",
            "sizes",
            "neighbours",
            "histograms",
            "map",
        ]
        + ["surprises", "about"],
        True,
    )
    assert result["overflow"] <= 0
    assert result["figures"] == ["ALL", "ALL"]
    assert result["drawings"] == 2 + 2 + 1 + 1
    assert result["smallest"] > 9
    assert len(result["names"]) > 10
    assert not overlaps(result["names"])
    assert result["gone"] == []
    assert result["rows"]["overview-all"][0] == ["composition+semantic", "36.00", "35.95", "35.91 ▼"]
    assert len(result["rows"]["sizes-words"]) == 10
    assert requested(folder / "net.json") == set()


def test_narrow_screens_and_dark_mode(look):
    result, _ = look(width=400, flags=("--blink-settings=preferredColorScheme=0",))
    assert result["overflow"] <= 0
    assert result["drawings"] == 2 + 2 + 1 + 1
    assert result["smallest"] > 8
    assert not overlaps(result["names"])
    assert max(map(int, re.findall(r"\d+", result["dark"]))) < 60


def test_the_url_selects_methods_and_test_sets(look):
    result, _ = look("#hide=random,composition%2Bsemantic&text=test%20b")
    assert result["figures"] == ["test b", "test b"]
    assert result["gone"] == ["0", "2"]
    assert set(result["lines"]) == {"1"}
    assert {row[0] for row in result["rows"]["sizes-all"]} == {"full", "composition"}
    assert [row[0] for row in result["rows"]["overview-words"]] == ["composition"]


def test_invalid_selections_in_the_url_are_ignored(look):
    result, _ = look("#hide=nobody,%zz&text=none")
    assert result["figures"] == ["ALL", "ALL"]
    assert result["gone"] == []


def test_clicks(look):
    steps = """
    for (const name of ["random", "composition+semantic"])
      document.querySelector(`.method input[value="${name}"]`).click();
    document.querySelector('.text input[value="dev"]').click();
    const click = (table, column) => document.getElementById(table).tHead.rows[0].cells[column].firstChild.click();
    click("sizes-all", 3); click("sizes-all", 3); click("surprises-composition", 6); click("contests", 8);
    const before = document.querySelectorAll("#curves.focus").length;
    document.querySelector(".method").dispatchEvent(new Event("mouseenter"));
    found.focus = [before, document.querySelectorAll("#curves.focus .on").length > 5];
    """
    result, _ = look(steps=steps)
    assert result["hash"] == "#hide=composition%2Bsemantic,random&text=dev"
    assert result["figures"] == ["dev", "dev"]
    assert result["gone"] == ["0", "2"]
    entries = [int(row[3].replace(",", "")) for row in result["rows"]["sizes-all"]]
    assert entries == sorted(entries)
    assert len(entries) == 4
    assert [row[6] for row in result["rows"]["surprises-composition"]] == ["12.0", "12.0", "", ""]
    assert [row[8] for row in result["rows"]["contests"]] == ["neither", "semantics"]
    assert result["focus"] == [0, True]


def test_a_minimal_report(look):
    page = write_report("tiny", {"contests": all_frames()["contests"]}, {})["report.html"].decode()
    result, _ = look(page=page)
    assert result["sections"] == {"contests-section": True, "about": True}


@pytest.fixture(scope="module")
def table_page(tmp_path_factory):
    """Page of `report` for a table with a script element as a phrase, and the number of table lines."""
    folder = tmp_path_factory.mktemp("table")
    small_model().save(folder / "model")
    lines = [*table_lines(), b"a ||| <script>document.title=1</script> ||| 1 1 1 1 ||| 0-0 ||| 9 9 9\n"]
    table = write(folder / "table.gz", b"".join(sorted(lines)))
    small = write(folder / "small.gz", b"".join(sorted(lines)[::3]))
    outcome = run_inside("report", table, "-m", folder / "model", "--compare", small, "-o", folder / "page.html", "-q")
    assert outcome.code == 0, outcome.err
    return (folder / "page.html").read_text("utf-8"), len(lines)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_sample_of_a_table_can_be_sorted_and_searched(look, table_page, width):
    page, lines = table_page
    steps = """
    const table = document.getElementById("sample-entries"), head = name =>
      [...table.tHead.rows[0].cells].find(cell => cell.innerText.trim() === name).firstChild;
    const search = text => {
      const input = document.getElementById("search");
      input.value = text;
      input.dispatchEvent(new Event("input"));
    };
    const shown = () => [...table.tBodies[0].rows].filter(seen).map(row => [...row.cells].map(cell => cell.innerText));
    found.all = shown().length;
    head("similarity").click();
    found.down = shown().map(row => row.at(-1));
    head("similarity").click();
    found.up = shown().map(row => row.at(-1));
    search("NO SUCH PHRASE"); found.none = shown().length;
    search("Script"); found.script = shown();
    search("a b"); found.some = shown(); found.told = document.getElementById("found").innerText;
    found.title = document.title;
    found.verdicts = all("section[data-verdict]").filter(seen).length;
    """
    result, folder = look(page=page, width=width, steps=steps)
    assert (result["all"], result["none"], result["verdicts"]) == (lines, 0, 14)
    down, up = (
        [float(text.replace("−", "-")) for text in result[direction] if text != "no score"]
        for direction in ("down", "up")
    )
    assert down == sorted(down, reverse=True)
    assert up == sorted(up)
    assert [row[2] for row in result["script"]] == ["<script>document.title=1</script>"]
    assert result["title"].startswith("Report on ")
    assert result["some"]
    assert all("a b" in " ".join(row[1:3]) for row in result["some"])
    assert result["told"] == f"{len(result['some'])} of {lines} entries"
    assert result["overflow"] <= 0
    assert result["smallest"] > 8
    assert requested(folder / "net.json") == set()


def test_requests_are_detected(look):
    """Requests of a page are detected, on which the tests above rely."""
    _, folder = look(page="<p>x</p><section id=one>y</section><img src='http://example.org/a.png'></body>")
    assert requested(folder / "net.json") == {"http://example.org/a.png"}
