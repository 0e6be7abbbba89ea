"""Training that all model families share.

The loop (`loop`: `Trainer`, `EpochTrainer`, `train`, `train_epochs`), checkpoints (`checkpoint`), the model folder of a
run and checks of implausible input and of divergence (`run`: `TrainingRun`), and training data (`data`).  Settings
derive from `phrasetool.options.DeclaredSettings`.
"""
