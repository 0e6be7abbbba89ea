"""Encoders of the phrases of two languages (BRAE and its relatives): training on phrase pairs, and scoring.

`encoder` has the base class and registry of encoders, `kinds` and `parameters` the three encoders, `*_network` and
`networks` their trainable modules, `*_kernels` their scoring; `losses` the objectives; `settings`, `start`,
`updates`, `sgd` and `trainer` the training.

Public objects: `BilingualModel` (`model`), `BilingualScorer` (`scoring`), `TrainingSettings` (`settings`),
`train_model` (`trainer`), `EncoderKind` and `ENCODERS` (`encoder`), `OBJECTIVES` (`losses`)."""
