"""pyACL on the software NPU: the part that launchers, schedulers and small programs use, in one file for Python 3.8 to 3.14.

Calls return as the vendor documents them: a status alone is returned alone, results come first and the status last, as in
`count, ret = acl.rt.get_device_count()`. Pointers, streams, contexts and events are plain integers. A function that this
file does not have raises NotImplementedError with its name.
"""
import ctypes as _c
import os as _os
import sys as _sys
import types as _types


def _load():
    try:
        return _c.CDLL("libascendcl.so")
    except OSError:
        # Started without our library path: the library lies in the same install tree.
        here = _os.path.dirname(_os.path.abspath(__file__))
        return _c.CDLL(_os.path.join(here, "..", "..", "lib64", "libascendcl.so"))


_library = _load()

# A signature names the C parameters in order; those with `>` are results.
_TYPES = {"i": _c.c_int32, "u": _c.c_uint32, "I": _c.c_int64, "z": _c.c_size_t, "p": _c.c_void_p, "f": _c.c_float, "s": _c.c_char_p}
_TAKES_BYTES = {"s"}


def _function(module, name, symbol, signature):
    words = signature.split()
    inputs = [w for w in words if w[0] != ">"]
    native = getattr(_library, symbol)
    native.restype = _c.c_int32
    native.argtypes = [_c.POINTER(_TYPES[w[1]]) if w[0] == ">" else _TYPES[w] for w in words]

    def call(*args):
        if len(args) != len(inputs):
            raise TypeError("%s.%s() takes %d arguments, %d given" % (module.__name__, name, len(inputs), len(args)))
        given, results, row = iter(args), [], []
        for word in words:
            if word[0] == ">":
                results.append(_TYPES[word[1]]())
                row.append(_c.byref(results[-1]))
            else:
                value = next(given)
                row.append(value.encode() if word in _TAKES_BYTES and isinstance(value, str) else value)
        status = native(*row)
        return tuple(0 if r.value is None else r.value for r in results) + (status,) if results else status

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Calls %s." % symbol
    setattr(module, name, call)


def _missing(module_name):
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(
            "%s.%s is not part of AnyNPU's acl module yet; what it has is listed by dir(%s)." % (module_name, name, module_name)
        )

    return __getattr__


def _submodule(name):
    module = _types.ModuleType("acl." + name)
    module.__getattr__ = _missing("acl." + name)
    _sys.modules["acl." + name] = module
    return module


rt = _submodule("rt")
util = _submodule("util")

for _row in """
set_device aclrtSetDevice i
reset_device aclrtResetDevice i
get_device aclrtGetDevice >i
get_device_count aclrtGetDeviceCount >u
get_run_mode aclrtGetRunMode >i
synchronize_device aclrtSynchronizeDevice
create_context aclrtCreateContext >p i
destroy_context aclrtDestroyContext p
set_context aclrtSetCurrentContext p
get_context aclrtGetCurrentContext >p
create_stream aclrtCreateStream >p
create_stream_with_config aclrtCreateStreamWithConfig >p u u
destroy_stream aclrtDestroyStream p
synchronize_stream aclrtSynchronizeStream p
synchronize_stream_with_timeout aclrtSynchronizeStreamWithTimeout p i
create_event aclrtCreateEvent >p
create_event_with_flag aclrtCreateEventWithFlag >p u
destroy_event aclrtDestroyEvent p
record_event aclrtRecordEvent p p
query_event_status aclrtQueryEventStatus p >i
synchronize_event aclrtSynchronizeEvent p
event_elapsed_time aclrtEventElapsedTime >f p p
stream_wait_event aclrtStreamWaitEvent p p
malloc aclrtMalloc >p z i
malloc_cached aclrtMallocCached >p z i
free aclrtFree p
malloc_host aclrtMallocHost >p z
free_host aclrtFreeHost p
memcpy aclrtMemcpy p z p z i
memcpy_async aclrtMemcpyAsync p z p z i p
memset aclrtMemset p z i z
memset_async aclrtMemsetAsync p z i z p
get_mem_info aclrtGetMemInfo i >z >z
device_can_access_peer aclrtDeviceCanAccessPeer >i i i
device_enable_peer_access aclrtDeviceEnablePeerAccess i u
device_disable_peer_access aclrtDeviceDisablePeerAccess i
""".strip().split("\n"):
    _name, _symbol, *_signature = _row.split()
    _function(rt, _name, _symbol, " ".join(_signature))

_this = _sys.modules[__name__]
_function(_this, "_init", "aclInit", "s")
_function(_this, "finalize", "aclFinalize", "")
_function(_this, "_get_version", "aclrtGetVersion", ">i >i >i")


def init(config_path=None):
    """Calls aclInit; the configuration file is optional."""
    return _init(config_path)  # noqa: F821


def get_version():
    """(major, minor, patch, ret)."""
    return _get_version()  # noqa: F821


def get_soc_name():
    """The name of the chip, for example Ascend910B4; empty when there is none."""
    native = _library.aclrtGetSocName
    native.restype, native.argtypes = _c.c_char_p, []
    return (native() or b"").decode()


def get_recent_err_msg():
    """The text of the last failure of this thread, or an empty string."""
    native = _library.aclGetRecentErrMsg
    native.restype, native.argtypes = _c.c_char_p, []
    return (native() or b"").decode("utf-8", "replace")


def _ptr_to_bytes(ptr, size):
    return _c.string_at(ptr, size)


def _bytes_to_ptr(data):
    """The address of the bytes' content; the caller keeps the object alive while it is used."""
    return _c.cast(_c.c_char_p(data), _c.c_void_p).value


def _numpy_to_ptr(array):
    return array.ctypes.data


def _ptr_to_numpy(ptr, shape, np_type):
    """An array over `ptr`, which must be host memory; np_type is NumPy's type number."""
    import numpy

    by_number = {numpy.dtype(c).num: numpy.dtype(c) for c in "?bBhHiIlLqQefd"}
    dtype = by_number[np_type]
    count = 1
    for n in shape:
        count *= n
    raw = (_c.c_uint8 * (count * dtype.itemsize)).from_address(ptr)
    return numpy.frombuffer(raw, dtype=dtype).reshape(shape)


util.ptr_to_bytes, util.bytes_to_ptr = _ptr_to_bytes, _bytes_to_ptr
util.numpy_to_ptr = util.numpy_contiguous_to_ptr = _numpy_to_ptr
util.ptr_to_numpy = _ptr_to_numpy
__getattr__ = _missing("acl")
