"""The manual and the README: valid links, up-to-date numbers and pages, and commands with existing options."""

import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from phrasetool_cli.main import cli
from tests.commands import clean_environment
from tests.shell_pages import blocks, is_right, run

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/results/README.md")]
PAGES += [ROOT / "cli/phrasetool_cli/demo/README.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# Path of a folder or file of this repository.
PATH = re.compile(r"`((?:phrasetool|moses_compat|cli|tests|docs|benchmarks|examples)/[\w./-]*)`")


def python(*arguments):
    """Run a script of the repository."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=clean_environment(), timeout=250, check=False, text=True,
        encoding="utf-8", capture_output=True,
    )  # fmt: skip


@functools.cache
def anchors(page):
    """Return the anchors of a page: those that MkDocs and forges derive from headings, and explicit ones."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", text), re.MULTILINE)
    generated = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return generated | set(re.findall(r'<a id="([^"]*)">', text))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Folder of the manual, built without warnings."""
    folder = tmp_path_factory.mktemp("site")
    outcome = python("-m", "mkdocs", "build", "--strict", "--site-dir", str(folder))
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return folder


def test_the_manual_builds_without_a_warning(site):
    assert (site / "index.html").is_file()
    pages = {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")}
    built = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    assert pages | {"contributing.html", "changelog.html"} <= built


def test_a_dead_link_is_a_warning(tmp_path):
    """The strict build, on which the test above relies, fails for dead links."""
    config = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[0]
    config = config.replace("docs_dir: docs", f"docs_dir: {tmp_path / 'docs'}").replace("  - docs/hooks.py", "  []")
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text(config, "utf-8")
    for text, good in (("# A\n[b](#a)", True), ("# A\n[b](#nowhere)", False), ("# A\n[b](nowhere.md)", False)):
        (tmp_path / "docs/index.md").write_text(text, "utf-8")
        outcome = python("-m", "mkdocs", "build", "--strict", "-f", str(tmp_path / "mkdocs.yml"))
        assert (outcome.returncode == 0) == good, outcome.stderr


def test_the_site_loads_nothing_from_other_hosts(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for path in pages:
        assert not re.findall(r'<(?:script|img|link)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"', path.read_text("utf-8"))


def test_no_page_shows_raw_markup(site):
    """Snippets and markers that a formatter broke are not rendered as text; strict mode does not detect these."""
    for path in site.rglob("*.html"):
        text = re.sub(r"<[^>]*>", "", path.read_text("utf-8"))
        assert not re.search(r"-- ?8 ?&lt; ?--|^:::|<!-- value|\{\{ ", text, re.MULTILINE), path


def test_equations_are_shown(site):
    text = (site / "models/brae.html").read_text("utf-8")
    assert text.count("<math") > 10
    assert "arithmatex" not in text


def test_links_lead_to_files_and_headings_of_the_repository():
    for page in PAGES:
        for link in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
            path, _, anchor = link.partition("#")
            if re.match(r"\w+:", link):
                continue
            target = page.parent / path if path else page
            assert target.exists(), (page, link)
            assert not anchor or anchor in anchors(target), (page, link)


def test_mentioned_paths_exist():
    # The changelog mentions paths that no longer exist.
    mentioned = {
        (path, page) for page in PAGES if page.name != "CHANGELOG.md" for path in PATH.findall(page.read_text("utf-8"))
    }
    assert [(path, page) for path, page in mentioned if not list(ROOT.glob(path.rstrip("/")))] == []


def test_the_index_of_results_links_to_every_page():
    pages = {page.name for page in (DOCS / "results").glob("*.md")} - {"index.md"}
    assert pages == {page for page in pages if f"({page}" in (DOCS / "results" / "index.md").read_text("utf-8")}


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 180
    assert text.count("![") == 1
    assert "<!--" not in text


def test_tables_and_numbers_match_the_results():
    outcome = python("benchmarks/result_tables.py", "--check")
    assert outcome.returncode == 0, outcome.stderr


def test_stale_and_typed_numbers_are_detected(tmp_path):
    """The check of the test above detects outdated values and numbers typed by hand."""
    text = (DOCS / "results/speed.md").read_text("utf-8")
    check = "import sys; sys.path.insert(0, 'benchmarks'); import result_tables as r; from pathlib import Path\n"
    check += "for p in map(Path, sys.argv[1:]): t = p.read_text('utf-8'); print(r.filled(t) == t, r.faults(p, t))"
    (tmp_path / "results").mkdir()
    table = re.search(r"^\| `annotate`: .*?\| (\d+\.\d+ s)", text, re.MULTILINE)
    cases = {
        "fresh": (text, "True []"),
        "stale": (text[: table.start(1)] + "9.9 s" + text[table.end(1) :], "False []"),
        "typed": (text + "\nIt takes 3.17 s.\n", "True ['typed, not filled in: 3.17']"),
        "cut": (text + "\n<!-- value: study: pairs -->six<!-- end --> pairs.\n", "True ['a value begins a line']"),
    }
    pages = [tmp_path / "results" / f"{name}.md" for name in cases]
    for page, (changed, _) in zip(pages, cases.values(), strict=True):
        page.write_text(changed, "utf-8")
    outcome = python("-c", check, *map(str, pages))
    assert outcome.stdout.splitlines() == [expected for _, expected in cases.values()], outcome.stderr


@pytest.fixture(scope="module")
def reference_pages():
    """Module that generates the pages about commands and options."""
    spec = importlib.util.spec_from_file_location("generate_commands", DOCS / "generate_commands.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_option_name_has_one_meaning(reference_pages):
    """Options whose help differs between commands have a common meaning in MEANINGS, and the same form."""
    options = reference_pages.options()
    differing = {name for name, uses in options.items() if len(reference_pages.help_texts(uses)) > 1}
    assert differing == set(reference_pages.MEANINGS)
    forms = {name: {(one.nargs, one.is_flag) for _, one in uses} for name, uses in options.items()}
    # filter-bitext writes two files.
    assert {name for name, variants in forms.items() if len(variants) > 1} == {"--output"}
    # `filter-pt` keeps the option letters of the Moses program.
    own = {name: [one for one in uses if one[0] != "filter-pt"] for name, uses in options.items()}
    letters = {}
    for name, uses in own.items():
        for _, option in uses:
            for short in (text for text in option.opts if len(text) == 2):
                letters.setdefault(short, set()).add(name)
    assert {short for short, names in letters.items() if len(names) > 1} == set()


def test_former_option_names_are_not_reused(reference_pages):
    for name, command, context in reference_pages.commands():
        present = {text for parameter in command.get_params(context) for text in parameter.opts}
        renamed = getattr(command, "renamed", {})
        assert not set(renamed) & present, name
        assert set(renamed.values()) <= present, name


def test_the_table_of_options_is_up_to_date(reference_pages):
    text = (DOCS / "options.md").read_text("utf-8")
    assert text == reference_pages.options_page(), "docs/options.md is stale; run `make documents`"


def test_help_of_commands_is_short_and_fits_the_terminal(reference_pages):
    limits = {"prune": 110, "annotate": 110}
    for name, _, _ in reference_pages.commands():
        lines = reference_pages.help_of(*name.split()).splitlines()
        assert len(lines) <= limits.get(name, 80), name
        assert max(map(len, lines)) <= 80, name


def test_each_command_has_a_page_with_its_help(reference_pages):
    written = {path.name: path.read_text("utf-8") for path in (DOCS / "commands").iterdir()}
    assert written == reference_pages.pages(), "docs/commands is stale; run `make documents`"
    for name, command, _ in reference_pages.commands():
        page = written[reference_pages.file_of(name)]
        assert "\nGuide: [" in page, name
        examples = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        assert all(example.startswith("phrasetool ") for example in examples), name
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert f'<a id="{max(option.opts, key=len)}"></a>' in page, (name, option.opts)


def commands(text):
    """Yield the phrasetool commands in the shell blocks of a page, as lists of words."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"\s(?:\||&&|<|>)\s", line.removeprefix("$ ")):
                if part.startswith("phrasetool "):
                    yield shlex.split(part)[1:]


