"""Grafana dashboards: dashboards.py SHIPPED OUTPUT.

Copies rules and the scrape configuration to OUTPUT and writes OUTPUT/dashboards/*.json. A dashboard is data: title, and
panels of (title, kind, unit, queries). Kinds are Grafana's panel types.
"""
import json
import pathlib
import shutil
import sys

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SCHEMA = 38  # Grafana 10

# The article's queries stand here as it has them ("as in the article"); beside each is what we think is the better one.
DASHBOARDS = {
    "overview": ("NPU overview", [
        ("Cards", "stat", "short", [("machine_npu_nums", "cards")]),
        ("Cards that answer", "stat", "short", [("sum(npu_card_up)", "answer")]),
        ("AI core use", "timeseries", "percentunit", [("npu_core_utilization_ratio", "{{device}}")]),
        ("Memory in use", "timeseries", "bytes", [("npu_memory_used_bytes", "{{device}}")]),
        ("Power", "timeseries", "watt", [("npu_power_watts", "{{device}}")]),
        ("Temperature", "timeseries", "celsius", [("npu_temperature_celsius", "{{device}}")]),
        ("AI core clock", "timeseries", "hertz", [("npu_core_frequency_hertz", "{{device}}")]),
        ("Link", "timeseries", "Bps", [("npu_link_send_bytes_per_second", "{{device}} sends"),
                                        ("npu_link_receive_bytes_per_second", "{{device}} receives")]),
        ("Memory by process", "table", "bytes", [("npu_process_memory_bytes", "{{device}} {{process}} {{pid}}")]),
        ("Health (0 good, 3 critical)", "timeseries", "short", [("npu_health_level", "{{device}}")]),
        ("ECC errors", "timeseries", "short", [("npu_ecc_single_bit_errors", "{{device}} single"),
                                                ("npu_ecc_double_bit_errors", "{{device}} double")]),
        ("Alerts", "table", "short", [('ALERTS{alertstate="firing"} or vector(0)', "{{alertname}} {{device}}")]),
    ]),
    "hccl-health": ("HCCL health", [
        ("Send queue, as in the article", "timeseries", "short",
         [('avg by (instance) (rate(hccl_send_queue_length{job="npu-exporter"}[5m]))', "{{instance}}")]),
        ("Receive queue, as in the article", "timeseries", "short",
         [('avg by (instance) (rate(hccl_recv_queue_length{job="npu-exporter"}[5m]))', "{{instance}}")]),
        ("Send queue by card", "timeseries", "short", [("hccl_send_queue_length", "{{device}}")]),
        ("Receive queue by card", "timeseries", "short", [("hccl_recv_queue_length", "{{device}}")]),
        ("Longest send queue of 5 minutes", "stat", "short", [("max(max_over_time(hccl_send_queue_length[5m]))", "longest")]),
        ("Link", "timeseries", "short", [("npu_link_up", "{{device}}")]),
    ]),
    "memory-fragmentation": ("NPU memory fragmentation", [
        ("Use in percent, as in the article", "timeseries", "percent",
         [('100 - (sum by (instance) (npu_memory_total_bytes{job="npu-exporter"}) - sum by (instance) '
           '(npu_memory_used_bytes{job="npu-exporter"})) / sum by (instance) (npu_memory_total_bytes{job="npu-exporter"}) * 100',
           "{{instance}}")]),
        ("Fragmentation", "timeseries", "percentunit", [("npu_memory_fragmentation_ratio", "{{device}}")]),
        ("Free memory", "timeseries", "bytes", [("npu_memory_total_bytes - npu_memory_used_bytes", "{{device}}")]),
        ("Largest free range", "timeseries", "bytes",
         [("(npu_memory_total_bytes - npu_memory_used_bytes) * on (instance, device) (1 - npu_memory_fragmentation_ratio)", "{{device}}")]),
    ]),
    "operator-time": ("Operator times", [
        ("MatMul, as in the article", "timeseries", "short",
         [('avg by (op_name) (rate(acl_op_execute_time{op_name=~"MatMul.*"}[5m])) / 1000', "{{op_name}}")]),
        ("Softmax p95, as in the article", "timeseries", "µs",
         [('histogram_quantile(0.95, sum(rate(acl_op_execute_time_bucket{op_name=~"Softmax.*"}[5m])) by (le, op_name))', "{{op_name}}")]),
        ("MatMul mean", "timeseries", "µs", [('op_name:acl_op_execute_time:mean_us{op_name=~"MatMul.*"}', "{{op_name}}")]),
        ("MatMul p95", "timeseries", "µs",
         [('histogram_quantile(0.95, sum by (le, op_name) (rate(acl_op_execute_time_bucket{op_name=~"MatMul.*"}[5m])))', "{{op_name}}")]),
        ("Softmax mean", "timeseries", "µs", [('op_name:acl_op_execute_time:mean_us{op_name=~"Softmax.*"}', "{{op_name}}")]),
        ("LayerNorm mean", "timeseries", "µs", [('op_name:acl_op_execute_time:mean_us{op_name=~"LayerNorm.*"}', "{{op_name}}")]),
        ("LayerNorm p95", "timeseries", "µs",
         [('histogram_quantile(0.95, sum by (le, op_name) (rate(acl_op_execute_time_bucket{op_name=~"LayerNorm.*"}[5m])))', "{{op_name}}")]),
        ("Ten operators that take most time", "timeseries", "percentunit",
         [("topk(10, sum by (op_name) (rate(acl_op_execute_time_seconds_sum[1m])))", "{{op_name}}")]),
    ]),
    "step-time-deviation": ("Step time across cards", [
        ("Deviation, as in the article", "timeseries", "short",
         [('stddev by (job) (rate(npu_step_time_seconds_sum{job="npu-trainer"}[5m])) / avg by (job) '
           '(rate(npu_step_time_seconds_count{job="npu-trainer"}[5m]))', "{{job}}")]),
        ("Standard deviation of the mean", "timeseries", "percentunit",
         [('stddev by (ranks) (rank:npu_step_time_seconds:mean{ranks!="1"}) / avg by (ranks) (rank:npu_step_time_seconds:mean)', "{{ranks}} ranks")]),
        ("Off the mean by rank", "timeseries", "percentunit", [("rank:npu_step_time_seconds:deviation_ratio", "rank {{rank}} {{device}}")]),
        ("Own work of a step", "timeseries", "s", [("rank:npu_step_time_seconds:mean", "rank {{rank}} {{device}}")]),
        ("Wall time of a step", "timeseries", "s",
         [("rate(npu_step_wall_time_seconds_sum[1m]) / rate(npu_step_wall_time_seconds_count[1m])", "rank {{rank}} {{device}}")]),
        ("Steps per second", "timeseries", "short", [("rate(npu_step_time_seconds_count[1m])", "rank {{rank}}")]),
        ("Own work, median of the last steps", "timeseries", "s", [('npu_step_time_seconds{quantile="0.5"}', "rank {{rank}}")]),
    ]),
}


