"""abi/messages.tsv -> gen/messages.inc: for each code the number that CANN's texts begin with in each library, and the level of its log line.

Codes without a row are inner errors (EE9999, EZ9999, EI9999) and are logged as errors.
"""
import pathlib
import sys

from tables import TableError, read_table, write_if_changed

LEVELS = {"off": "kOff", "error": "kError", "warning": "kWarning", "info": "kInfo"}


def main(errors: str, fault_errors: str, messages: str, out_dir: str) -> None:
    codes = [r["code"] for table in (errors, fault_errors) for r in read_table(table, ["code"])]  # as gen/errors.py numbers them
    rows = {}
    for row in read_table(messages, ["code", "acl", "nn", "hccl", "log"]):
        where = f"{messages}:{row['_line']}"
        if row["code"] not in codes:
            raise TableError(f"{where}: {row['code']} is no code of {errors} and {fault_errors}")
        if row["log"] not in LEVELS:
            raise TableError(f"{where}: log is {row['log']!r}, not one of {', '.join(LEVELS)}")
        rows[row["code"]] = row
    inner = {"acl": "EE9999", "nn": "EZ9999", "hccl": "EI9999", "log": "error"}
    lines = []
    for code in codes:
        row = rows.get(code, inner)
        lines.append(f'NPU_MESSAGE("{row["acl"]}", "{row["nn"]}", "{row["hccl"]}", {LEVELS[row["log"]]})\n')
    write_if_changed(pathlib.Path(out_dir) / "messages.inc", "".join(lines))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except TableError as error:
        sys.exit(str(error))
