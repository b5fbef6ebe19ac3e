"""Packs an HTML page into the program: page.py PAGE OUTPUT."""
import sys


def main(page, output):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    # A literal may hold only so much; neighbours are joined.
    parts = [text[i:i + 8000] for i in range(0, len(text), 8000)]
    assert ')page"' not in text
    literals = "\n".join(f'    R"page({part})page"' for part in parts)
    with open(output, "w", encoding="utf-8") as file:
        file.write('#include "tools/monitor/web/json.h"\n\nnamespace npu::monitor {\n\n'
                   f"std::string_view Page() {{\n  return\n{literals};\n}}\n\n}}  // namespace npu::monitor\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
