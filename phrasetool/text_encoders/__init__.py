"""External sentence encoders in folders: safe loading, storage of their vectors, normalisation of their cosines.

`encoders` finds and loads the encoder of a folder (static, transformers, or of another package),
`folder_safety` checks the folder, `text_encoder` holds the protocol, tokenizers and detokenisation, `vector_store`
keeps the vectors of a table's phrases, and `margins` centres them and computes margins over the nearest neighbours.

Public objects: `TextEncoder`, `find_text_encoder`, `VectorStore`, `NORMALISATIONS`, `pair_similarities`.
"""
