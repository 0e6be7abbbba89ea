import pytest

from tests.decoder_models import LanguageModels


@pytest.fixture(scope="session")
def language_models(tmp_path_factory):
    return LanguageModels(tmp_path_factory.mktemp("language-models"))
