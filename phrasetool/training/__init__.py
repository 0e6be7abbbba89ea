"""Training that all model families share.

The loop (`loop`: `Trainer`, `EpochTrainer`, `train`, `train_epochs`), checkpoints (`checkpoint`), the model folder of a
run (`run`: `TrainingRun`), settings (`settings`: `DeclaredSettings`), training data (`data`, `text_pairs`), and checks
of implausible input and of divergence (`checks`).
"""
