"""Parts of neural networks that several model families share.

Devices, threads and precision (`device`), layers (`layers`, `positions`), decoders (`decoders`) and losses, including
the softmax over a large vocabulary (`losses`).  `device` and `positions` import PyTorch only when they compute with it.
"""
