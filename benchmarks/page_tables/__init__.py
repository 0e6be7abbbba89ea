"""Tables and numbers of the documents, made from what benchmarks/results/ holds; a module a subject."""
