"""moses.ini: read, and changed so that every other byte stays.

`reading` reads both versions into a `moses_ini.MosesIni` and checks the sections, `tables` chooses one of its phrase
tables, and `editing` writes changed copies.
"""
