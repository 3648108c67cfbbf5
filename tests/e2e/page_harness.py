"""The snippets of a page, and programs that run as a reader runs them: in a terminal, until Ctrl-C."""
import os
import pathlib
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time

import harness

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DETAILS = re.compile(r"<details[^>]*><summary>(.*?)</summary>\n(.*?)</details>\n", re.DOTALL)
GUIDE = harness.ROOT / "docs" / "guide"


class Section:
    """What is under a heading of the second level: the folded parts by the name before the comma, and the blocks beside them."""

    def __init__(self, text):
        self.title, _, rest = text.partition("\n")
        self.parts, self.files, self.texts = {}, {}, {}
        for summary, inside in DETAILS.findall(rest):
            name, _, file = re.sub("</?code>", "", summary).partition(", ")
            self.parts[name] = BLOCK.findall(inside)
            self.files[name] = file
            self.texts[name] = inside
        self.text = rest
        self.blocks = BLOCK.findall(DETAILS.sub("", rest))

    def code(self, part):
        """The program or the commands of a part."""
        return next(code for language, code in self.parts[part] if language not in ("text", "toml"))

    def beside(self, language, part=None):
        """The text of the first block in this language, in a part or beside the parts."""
        return next((code for found, code in (self.parts.get(part, []) if part else self.blocks) if found == language), None)


def sections(page):
    text = (GUIDE / page).read_text(encoding="utf-8")
    return [Section(each) for each in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]


def modules_of(folder):
    """What a package-lock.json lists: from the cache of tools/npm."""
    done = subprocess.run([harness.ROOT / "tools" / "npm", harness.ROOT / folder], check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.strip())


class Terminal:
    """A command in a terminal of its own, and in a process group of its own, as a shell starts one."""

    def __init__(self, test, command, folder, environment):
        ours, theirs = test.open_terminal()
        self.terminal = ours
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment,  # pylint: disable=consider-using-with
                                        start_new_session=True)
        os.close(theirs)
        self.said = b""
        self.command = command
        test.addCleanup(self.close)

    def lines(self):
        return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.said.decode(errors="replace")).split("\n")]

    def read(self, seconds):
        """Whether there was more, or the end was not reached yet."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.terminal, selectors.EVENT_READ)
            if not waiting.select(seconds):
                return True
        try:
            part = os.read(self.terminal, 65536)
        except OSError:  # nobody has the other end any more
            part = b""
        self.said += part
        return part != b""

    def wait_until(self, condition, what):
        deadline = time.monotonic() + harness.DEADLINE
        while not condition():
            more = self.read(0.02)
            if condition():
                return
            if not more or time.monotonic() > deadline:
                raise AssertionError(f"never: {what}; {self.command} said:\n" + "\n".join(self.lines()))

    def expect(self, wanted):
        """Waits for lines with these texts, in any order."""
        self.wait_until(lambda: all(any(each in line for line in self.lines()) for each in wanted), wanted)

    def expect_end(self):
        """Reads all that it says, and returns its exit code."""
        deadline = time.monotonic() + harness.DEADLINE
        while self.read(0.1):
            if time.monotonic() > deadline:
                raise AssertionError(f"no end: {self.command} said:\n" + "\n".join(self.lines()))
        return self.process.wait(harness.DEADLINE)

    def interrupt(self):
        """Ctrl-C, and waits for the end."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.expect_end()

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(harness.DEADLINE)
        os.close(self.terminal)


