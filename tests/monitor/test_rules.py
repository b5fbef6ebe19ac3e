"""Alert rules against series made by hand, in promtool: what fires, on whom, when it clears, and what stays silent."""
from __future__ import annotations

import json
import random
import subprocess
import time

import pytest
from live import need, shipped

SEED = int(time.time_ns() % 1_000_000)
CARDS = 4
EXPORTER = 'instance="h:8082",job="npu-exporter"'
TRAINER = 'instance="h:8000",job="npu-trainer"'


def promtool(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([need("promtool"), *words], capture_output=True, text=True, timeout=120)


def steady(value, count: int) -> str:
    return f"{value}+0x{count}"


def rising(step: float, count: int) -> str:
    return f"0+{step}x{count}"


def healthy(minutes: int, rng: random.Random) -> dict[str, str]:
    """One sample each 15 s."""
    n = minutes * 4
    series = {f'up{{{EXPORTER}}}': steady(1, n)}
    for card in range(CARDS):
        labels = f'{{{EXPORTER},device="npu{card}"}}'
        for name, low, high in [("npu_temperature_celsius", 35, 80), ("npu_memory_fragmentation_ratio", 0, 0.28), ("hccl_send_queue_length", 0, 10),
                                ("hccl_recv_queue_length", 0, 8)]:
            values = [round(rng.uniform(low, high), 3) if low != 0 or high < 1 else rng.randint(low, high) for _ in range(n + 1)]
            series[name + labels] = " ".join(map(str, values))
        for name, value in [("npu_card_up", 1), ("npu_health_level", 0), ("npu_ecc_single_bit_errors", 0), ("npu_ecc_double_bit_errors", 0), ("npu_link_up", 1),
                            ("npu_memory_total_bytes", 34359738368), ("npu_memory_used_bytes", 3_000_000_000)]:
            series[name + labels] = steady(value, n)
        rank = f'{{{TRAINER},device="npu{card}",rank="{card}",ranks="{CARDS}"}}'
        steps = rng.randint(10, 20)
        series["npu_step_time_seconds_count" + rank] = rising(steps, n)
        series["npu_step_time_seconds_sum" + rank] = rising(round(steps * rng.uniform(0.95, 1.05), 3), n)
        # Trainings on one card beside them, which have no peers, whatever their steps take.
        alone = f'{{{TRAINER},device="npu{card}",rank="0",ranks="1"}}'
        series["npu_step_time_seconds_count" + alone] = rising(steps, n)
        series["npu_step_time_seconds_sum" + alone] = rising(round(steps * 10 ** rng.uniform(-3, 1), 5), n)
    for op, mean in [("MatMul", rng.randint(100, 750)), ("Softmax", 5000), ("BatchMatMul", 5000)]:
        labels = f'{{{EXPORTER},op_name="{op}"}}'
        series["acl_op_execute_time_count" + labels] = rising(100, n)
        series["acl_op_execute_time_sum" + labels] = rising(100 * mean, n)
    return series


def pulse(normal, sick, begin: int, length: int, total: int) -> str:
    """`sick` for `length` minutes from minute `begin` on."""
    return " ".join([f"{normal}+0x{begin * 4 - 1}", f"{sick}+0x{length * 4 - 1}", f"{normal}+0x{total * 4}"])


def device(card: int, name: str) -> str:
    return f'{name}{{{EXPORTER},device="npu{card}"}}'


# alert, the series that make it (card or operator given), labels of the culprit, minutes until it fires, minutes the fault lasts
FAULTS = [
    ("HcclSendBlocked", lambda c: {device(c, "hccl_send_queue_length"): (0, 11)}, "device", 2, 6),
    ("HcclReceiveSlow", lambda c: {device(c, "hccl_recv_queue_length"): (0, 9)}, "device", 5, 9),
    ("NpuMemoryFragmented", lambda c: {device(c, "npu_memory_fragmentation_ratio"): (0.1, 0.31)}, "device", 1, 5),
    ("NpuTemperatureHigh", lambda c: {device(c, "npu_temperature_celsius"): (60, 86)}, "device", 1, 5),
    ("NpuEccDoubleBit", lambda c: {device(c, "npu_ecc_double_bit_errors"): (0, 1), device(c, "npu_health_level"): (0, 3)}, "device", 0, 4),
    ("NpuEccSingleBit", lambda c: {device(c, "npu_ecc_single_bit_errors"): (0, 3)}, "device", 1, 5),
    ("NpuCardLost", lambda c: {device(c, "npu_card_up"): (1, 0)}, "device", 1, 4),
    ("NpuUnhealthy", lambda c: {device(c, "npu_health_level"): (0, 2)}, "device", 1, 5),
    ("NpuLinkDown", lambda c: {device(c, "npu_link_up"): (1, 0)}, "device", 1, 4),
    ("NpuExporterDown", lambda c: {f"up{{{EXPORTER}}}": (1, 0)}, "instance", 1, 4),
]
ALERTS = [name for name, *_ in FAULTS] + ["MatMulSlow", "NpuRankSlow"]


def write(path, series: dict[str, str], checks: list[dict]) -> None:
    test = {"rule_files": [str(p) for p in sorted((shipped() / "rules").glob("*.yml"))], "evaluation_interval": "15s",
            "tests": [{"interval": "15s", "input_series": [{"series": k, "values": v} for k, v in series.items()], "promql_expr_test": checks}]}
    path.write_text(json.dumps(test))  # JSON is YAML


def firing(minute: float, alerts: list[tuple[str, str]]) -> dict:
    """Exactly these (alert, labels) fire at that minute."""
    samples = [{"labels": f'{{alertname="{name}", {labels}}}', "value": 1} for name, labels in alerts]
    return {"expr": 'count by (alertname, device, rank, op_name) (ALERTS{alertstate="firing"})', "eval_time": f"{int(minute * 60)}s", "exp_samples": samples}


def run(tmp_path, series, checks) -> None:
    path = tmp_path / "rules_test.yml"
    write(path, series, checks)
    done = promtool("test", "rules", str(path))
    assert done.returncode == 0, f"seed {SEED}\n{done.stdout}{done.stderr}"


def test_shipped_files_are_clean():
    done = promtool("check", "config", str(shipped() / "prometheus.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    rules = sorted(map(str, (shipped() / "rules").glob("*.yml")))
    assert len(rules) == 2
    done = promtool("check", "rules", *rules)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def test_every_alert_is_tested():
    text = (shipped() / "rules" / "alerts.yml").read_text()
    named = [line.split("alert:")[1].strip() for line in text.splitlines() if "alert:" in line]
    assert sorted(named) == sorted(ALERTS)


def test_a_healthy_hour_is_silent(tmp_path):
    rng = random.Random(SEED)
    run(tmp_path, healthy(60, rng), [firing(m, []) for m in range(0, 61)])


@pytest.mark.parametrize("alert", [f[0] for f in FAULTS])
def test_an_alert_fires_on_its_fault_alone_and_clears(tmp_path, alert):
    rng = random.Random(SEED)
    _, make, culprit, patience, lasts = next(f for f in FAULTS if f[0] == alert)
    begin, total = 5, 30
    card = rng.randrange(CARDS)
    series = healthy(total, rng)
    for name, (normal, sick) in make(card).items():
        series[name] = pulse(normal, sick, begin, lasts, total)
    labels = f'device="npu{card}"' if culprit == "device" else ""
    expected = [(alert, labels)] if labels else [(alert, "")]
    checks = [firing(begin - 0.5, []), firing(begin + lasts - 0.5, expected), firing(begin + lasts + 2, [])]
    if patience >= 2:
        checks.append(firing(begin + patience - 0.75, []))  # not before its time
    for check in checks:
        for sample in check["exp_samples"]:
            sample["labels"] = sample["labels"].replace(", }", "}")
    run(tmp_path, series, checks)


def test_slow_matrix_products_are_named(tmp_path):
    rng = random.Random(SEED)
    series = healthy(30, rng)
    labels = f'{{{EXPORTER},op_name="MatMul"}}'
    mean = rng.randint(850, 5000)
    series["acl_op_execute_time_sum" + labels] = f"0+{100 * 300}x20 {100 * 300 * 20}+{100 * mean}x24 {100 * 300 * 20 + 100 * mean * 24}+{100 * 300}x60"
    run(tmp_path, series, [firing(4, []), firing(10, [("MatMulSlow", 'op_name="MatMul"')]), firing(16, [])])


def test_a_slow_rank_is_named_and_its_healthy_peers_are_not(tmp_path):
    rng = random.Random(SEED)
    series = healthy(30, rng)
    slow = rng.randrange(CARDS)
    factor = rng.uniform(1.3, 3)
    for rank in range(CARDS):
        labels = f'{{{TRAINER},device="npu{rank}",rank="{rank}",ranks="{CARDS}"}}'
        series["npu_step_time_seconds_count" + labels] = rising(10, 120)
        step = 1.0 * factor if rank == slow else 1.0
        sick = f"0+10x20 {200}+{10 * step}x24 {200 + 10 * step * 24}+10x60"
        series["npu_step_time_seconds_sum" + labels] = sick
    run(tmp_path, series, [firing(4, []), firing(10, [("NpuRankSlow", f'device="npu{slow}", rank="{slow}"')]), firing(16, [])])
