"""abi/errors.tsv, abi/fault_errors.tsv -> the codes of Status.

  errors.h        enum class Code
  fault_errors.h  the codes of faults, as constants of the same type: a table of its own, so that a new one does not
                  rebuild everything that includes base/status
  errors.inc      one NPU_ERROR line a code of either table
"""
import pathlib
import sys

from tables import read_table, write_if_changed

COLUMNS = ["code", "acl", "nn", "hccl", "dcmi", "meaning"]


def main(table: str, fault_table: str, out_dir: str) -> None:
    rows, faults = read_table(table, COLUMNS), read_table(fault_table, COLUMNS)
    names = [r["code"] for r in rows + faults]
    assert names[0] == "Ok" and len(set(names)) == len(names), f"{table}: codes must be unique and begin with Ok"
    out = pathlib.Path(out_dir)
    enum = "".join(f"  k{r['code']},  // {r['meaning']}\n" for r in rows)
    write_if_changed(
        out / "errors.h",
        f"// Generated from {pathlib.Path(table).name}.\n#pragma once\n#include <cstdint>\nnamespace npu {{\n"
        f"enum class Code : uint16_t {{\n{enum}}};\n}}  // namespace npu\n",
    )
    constants = "".join(
        f"inline constexpr Code k{r['code']} = static_cast<Code>({len(rows) + i});  // {r['meaning']}\n" for i, r in enumerate(faults)
    )
    write_if_changed(
        out / "fault_errors.h",
        f"// Generated from {pathlib.Path(fault_table).name}.\n#pragma once\n#include \"gen/errors.h\"\n"
        f"namespace npu::fault {{\n{constants}}}  // namespace npu::fault\n",
    )
    write_if_changed(
        out / "errors.inc",
        "".join(f"NPU_ERROR({r['code']}, {r['acl']}, {r['nn']}, {r['hccl']}, {r['dcmi']})\n" for r in rows + faults),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
