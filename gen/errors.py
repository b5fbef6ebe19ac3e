"""abi/errors.tsv -> gen/errors.h (enum class Code) and gen/errors.inc (one NPU_ERROR line a code)."""
import pathlib
import sys

from tables import read_table, write_if_changed


def main(table: str, out_dir: str) -> None:
    rows = read_table(table, ["code", "acl", "nn", "hccl", "dcmi", "meaning"])
    names = [r["code"] for r in rows]
    assert names[0] == "Ok" and len(set(names)) == len(names), f"{table}: codes must be unique and begin with Ok"
    out = pathlib.Path(out_dir)
    enum = "".join(f"  k{r['code']},  // {r['meaning']}\n" for r in rows)
    write_if_changed(
        out / "errors.h",
        f"// Generated from {pathlib.Path(table).name}.\n#pragma once\n#include <cstdint>\nnamespace npu {{\n"
        f"enum class Code : uint16_t {{\n{enum}}};\n}}  // namespace npu\n",
    )
    write_if_changed(
        out / "errors.inc",
        "".join(f"NPU_ERROR({r['code']}, {r['acl']}, {r['nn']}, {r['hccl']}, {r['dcmi']})\n" for r in rows),
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
