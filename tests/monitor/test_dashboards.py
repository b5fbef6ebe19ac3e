"""Dashboards as Grafana wants them; what their queries answer is test_live.py's."""
from __future__ import annotations

import json
import re
import subprocess

from live import need, shipped

BOARDS = {"overview", "hccl-health", "memory-fragmentation", "operator-time", "step-time-deviation"}


def dashboards() -> dict[str, dict]:
    return {p.stem: json.loads(p.read_text()) for p in (shipped() / "dashboards").glob("*.json")}


def queries() -> list[tuple[str, str]]:
    return [(f"{name}: {panel['title']}", target["expr"]) for name, board in dashboards().items() for panel in board["panels"] for target in panel["targets"]]


# The article's queries, letter for letter.
ARTICLE = [
    'avg by (instance) (rate(hccl_send_queue_length{job="npu-exporter"}[5m]))',
    'avg by (instance) (rate(hccl_recv_queue_length{job="npu-exporter"}[5m]))',
    '100 - (sum by (instance) (npu_memory_total_bytes{job="npu-exporter"}) - sum by (instance) (npu_memory_used_bytes{job="npu-exporter"}))'
    ' / sum by (instance) (npu_memory_total_bytes{job="npu-exporter"}) * 100',
    'avg by (op_name) (rate(acl_op_execute_time{op_name=~"MatMul.*"}[5m])) / 1000',
    'histogram_quantile(0.95, sum(rate(acl_op_execute_time_bucket{op_name=~"Softmax.*"}[5m])) by (le, op_name))',
    'stddev by (job) (rate(npu_step_time_seconds_sum{job="npu-trainer"}[5m])) / avg by (job) (rate(npu_step_time_seconds_count{job="npu-trainer"}[5m]))',
]


def test_five_boards_of_the_shape_that_grafana_imports():
    boards = dashboards()
    assert set(boards) == BOARDS
    assert len({b["uid"] for b in boards.values()}) == len(boards)
    for name, board in boards.items():
        assert isinstance(board["title"], str) and len(board["uid"]) <= 40 and isinstance(board["schemaVersion"], int), name
        assert {"from", "to"} <= set(board["time"]) and isinstance(board["templating"]["list"], list)
        places = []
        for panel in board["panels"]:
            assert isinstance(panel["id"], int) and panel["title"] and panel["type"] in {"timeseries", "stat", "table"}
            grid = panel["gridPos"]
            assert set(grid) == {"h", "w", "x", "y"} and 0 < grid["w"] <= 24 and grid["x"] + grid["w"] <= 24
            places.append((grid["x"], grid["y"], grid["w"], grid["h"]))
            assert panel["fieldConfig"].keys() == {"defaults", "overrides"}
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["targets"] and all(t["refId"] and t["expr"] for t in panel["targets"])
        assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
        for i, (x, y, w, h) in enumerate(places):
            for other in places[i + 1:]:
                apart = x + w <= other[0] or other[0] + other[2] <= x or y + h <= other[1] or other[1] + other[3] <= y
                assert apart, (name, i)


def test_the_articles_queries_are_on_the_boards():
    shown = {expr for _, expr in queries()}
    for expr in ARTICLE:
        assert expr in shown, expr
    for op in ("MatMul", "Softmax", "LayerNorm"):
        for what in ("mean", "p95"):
            assert any(re.search(rf"{op}\b.*{what}|{op} {what}", title) for title, _ in queries()), (op, what)


def test_every_query_parses(tmp_path):
    rules = [{"record": f"q{i}", "expr": expr} for i, (_, expr) in enumerate(queries())]
    (tmp_path / "q.yml").write_text(json.dumps({"groups": [{"name": "q", "rules": rules}]}))
    done = subprocess.run([need("promtool"), "check", "rules", str(tmp_path / "q.yml")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
