import pytest

from phrasetool.kernels import processors
from phrasetool.kernels.processors import (
    ANY,
    AVX2,
    AVX512,
    common_processor,
    compiled_for,
    compiling_for,
    missing_features,
    this_processor,
)


def test_this_machine_has_the_features_of_its_processor():
    assert not missing_features(this_processor().features)
    assert not missing_features(common_processor().features)
    assert missing_features(["AVX2", "no such thing"])[-1] == "no such thing"


@pytest.mark.parametrize(("lacks", "this", "common"), [((), AVX512, AVX2), (("AVX512BW",), AVX2, AVX2),
                                                       (("AVX512BW", "FMA3"), ANY, ANY)])  # fmt: skip
def test_the_widest_available_registers_are_chosen(monkeypatch, lacks, this, common):
    monkeypatch.setattr(processors, "missing_features", lambda names: [name for name in names if name in lacks])
    assert (this_processor(), common_processor()) == (this, common)


def test_kernels_are_compiled_for_this_machine_unless_for_another():
    assert compiled_for() == this_processor()
    with compiling_for(AVX2):
        assert compiled_for() == AVX2
        with compiling_for(AVX512):
            assert compiled_for() == AVX512
    assert compiled_for() == this_processor()
