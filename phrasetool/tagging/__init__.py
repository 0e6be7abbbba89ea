"""Parts of speech: features of words, and the network that tags them."""
