from moses_compat.library import Pruned as Pruned
from moses_compat.library import Tuned as Tuned
from moses_compat.library import annotate as annotate
from moses_compat.library import decode as decode
from moses_compat.library import prune as prune
from moses_compat.library import read_table as read_table
from moses_compat.library import table_blocks as table_blocks
from moses_compat.library import train as train
from moses_compat.library import tune as tune
from phrasetool.errors import DataError as DataError
from phrasetool.errors import ModelError as ModelError
from phrasetool.errors import PhraseToolError as PhraseToolError
from phrasetool.library.models import PhraseModel as PhraseModel
from phrasetool.library.models import load_model as load_model
from phrasetool.library.text_models import Autoencoder as Autoencoder
from phrasetool.library.text_models import PairClassifier as PairClassifier
from phrasetool.library.text_models import SyntaxEncoder as SyntaxEncoder
from phrasetool.library.text_models import Tagger as Tagger
from phrasetool.library.text_models import Translator as Translator
from phrasetool.smt.evaluation.metrics import evaluate as evaluate
from phrasetool.watch import Watch as Watch

__version__: str
