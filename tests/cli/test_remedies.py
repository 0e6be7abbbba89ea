import ast
from pathlib import Path

import moses_compat
import phrasetool
from phrasetool.errors import DataError, ModelError, PhraseToolError
from phrasetool.models.families import saved_families
from phrasetool_cli.messages import REMEDIES, with_remedy
from tests.commands import run_inside, write

CORE = [Path(package.__file__).parent for package in (phrasetool, moses_compat)]


def remedies_of_the_core():
    """Yield every text that the core passes as an argument `remedy`."""
    for path in (path for folder in CORE for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "remedy" and isinstance(node.value, ast.Constant):
                yield node.value.value


def test_every_remedy_has_a_text_and_is_used():
    of_families = {f"train {family.description}" for family in saved_families().values()}
    assert {*remedies_of_the_core(), *of_families} == set(REMEDIES)


def test_the_core_names_no_options():
    """Error messages of the core name no option of the command line."""
    for path in (path for folder in CORE for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                text = " ".join(
                    part.value
                    for part in ast.walk(node.exc)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )
                # --with-cmph is an option of the build of Moses.
                assert " --" not in text.replace("--with-cmph", ""), f"{path}:{node.lineno}: {text}"


def test_errors_carry_remedies():
    assert PhraseToolError("wrong").remedy is None
    error = DataError("file", "wrong", 3, remedy="name the model")
    assert with_remedy(str(error), error.remedy) == "file:3: wrong; a model is given with -m, where a command has it"
    assert with_remedy("wrong", ModelError("wrong").remedy) == "wrong"


def test_messages_of_the_command_line_are_whole(tmp_path, model_folder):
    table = write(tmp_path / "table.gz", b"a ||| b ||| 0.5\n")
    outcome = run_inside("annotate", table, "-m", tmp_path / "none")
    assert outcome.message.endswith(
        "none: no such model folder (train one with `phrasetool train`, or name it with -m)"
    )
    outcome = run_inside("annotate", model_folder, "-m", model_folder, "-o", tmp_path / "o")
    assert outcome.message.endswith(
        "is a directory: the folder of a model of phrasetool; expected a file; a model is given with -m, where a "
        "command has it"
    )
    for arguments in (
        ("prune", model_folder, "--method", "count", "--target-size", "50%"),
        ("annotate", model_folder, "--smoothing", "kneser-ney"),
        ("lm", model_folder, "-o", tmp_path / "o"),
    ):
        assert "the folder of a model of phrasetool; expected a file; " in run_inside(*arguments).message
    outcome = run_inside("binarize", table, "--to", "compact", "-o", tmp_path / "o", "--moses-bin", tmp_path)
    assert outcome.message.endswith(f"is needed and is not in {tmp_path}; name its folder with --moses-bin")
    outcome = run_inside("reconstruct", table, "-m", model_folder)
    assert outcome.message.endswith("this needs an autoencoder of one language (`phrasetool train autoencoder TEXT`)")
