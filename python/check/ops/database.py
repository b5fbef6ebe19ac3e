"""torch's operator database. It lives among torch's test helpers, which import expecttest; only its base class is needed."""
from __future__ import annotations

import sys
import types
import unittest


def operators() -> list:
    try:
        import expecttest  # noqa: F401
    except ImportError:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        stand_in.assert_expected_inline = lambda *a, **k: None
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


if __name__ == "__main__":  # names and types as JSON, for the driver, which stays without torch
    import json

    import torch

    from samples import title

    print(json.dumps([torch.__version__, [[title(o), sorted(str(d)[6:] for d in o.dtypes)] for o in operators()]]))