def panel(number, title, kind, unit, queries):
    height, width = (4, 6) if kind == "stat" else (8, 12)
    return {
        "id": number + 1, "title": title, "type": kind, "datasource": SOURCE,
        "gridPos": {"h": height, "w": width, "x": width * (number % (24 // width)), "y": 8 * (number // 2)},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "options": {},
        "targets": [{"refId": chr(ord("A") + i), "expr": expr, "legendFormat": legend, "datasource": SOURCE,
                     **({"instant": True, "format": "table"} if kind == "table" else {})}
                    for i, (expr, legend) in enumerate(queries)],
    }


def dashboard(name, title, panels):
    return {
        "uid": f"anynpu-{name}", "title": title, "tags": ["npu"], "schemaVersion": SCHEMA, "version": 1, "editable": True,
        "timezone": "browser", "refresh": "5s", "time": {"from": "now-30m", "to": "now"},
        "annotations": {"list": []}, "links": [],
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}]},
        "panels": [panel(i, *row) for i, row in enumerate(panels)],
    }


def main(shipped, output):
    shipped, output = pathlib.Path(shipped), pathlib.Path(output)
    shutil.copytree(shipped, output, dirs_exist_ok=True)
    (output / "dashboards").mkdir(exist_ok=True)
    for name, (title, panels) in DASHBOARDS.items():
        text = json.dumps(dashboard(name, title, panels), indent=1, ensure_ascii=False)
        (output / "dashboards" / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (output / "stamp").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
