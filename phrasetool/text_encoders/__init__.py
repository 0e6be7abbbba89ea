"""External sentence encoders in folders: read safely, their vectors stored, their cosines normalised.

`encoders` finds and loads the encoder of a folder (static, of transformers, or of another package),
`folder_safety` checks the folder, `text_encoder` holds the protocol, tokenizers and detokenisation, `vector_store`
keeps the vectors of a table's phrases, and `margins` centres them and computes margins over the nearest neighbours.

Public objects: `TextEncoder`, `find_text_encoder`, `VectorStore`, `NORMALISATIONS`, `pair_similarities`.
"""
