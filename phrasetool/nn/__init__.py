"""Parts of neural networks that several model families share.

Devices, threads and precision (`device`), layers (`layers`, `positions`), decoders (`decoders`) and the softmax over a
large vocabulary (`softmax_output`).  `device` and `positions` import PyTorch only when they compute with it.
"""