class PageTest(harness.ServerTest):
    """A reader with a folder for programs, and the delayq command in the path."""

    def setUp(self):
        super().setUp()
        self.folder = self.directory / "recipes"
        self.folder.mkdir()
        commands = self.directory / "bin"
        commands.mkdir()
        (commands / "delayq").symlink_to(harness.PROGRAM)
        (commands / "python3").symlink_to(sys.executable)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DELAYQ_")}
        self.environment = {**kept, "PATH": f"{commands}:{kept['PATH']}", "DELAYQ_HOME": str(harness.ROOT), "PYTHONUNBUFFERED": "1",
                            "PYTHONDONTWRITEBYTECODE": "1", "TERM": "dumb", "HOME": str(self.directory), "CURL_HOME": str(self.directory)}
        (self.directory / ".curlrc").write_text("silent\n")
        self.ports, self.names = {}, {}

    def serve(self, *options):
        server = super().serve(*options)
        self.ports |= {"9278": str(server.port), "9277": str(server.http_port)}
        self.environment["DELAYQ_RESP"] = f"127.0.0.1:{server.port}"
        return server

    def localised(self, code):
        """The code with the ports and the names of this test instead of the usual ones."""
        for usual, ours in (self.names | self.ports).items():
            code = re.sub(rf"\b{re.escape(usual)}\b", ours, code)
        return code

    def start(self, command):
        return Terminal(self, ["bash", "-ec", self.localised(command)], self.folder, self.environment)

    def run_all(self, command):
        """Runs commands that end. Returns what they said."""
        done = subprocess.run(["bash", "-ec", self.localised(command)], cwd=self.folder, env=self.environment, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}")
        self.assertNotIn('"status":', done.stdout, "an answer is an error")
        return done.stdout

    def need(self, *tools):
        for tool in tools:
            self.assertTrue(shutil.which(tool, path=self.environment["PATH"]), f"{tool} is missing; tools/setup installs it")

    def prepare_go(self):
        """Modules and what was built stay in the user's cache; the sums of the modules are those of tests/clients."""
        self.need("go")
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "delayq" / "go"
        self.environment |= {"GOMODCACHE": str(cache / "mod"), "GOCACHE": str(cache / "build"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        shutil.copy(harness.ROOT / "tests" / "clients" / "go.sum", self.folder)

    def link_modules(self):
        """The packages of tests/clients, as `npm install` would bring them."""
        (self.folder / "node_modules").mkdir(exist_ok=True)
        for module in modules_of("tests/clients").iterdir():
            link = self.folder / "node_modules" / module.name
            if not module.name.startswith(".") and not link.exists():
                link.symlink_to(module)

    def save(self, name, code):
        self.folder.joinpath(name).write_text(self.localised(code), encoding="utf-8")


class Languages:
    """How to run a program of the page in each language: its own words in `Before you start`, for the first program."""

    def __init__(self, test, before, library="-ldelayq", module=""):
        self.test = test
        self.before = before
        self.library = library  # what programs in C++ are linked with
        self.module = module  # a command that brings what programs in Go import besides

    def command(self, language, file):
        """The command for this file, after what comes once; what compiles it has run already."""
        blocks = [code for kind, code in self.before.parts[language] if kind == "sh"]
        prepare = getattr(self, "prepare_" + re.sub(r"\W", "_", language.lower()), None)
        if prepare:
            prepare(blocks[0])
        # `go run` exits with 1 after Ctrl-C, whatever the program says.
        command = blocks[-1].replace("go run close.go", "go build -o close close.go && ./close")
        *compiling, running = re.sub(r"\bclose\b", pathlib.Path(file).stem, command).replace("-ldelayq", self.library).split(" && ")
        for each in compiling:
            self.test.run_all(each)
        return running

    def prepare_c__(self, _):
        """The library is built: it lies beside the server."""
        self.test.need("g++")
        built = pathlib.Path(harness.PROGRAM).resolve().parent
        home = self.test.directory / "home"
        (home / "build").mkdir(parents=True)
        (home / "build" / "release").symlink_to(built)
        (home / "sdk").symlink_to(harness.ROOT / "sdk")
        self.test.environment["DELAYQ_HOME"] = str(home)

    def prepare_go(self, once):
        self.test.prepare_go()
        self.test.run_all(once + self.module)

    def prepare_node_js(self, _):
        """As `npm ci` and `npm run build` would, but from what tools/npm has in its cache, and in a copy."""
        self.test.need("node", "npm")
        home = self.test.directory / "node"
        shutil.copytree(harness.ROOT / "sdk" / "node", home, ignore=shutil.ignore_patterns("node_modules", "dist", "build"), symlinks=True)
        (home / "node_modules").symlink_to(modules_of("sdk/node"))
        self.test.run_all(f"npm --prefix {home} run build")
        self.test.link_modules()
        (self.test.folder / "node_modules" / "delayq").symlink_to(home)

    def prepare_php(self, once):
        self.test.need("php", "composer")
        home = self.test.directory / "composer"
        home.mkdir()
        (home / "config.json").write_text('{"repositories": {"packagist.org": false}}')
        self.test.environment |= {"COMPOSER_HOME": str(home), "COMPOSER_ALLOW_SUPERUSER": "1", "COMPOSER_DISABLE_NETWORK": "1", "COMPOSER_NO_INTERACTION": "1"}
        self.test.run_all(once)
