from phrasetool.kernels.processors import AVX2, AVX512, compiled_for, compiling_for, missing_features, this_processor


def test_this_machine_has_what_its_kind_has():
    assert not missing_features(this_processor().features)
    assert missing_features(["AVX2", "no such thing"])[-1] == "no such thing"


def test_kernels_are_compiled_for_this_machine_unless_for_another():
    assert compiled_for() == this_processor()
    with compiling_for(AVX2):
        assert compiled_for() == AVX2
        with compiling_for(AVX512):
            assert compiled_for() == AVX512
    assert compiled_for() == this_processor()
