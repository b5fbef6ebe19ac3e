"""Parity mode: what the chosen card refuses is refused or listed, with the line of Python and what to change."""
import random
import re

# Line 4 of the program is the one that the card refuses.
DOUBLE = """import torch, torch_npu
a = torch.tensor([[1.0, 2.0], [3.0, {x}]], dtype=torch.float64).npu()
def step():
    return a @ a
for _ in range(3):
    print("value", step().cpu()[1, 1].item())
"""


def program(machine, code: str) -> str:
    return machine.script("train.py", code)


def test_a_refused_type_is_refused_with_the_cards_text(machine213):
    path = program(machine213, DOUBLE.format(x=4.0))
    done = machine213.run(machine213.python, path, options=("--parity",))
    assert done.code == 1, done.tail()
    assert re.search(r"error code is 161002", done.err), done.tail()
    assert re.search(r"Tensor \w+ not implemented for DT_DOUBLE, should be in dtype support list \[DT_FLOAT,DT_FLOAT16,DT_BFLOAT16,\]", done.err), done.tail()
    report = done.err[done.err.index("anynpu parity:"):]
    assert re.search("refused as Ascend910B4 refuses (it|them)", report) and "train.py:4 in step" in report, report
    assert ".to(torch.float32)" in report and "source" in report, report
    # Without the mode the same program runs.
    machine213.run(machine213.python, path).ok()


def test_warn_lists_and_goes_on(machine213):
    x = random.randint(2, 99)
    path = program(machine213, DOUBLE.format(x=float(x)) + 'import os\nprint("queue", os.environ.get("TASK_QUEUE_ENABLE"))\n')
    done = machine213.run(machine213.python, path, options=("--parity=warn",)).ok()
    assert done.out.count(f"value {6.0 + x * x}") == 3, done.tail()
    done.says("^queue None$")
    report = done.err[done.err.index("anynpu parity:"):]
    assert "would have failed on Ascend910B4" in report and re.search(r"train\.py:4 in step, 3 times", report), report
    machine213.run(machine213.python, path, options=("--parity=warn",), env={"TASK_QUEUE_ENABLE": "2"}).ok().says("^queue 2$")


def test_a_clean_training_has_no_finding(machine213):
    done = machine213.py("""
        import torch, torch_npu
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                                    torch.nn.Linear(8 * 8 * 8, 32), torch.nn.LayerNorm(32), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 10)).npu()
        words = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).npu()
        opt = torch.optim.AdamW([*model.parameters(), *words.parameters()], lr=1e-3)
        for step in range(3):
            opt.zero_grad()
            x = torch.randn(4, 3, 16, 16, device="npu")
            loss = torch.nn.functional.cross_entropy(model(x), torch.randint(0, 10, (4,)).npu())
            with torch.autocast("npu", dtype=torch.bfloat16):
                loss = loss + words(torch.randn(2, 5, 32, device="npu")).float().pow(2).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        print("loss", torch.isfinite(loss).item())
    """, options=("--parity",))
    done.ok().says("^loss True$")
    assert "nothing of what Ascend910B4 is known to refuse was met" in done.err, done.err
    assert re.search(r"^  types of number arguments: \d+ calls of aclnn\w+", done.err, re.M), "what nobody knows is said: " + done.err


def test_chips_differ(machine213):
    code = """
        import torch, torch_npu
        x = torch.ones(3, dtype=torch.bfloat16).npu()
        print("sum", (-x).abs().float().cpu().sum().item())
    """
    machine213.py(code, options=("--parity",)).ok().says(r"^sum 3\.0$")
    done = machine213.py(code, options=("--parity=warn", "--soc", "310P3")).ok()
    done.says(r"^sum 3\.0$")
    assert "would have failed on Ascend310P3" in done.err and "DT_BFLOAT16" in done.err, done.tail()


def test_streams_are_limited_as_on_the_card(machine213):
    source = machine213.script("streams.cc", """
        #include <acl/acl.h>
        #include <cstdio>
        int main() {
          aclInit(nullptr);
          aclrtSetDevice(0);
          int made = 0, code = 0;
          for (aclrtStream s = nullptr; made < 2500 && (code = aclrtCreateStream(&s)) == 0;) ++made;
          std::printf("made %d code %d\\n", made, code);
        }
    """)
    build = f"g++ -std=c++17 -I$ASCEND_HOME_PATH/include {source} -L$ASCEND_HOME_PATH/lib64 -lascendcl -o streams && ./streams"
    # The default stream of the device counts.
    done = machine213.run("bash", "-c", build, options=("--parity",)).ok().says("^made 1983 code 207008$")
    assert "at most 1984 streams" in done.err and "no line of Python known" in done.err, done.err


def test_a_finding_in_a_backward_pass_has_the_line_that_waits_for_it(machine213):
    path = program(machine213, """import torch, torch_npu
a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64).npu().requires_grad_()
def step():
    loss = (a @ a).sum()
    loss.backward()
step()
print("gradient", a.grad.dtype)
""")
    done = machine213.run(machine213.python, path, options=("--parity=warn",)).ok().says("^gradient torch.float64$")
    assert "train.py:5 in step" in done.err, done.err


# Events of the extended kind: whether they count is not known, so they are made and listed.
def test_what_may_or_may_not_be_refused_is_listed_and_goes_on(machine213):
    source = machine213.script("events.cc", """
        #include <acl/acl.h>
        #include <cstdio>
        int main() {
          aclInit(nullptr);
          aclrtSetDevice(0);
          int made = 0;
          for (aclrtEvent e = nullptr; made < 1100 && aclrtCreateEventExWithFlag(&e, ACL_EVENT_SYNC) == 0;) ++made;
          std::printf("made %d\\n", made);
        }
    """)
    build = f"g++ -std=c++17 -I$ASCEND_HOME_PATH/include {source} -L$ASCEND_HOME_PATH/lib64 -lascendcl -o events && ./events"
    done = machine213.run("bash", "-c", build, options=("--parity", "--soc", "310P3")).ok().says("^made 1100$")
    assert "whether Ascend310P3 enforces it is not known" in done.err and "at most 1023 events" in done.err and "77 times" in done.err, done.err


# Types that are each in their list and do not go together by the page's table.
def test_a_combination_that_the_page_does_not_have_is_refused(machine213):
    code = """
        import torch, torch_npu
        x = torch.ones(4, 64, dtype=torch.bfloat16).npu()
        for gamma in (torch.ones(64).npu(), torch.ones(64, dtype=torch.float16).npu()):
            try:
                print("shape", tuple(torch_npu.npu_rms_norm(x, gamma)[0].cpu().shape))
            except RuntimeError as e:
                print("refused", "161002" in str(e))
    """
    done = machine213.py(code, options=("--parity",)).ok().says(r"^shape \(4, 64\)$", "^refused True$")
    assert "do not go together: x DT_BFLOAT16, gamma DT_FLOAT16" in done.err and "aclnnRmsNorm.md" in done.err, done.err


def test_words_that_are_none(machine213):
    done = machine213.run("true", options=("--parity=perhaps",))
    assert done.code == 2 and "--parity=warn" in done.err
    assert machine213.run("sh", "-c", "exit 7", options=("--parity",)).code == 7
    assert machine213.run("sh", "-c", "kill -9 $$", options=("--parity",)).code == 137
