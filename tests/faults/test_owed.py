"""What the tables call NotYet answers with the code for "not supported" and its own name: no crash, no silent success."""
from __future__ import annotations

import ctypes
import pathlib

import pytest
from prototypes import read_functions

ABI = pathlib.Path(__file__).resolve().parent.parent.parent / "abi"
OWED = {"AclCode": 207000, "NnCode": 561003, "HcclCode": 5}
# Named as owed, whatever else the tables say: graph capture, counting notifies, the profiler (torch_npu would wait for ever for
# its output).
NAMED = ["aclprofInit", "aclmdlRICaptureBegin", "aclmdlRICaptureEnd", "aclmdlRIExecuteAsync", "aclrtCntNotifyCreate", "aclrtCntNotifyRecord",
         "aclrtBinaryLoadFromFile", "aclmdlLoadFromFile"]
WORDS = [b"EL0004", b"Failed to allocate", b"reason=["]


@pytest.fixture(scope="module")
def message(tree):
    acl = ctypes.CDLL(str(tree / "lib64/libascendcl.so"), mode=ctypes.RTLD_GLOBAL)
    acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return acl.aclGetRecentErrMsg


def test_every_owed_function_answers_by_its_name(tree, message):
    wrong, asked = [], 0
    for f in read_functions(ABI):
        if f.state != "NotYet" or f.status not in OWED or not (tree / "lib64" / f.library).exists():
            continue
        function = getattr(ctypes.CDLL(str(tree / "lib64" / f.library)), f.name)
        function.restype = ctypes.c_int
        message()
        code, text = function(), message() or b""
        asked += 1
        if code != OWED[f.status] or f.name.encode() not in text or any(w in text for w in WORDS):
            wrong.append(f"{f.name}: {code} {text!r}")
    assert not wrong, "\n".join(wrong)
    assert asked > 100, asked


def test_what_must_fail_by_name_does(tree, message):
    acl = ctypes.CDLL(str(tree / "lib64/libascendcl.so"))
    for name in NAMED:
        message()
        assert getattr(acl, name)() == 207000, name
        assert name.encode() in message(), name


def test_the_saturation_mode_is_kept(tree, message):
    acl = ctypes.CDLL(str(tree / "lib64/libascendcl.so"))
    mode = ctypes.c_int(9)
    for wanted in (0, 1):
        assert acl.aclrtSetDeviceSatMode(wanted) == 0
        assert acl.aclrtGetDeviceSatMode(ctypes.byref(mode)) == 0 and mode.value == wanted
    message()
    assert acl.aclrtSetDeviceSatMode(2) == 107000
    text = message()
    assert b"aclrtSetDeviceSatMode" in text and b"2" in text, text
    assert acl.aclrtGetDeviceSatMode(ctypes.byref(mode)) == 0 and mode.value == 1


def test_absent_functions_are_not_exported(tree):
    for f in read_functions(ABI):
        library = tree / "lib64" / f.library
        if f.state != "absent" or not library.exists():
            continue
        with pytest.raises(AttributeError):
            getattr(ctypes.CDLL(str(library)), f.name)
