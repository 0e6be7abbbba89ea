"""Training that all model families share.

The loop (`loop`: `EpochTrainer`, `train_epochs`), checkpoints and resuming (`checkpoint`), the model folder of a run
(`run`: `TrainingRun`), settings (`settings`: `DeclaredSettings`), training data (`data`), and checks of implausible
input and of divergence (`checks`).
"""
