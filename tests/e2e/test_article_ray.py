"""The Ray article: discovery, isolation of task and actor, shared cards."""
import importlib.util
import subprocess

import pytest

from conftest import WHEELS, Machine

RAY_WHEELS = [name for name, python in WHEELS.items()
              if subprocess.run([python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('ray') is None)"]).returncode == 0]


@pytest.fixture(params=RAY_WHEELS)
def ray_machine(request, tmp_path):
    return Machine(tmp_path, WHEELS[request.param])


def test_discovery(ray_machine):
    ray_machine.py("""
        import ray
        from ray._private.accelerators import NPUAcceleratorManager

        ray.init(include_dashboard=False, log_to_driver=False)
        count = int(ray.cluster_resources().get("NPU", 0))
        assert count == 2, ray.cluster_resources()
        print("Ray NPU resources:", count)
        print("Ascend type:", NPUAcceleratorManager.get_current_node_accelerator_type())
        ray.shutdown()
    """).ok().says(r"^Ray NPU resources: 2$", r"^Ascend type: Ascend910B4$")


def test_task_and_actor_isolation(ray_machine):
    ray_machine.py("""
        import os
        import ray

        ray.init(resources={"NPU": 2}, include_dashboard=False, log_to_driver=False)

        def assigned_npu():
            import torch
            import torch_npu

            ids = [str(value) for value in ray.get_runtime_context().get_accelerator_ids()["NPU"]]
            assert len(ids) == 1, ids
            visible = os.environ["ASCEND_RT_VISIBLE_DEVICES"]
            assert visible == ids[0], (visible, ids)
            value = torch.ones(4, device="npu:0").sum().cpu().item()
            return ids[0], value

        @ray.remote(resources={"NPU": 1})
        class NPUActor:
            def ping(self):
                return assigned_npu()

        @ray.remote(resources={"NPU": 1})
        def npu_task():
            return assigned_npu()

        actor = NPUActor.remote()
        actor_result = ray.get(actor.ping.remote())
        task_result = ray.get(npu_task.remote())
        ids = sorted([actor_result[0], task_result[0]])
        values = sorted([actor_result[1], task_result[1]])
        assert ids == ["0", "1"], ids
        assert values == [4.0, 4.0], values
        print("assigned NPU IDs:", ",".join(ids))
        print("tensor sums:", ",".join(str(value) for value in values))
        ray.kill(actor)
        ray.shutdown()
    """).ok().says(r"^assigned NPU IDs: 0,1$", r"^tensor sums: 4\.0,4\.0$")


def test_eight_tasks_share_the_cards(ray_machine):
    ray_machine.py("""
        import ray
        ray.init(resources={"NPU": 2}, num_cpus=8, include_dashboard=False, log_to_driver=False)

        @ray.remote(resources={"NPU": 0.25}, num_cpus=1)
        def quarter(k):
            import torch, torch_npu
            return float(torch.full((k + 1,), 2.0, device="npu:0").sum().item()), ray.get_runtime_context().get_accelerator_ids()["NPU"]

        results = ray.get([quarter.remote(k) for k in range(8)])
        assert [r[0] for r in results] == [2.0 * (k + 1) for k in range(8)], results
        print("cards used:", ",".join(sorted({str(r[1][0]) for r in results})))
        ray.shutdown()
    """, timeout=400).ok().says(r"^cards used: 0,1$")


def test_counting_device_files_without_the_module(ray_machine):
    """Ray's second way: files in /dev, for programs whose `import acl` fails."""
    done = ray_machine.py("""
        import sys
        sys.modules["acl"] = None  # the import raises
        from ray._private.accelerators import NPUAcceleratorManager
        print("files:", NPUAcceleratorManager.get_current_node_num_accelerators())
    """, cards=3, options=("--dev-nodes",)).ok()
    if "cannot be shown" in done.err:
        pytest.skip("no user or mount namespaces here; a line on stderr says so")
    done.says(r"^files: 3$")
