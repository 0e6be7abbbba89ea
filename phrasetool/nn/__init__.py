"""Parts of neural networks that several model families share.

Devices, threads and precision (`device`), layers (`layers`, `positions`), decoders (`decoders`) and losses, including
the softmax over a large vocabulary (`losses`).  `device` imports PyTorch only when it needs it, `positions` never.
"""
