"""docs/guide/getting-started.md is run as it is written: each block of commands in one shell and on a terminal, and what they
say is compared with the block behind it. Its translations have the same commands and outputs."""
import os
import pathlib
import re
import select
import subprocess

import harness
from harness import DEADLINE, PROGRAM, ROOT

GUIDE = ROOT / "docs" / "guide"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What differs from run to run.
VARYING = ((r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"), (r"\b((in )?(\d+(ms|m|s|us))+( ago)?|now)\b", "SPAN"), (r"\s+", " "))


def blocks(page):
    return BLOCK.findall((GUIDE / page).read_text())


def steady(text):
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return text.strip()


class GettingStarted(harness.ServerTest):
    def run_on_terminal(self, commands):
        """What they show, with the command's own alias left out, which needs an interactive shell."""
        screen, terminal = self.open_terminal()
        self.addCleanup(os.close, screen)
        script = self.directory / "commands.sh"
        script.write_text(f"set -e\ndelayq() {{ {PROGRAM} \"$@\"; }}\n{commands}\n")
        environment = {**os.environ, "DELAYQ_RESP": f"127.0.0.1:{self.server.port}", "TERM": "dumb", "NO_COLOR": "1"}
        process = subprocess.Popen(["bash", script], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=environment)
        os.close(terminal)
        said = b""
        while select.select([screen], [], [], DEADLINE)[0]:
            try:
                part = os.read(screen, 4096)
            except OSError:  # the other end is closed
                break
            said += part
        self.assertEqual(process.wait(DEADLINE), 0, said.decode())
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode().replace("\r\n", "\n"))

    def test_the_page_as_it_is_written(self):
        self.server = self.serve()
        page = [(kind, text) for kind, text in blocks("getting-started.md") if not text.startswith("alias ")]
        self.assertGreaterEqual(len(page), 12)
        for (kind, commands), (shown_kind, shown) in zip(page[::2], page[1::2], strict=True):
            self.assertEqual((kind, shown_kind), ("sh", "text"), commands)
            commands = commands.replace("127.0.0.1:9277", f"127.0.0.1:{self.server.http_port}")
            self.assertEqual(steady(self.run_on_terminal(commands)), steady(shown), commands)

    def test_translations_have_the_same_commands(self):
        for translated in sorted(GUIDE.glob("*.zh-CN.md")):
            original = pathlib.Path(str(translated).replace(".zh-CN.md", ".md"))
            if original.name == "recurring.md":
                continue  # has comments in its blocks
            self.assertEqual(blocks(translated.name), blocks(original.name), translated.name)


if __name__ == "__main__":
    harness.main()
