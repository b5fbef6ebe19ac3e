"""The guide: what its pages say to run runs and shows what they show. The articles' pages are run by test_article_*.py, which judge more."""
import pathlib
import re

import pytest
import yaml
from conftest import find_program
from guide import GUIDE, Page, fences, pages

# Run by the tests of the articles, on every wheel, with more checks.
ELSEWHERE = {"accelerate": "test_article_accelerate.py", "ray": "test_article_ray.py", "first-program": "test_article_torch_npu.py"}
HERE = [(page, label) for page in pages() if page not in ELSEWHERE for label in Page(page).commands]


@pytest.mark.parametrize("page,label", HERE)
def test_page(machine213, page, label):
    Page(page).run(label, machine213)


# Commands that answer in the page's language; the others are the same in both.
CHINESE = [(page, label) for page in pages() for label, code in Page(page, "zh").commands.items() if "--lang zh" in code and "python" not in code]


@pytest.mark.parametrize("page,label", CHINESE)
def test_page_in_chinese(machine213, page, label):
    done = Page(page, "zh").run(label, machine213)
    assert re.search("[\u4e00-\u9fff]", done.out), done.tail()


@pytest.mark.parametrize("page", sorted(ELSEWHERE))
def test_every_command_of_an_article_is_run(page):
    source = (GUIDE.parent.parent / "tests" / "e2e" / ELSEWHERE[page]).read_text()
    for label in Page(page).commands:
        assert f'"{label}"' in source, f"{ELSEWHERE[page]} does not run {label} of {page}.md"


def test_every_block_says_what_it_is():
    for language in ("en", "zh"):
        for name in pages(language):
            page = Page(name, language)
            assert len(fences(page.text)) == len([b for b in page.blocks if b[0] != "shows"]), f"{page.path}: a block without a comment in front"


def without_comments(code: str) -> str:
    return "\n".join(re.sub(r"\s*#.*$", "", line) for line in code.splitlines()).strip()


def test_both_languages_run_the_same():
    assert pages("en") == pages("zh")
    for name in pages():
        en, zh = Page(name), Page(name, "zh")
        assert [b[:2] for b in en.blocks if b[0] != "shown"] == [b[:2] for b in zh.blocks if b[0] != "shown"], name
        for (kind, label, code), (_, _, other) in zip(en.blocks, zh.blocks):
            if kind in ("file", "yaml"):
                assert without_comments(code) == without_comments(other), f"{name}: {label}"
            elif kind == "run":
                assert code.replace("--lang en", "--lang zh") in (other, other.replace("--lang en", "--lang zh")), f"{name}: {label}"
            elif kind == "shows":
                assert code == other, f"{name}: output of {label}"


def test_links_lead_somewhere():
    for path in GUIDE.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text()):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), f"{path}: {target}"


def test_page_one_names_the_limits():
    en, zh = Page("README").text, Page("README", "zh").text
    for words in ("Not a cycle simulator", "Not a hardware benchmark", "Drivers and firmware are not simulated", "uv pip install"):
        assert words in en
    for words in ("不是周期级模拟器", "不是硬件性能基准", "不模拟驱动与固件", "uv pip install"):
        assert words in zh


def test_dashboards_of_the_monitoring_page_are_shipped():
    shipped = {p.name for p in (pathlib.Path(find_program()).resolve().parent.parent / "monitoring" / "dashboards").glob("*.json")}
    for language in ("en", "zh"):
        assert set(re.findall(r"`([\w-]+\.json)`", Page("monitoring", language).text)) == shipped


def test_ci_files_are_yaml_that_runs_the_cards():
    for name, text in Page("ci").yaml.items():
        parsed = yaml.safe_load(text)
        assert "anynpu run -n 2 -- pytest tests" in str(parsed), name
    github = yaml.safe_load(Page("ci").yaml["github"])
    assert github["jobs"]["test"]["steps"] and yaml.safe_load(Page("ci").yaml["gitlab"])["npu"]["script"]
