"""New entries for words that a phrase table has no entry for.

`evidence` holds entries of known words and proposals made from them; `compounds` and `relatives` propose translations;
`augmenter` weighs all proposals and writes the best.
"""
