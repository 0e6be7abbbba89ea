import sys

from threadpoolctl import threadpool_info

from phrasetool.kernels.blas_threads import one_blas_thread


def test_products_have_one_thread_inside():
    with one_blas_thread():
        assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} == {1}


def test_without_the_package_nothing_is_done(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_blas_thread() as entered:
        assert entered is None
