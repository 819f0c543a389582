"""Names for people, never at the price of a hang."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envspec.elf import demangle

NAMES = {
    b"_ZN2at4_ops5empty4callEv": "at::_ops::empty::call()",
    "_ZNK3c1010TensorImpl4sizeEl": "c10::TensorImpl::size(long) const",
    "_ZN3c105ErrorC1ENS_14SourceLocationESs": "c10::Error::Error(c10::SourceLocation, std::string)",
    "_ZNSt6vectorIN2at6TensorESaIS1_EED1Ev": "std::vector<at::Tensor, std::allocator<at::Tensor>>::~vector()",
    "_ZNK2at10TensorBase14const_data_ptrIiEEPKT_v": "int const* at::TensorBase::const_data_ptr<int>() const",
    "_ZNR5torch7Library4_defEv": "torch::Library::_def() &",
    "_ZNKO1A1fEv": "A::f() const &&",
    "_ZTVN3c105ErrorE": "vtable for c10::Error",
    "_Z1fILi2ELb1EEvv": "void f<2, true>()",
    "_Z1gSt5arrayIbLm3EE": "g(std::array<bool, 3ul>)",
    # Not C++, or beyond the library: the name as it is.
    "aoti_torch_empty_strided": "aoti_torch_empty_strided",
    "_ZZ4mainE1x": "_ZZ4mainE1x",
    "_ZGVdN4v_cos": "_ZGVdN4v_cos",
    "_Z": "_Z",
    "": "",
    b"\xff\xfe": "\ufffd\ufffd",
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str | bytes) -> None:
    assert demangle(name) == NAMES[name]


@pytest.mark.parametrize(
    "name",
    [
        "_Z1f" + "P" * 100_000 + "i",
        "_Z1f" + "P" * 2000 + "i",
        "_ZN" + "1a" * 1000 + "E",
        "_Z1f" + "1AI" * 600,
        "_Z1f1AIiE" + "".join(f"S_IS{d}_S{d}_E" for d in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        "_Z1f1AIiE" + "".join(f"S_IS{d}_S{d}_S{d}_E" for d in "012345"),
        "_Z" + "9" * 2000 + "f",
    ],
)
def test_hostile_names_cost_little(name: str) -> None:
    began = time.process_time()
    assert len(demangle(name)) <= max(65536, len(name))
    assert time.process_time() - began < 1


@settings(max_examples=300)
@given(st.text(alphabet="_ZNKSTIELPRO0123456789abcdefvS", max_size=60))
def test_never_raises(tail: str) -> None:
    assert isinstance(demangle("_Z" + tail), str)
