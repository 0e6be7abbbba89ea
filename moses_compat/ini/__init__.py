"""Reading a moses.ini, and editing it so that all other bytes stay the same.

`reading` reads both versions into a `moses_ini.MosesIni` and checks the sections, `tables` chooses one of its phrase
tables, and `editing` writes changed copies.
"""
