"""Text autoencoders (Zhang, Wu, Li and Zhang, "Gated Mean-Max Autoencoder for Paragraph Representations").

`settings` holds architectures, dimensions and hyper-parameters, `network` and `training` (which need torch) train an
autoencoder, `model` saves and loads it, and `inference` (which needs torch, too) encodes texts with a saved one,
reconstructs them, and finds similar texts.

Public objects: `AutoencoderSettings`, `AutoencoderModel`, `train_autoencoder`, `encode_texts`.
"""
