"""Training code shared by all model families.

The loop and its checkpoints (`loop`: `Trainer`, `EpochTrainer`, `train`, `train_epochs`), the model folder of a run and
checks for implausible input and divergence (`run`: `TrainingRun`), and training data (`data`).  Settings derive from
`phrasetool.options.DeclaredSettings`.
"""
