"""What the models of an experiment know of phrases: nearest ones, and a map."""

from __future__ import annotations

import pandas as pd

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.workbench import Session
from moses_compat.files.streams import Input
from phrasetool.experiments.phrase_frames import choose_phrases, map_frame, neighbour_frame
from phrasetool.phrase_encoder.model import BilingualModel


def phrase_frames(session: Session, plan: BuildPlan) -> dict[str, pd.DataFrame]:
    """`map` and, if they are asked for, `neighbours`; none if there is no model of the dimension that prunes."""
    folder = plan.models.get(plan.dimension)
    if folder is None:
        return {}
    models = {}
    for path in (plan.unsupervised, folder) if plan.unsupervised else (folder,):
        model = BilingualModel.load(path)
        # The label of a model that has learned from one language alone is the name of its encoder.
        name = (model.kind.name if path == plan.unsupervised else model.label).upper()
        with Input(plan.pairs) as source, session.watch.file("read pairs", source.size()) as progress:
            vocabularies = (model.source_vocabulary, model.target_vocabulary)
            pairs = read_training_pairs(source, vocabularies=vocabularies, progress=progress)
        models[name] = model, pairs
    frames = {"map": map_frame(model, pairs, seed=session.config.seed)}
    if session.config.neighbours:
        asked = session.config.neighbours
        phrases = asked.phrases or (*choose_phrases(pairs, False), *choose_phrases(pairs, True))
        frame = frames["neighbours"] = neighbour_frame(models, phrases, asked.count)
        for phrase in phrases:
            if phrase not in set(frame["phrase"]):
                session.watch.warn(f"no model knows a word of {phrase!r}, so it has no neighbours")
    return frames
