from moses_compat.pages.drawing import number_text, p_phrase, p_text, percent_text, printable

NAN = float("nan")


def test_printable_replaces_control_characters():
    assert printable("a\tb\nc") == "a b c"
    assert printable("\x00\x85\ud800\u202e\ufffe") == "\ufffd" * 5
    assert printable("北京 é 🙂") == "北京 é 🙂"
    assert printable(b"x".decode()) == "x"


def test_numbers():
    assert [number_text(x, sign=True) for x in (0.1, -0.06, -0.001, NAN)] == ["+0.10", "−0.06", "0.00", ""]
    assert [number_text(x) for x in (1234567.0, float("inf"), -float("inf"), -0.0)] == [
        "1,234,567.00",
        "∞",
        "−∞",
        "0.00",
    ]
    assert [percent_text(x) for x in (0.05, 0.123456, 1.0, 0.9996, NAN)] == ["5 %", "12.3 %", "100 %", "100.0 %", ""]
    assert [p_text(x) for x in (0.0004, 0.012, 1.0, NAN)] == ["< 0.001", "0.012", "1.000", ""]
    assert [p_phrase(x) for x in (0.0004, 0.012)] == ["p < 0.001", "p = 0.012"]
