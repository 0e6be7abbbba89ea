"""Lines of a moses.ini: what changes, and that nothing else does."""

from moses_compat.ini.lines import with_arguments, with_numbers, with_words


def test_lines():
    assert with_arguments("A name=x path=p\tb=c # path=q\r", {"path": "r", "new": "1"}) == (
        "A name=x path=r\tb=c new=1 # path=q\r"
    )
    # The end of another key is not the key.
    assert with_arguments("A source-path=p", {"path": "r"}) == "A source-path=p path=r"
    assert with_words(" 0 0  0 4 t # t\r", {3: "6", 4: "long/path"}) == " 0 0  0 6 long/path # t\r"
    assert with_numbers("A=  1.0\t2 #3", [1, 3, 4]) == "A=  1.0\t3 4 #3"
    assert with_numbers(" 0.50 # x\r", [0.5], 0) == " 0.50 # x\r"
    assert with_numbers("A= 1 2 3 # x", [1]) == "A= 1 # x"
