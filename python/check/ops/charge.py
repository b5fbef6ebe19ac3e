"""Who causes a finding. torch_npu: it raised by itself, it handed the call to the CPU, or torch_npu_own.tsv names the case with
its evidence. Ours: everything else that is not right."""
from __future__ import annotations

import csv
import fnmatch
import pathlib
import re

RIGHT = ("pass", "loose")
NEUTRAL = ("unusable",)  # torch's own samples fail on the CPU already


class Charges:
    def __init__(self):
        path = pathlib.Path(__file__).with_name("torch_npu_own.tsv")
        with path.open() as f:
            self.rows = list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))

    def own_case(self, op: str, dtype: str, finding: dict) -> str | None:
        for row in self.rows:
            if not (fnmatch.fnmatchcase(op, row["op"]) and fnmatch.fnmatchcase(dtype, row["dtype"])):
                continue
            if row["status"] in ("*", finding["status"]) and re.search(row["detail"], finding["detail"]):
                return row["evidence"]
        return None

    def who(self, op: str, dtype: str, finding: dict) -> tuple[str, str]:
        """("right" | "ours" | "torch_npu" | "nobody", evidence)."""
        status = finding["status"]
        if status in RIGHT:
            return "right", ""
        if status in NEUTRAL:
            return "nobody", finding["detail"]
        if status == "raised":
            return "torch_npu", finding["detail"]
        if status == "cpu":
            return "torch_npu", f"no kernel of torch_npu's: {finding['detail']}"
        if status == "accepted":
            return "nobody", finding["detail"]
        evidence = self.own_case(op, dtype, finding)
        return ("torch_npu", evidence) if evidence else ("ours", finding["detail"])