def check_options(name, arguments):
    """Raise a usage error for options that a command does not have; values are not checked."""
    overview = cli.make_context("phrasetool", [], resilient_parsing=True)
    command = cli.get_command(overview, name)
    assert command is not None, name
    context = click.Context(command, parent=overview, info_name=name, **command.context_settings)
    command.make_parser(context).parse_args(list(arguments))


def test_commands_in_the_pages_are_accepted():
    checked = set()
    for page in PAGES:
        if page.name == "wrong-uses.md":
            continue
        for name, *arguments in commands(page.read_text("utf-8")):
            try:
                check_options(name, arguments)
            except click.UsageError as error:
                pytest.fail(f"{page.relative_to(ROOT)}: phrasetool {name} {shlex.join(arguments)}: {error}")
            checked.add(name)
    assert len(checked) > 15


def test_unknown_options_are_detected():
    ((name, *arguments),) = commands("```sh\n$ phrasetool prune table.gz --targetsize 0.1 | head\n```")
    with pytest.raises(click.UsageError, match="targetsize"):
        check_options(name, arguments)


def test_the_citation_has_the_current_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["version"], citation["license"]) == (
        project["name"], project["version"], project["license"],
    )  # fmt: skip
    assert citation["authors"] == [{"name": "The phrasetool authors"}]
    assert f"version {project['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.requires_reference
@pytest.mark.slow
@pytest.mark.timeout(1600)
def test_readme_commands_print_the_documented_output(reference, tmp_path):
    for path in reference.iterdir():
        if path.name != "forced-pairs.gz":
            (tmp_path / path.name).symlink_to(path)
    for side in ("train.de", "train.en"):
        if not (bitext := reference.parent / f"{side}.gz").exists():
            pytest.skip(f"no such data: {bitext}")
        (tmp_path / side).symlink_to(bitext)
    for side in ("dev.de", "dev.en"):
        (tmp_path / side).symlink_to(reference.parent / side)
    readme_blocks = [
        block for block in blocks((ROOT / "README.md").read_text("utf-8")) if "phrasetool" in block.commands
    ]
    # `improve` takes a quarter of an hour; benchmarks/improve.py runs it, and tests/cli/test_improve.py a small case.
    readme_blocks = [
        block
        for block in readme_blocks
        if block.commands.startswith("phrasetool ") and " improve " not in block.commands
    ]
    assert len(readme_blocks) == 4
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outputs = run(readme_blocks, tmp_path, clean_environment(PATH=path), timeout=1500)
    for block, output in zip(readme_blocks, outputs, strict=True):
        assert is_right(block, output), "\n".join(output)
