#!/usr/bin/env python3
"""Each house rule finds what it is for, and leaves alone what is right."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from house_rules import built, cxx, docs, exceptions, python, text  # noqa: E402
from house_rules.functions import functions  # noqa: E402
from house_rules.tree import Finding, Tree  # noqa: E402


def found(rule, texts):
    """path:line of what a rule finds."""
    return [f"{finding.path}:{finding.line}" for finding in rule(Tree(texts))]


class TextRules(unittest.TestCase):
    def test_length(self):
        self.assertEqual(found(text.length, {"src/a.cc": "x\n" * 600}), [])
        self.assertEqual(found(text.length, {"src/a.cc": "x\n" * 601}), ["src/a.cc:601"])
        self.assertEqual(found(text.length, {"notes.md": "x\n" * 601}), [])

    def test_whitespace(self):
        self.assertEqual(found(text.whitespace, {"a.h": "one\ntwo \n"}), ["a.h:2"])
        self.assertEqual(found(text.whitespace, {"a.h": "\tone\n"}), ["a.h:1"])
        self.assertEqual(found(text.whitespace, {"Makefile": "a:\n\tb\n"}), [])
        self.assertEqual(found(text.whitespace, {"a.go": "func a() {\n\tb()\n}\n"}), [])
        self.assertEqual(found(text.whitespace, {"a.h": "one"}), ["a.h:1"])

    def test_words(self):
        self.assertEqual(found(text.words, {"a.cc": "ok\n// TO" "DO later\n"}), ["a.cc:2"])
        self.assertEqual(found(text.words, {"tools/x": "#!/bin/sh\n# a stu" "b\n"}), ["tools/x:2"])
        self.assertEqual(found(text.words, {"a.cc": "int todos = 0; // stubborn\n"}), [])

    def test_machine_paths(self):
        self.assertEqual(found(text.machine_paths, {"a.md": "see /ro" "ot/x\n"}), ["a.md:1"])
        self.assertEqual(found(text.machine_paths, {"a.md": "from http://deb.debian" ".org/debian\n"}), ["a.md:1"])
        self.assertEqual(found(text.machine_paths, {"a.md": "GET /v1/work/x, /tmp/x, src/work/x\n"}), [])


class CxxRules(unittest.TestCase):
    def test_pragma_once(self):
        self.assertEqual(found(cxx.pragma_once, {"src/core/a.h": "int x;\n"}), ["src/core/a.h:1"])
        self.assertEqual(found(cxx.pragma_once, {"src/core/a.h": "// A.\n#pragma once\n"}), [])

    def layer(self, importer, imported):
        texts = {importer: f'#include "{imported.removeprefix("src/")}"\n', imported: ""}
        return found(cxx.layers, texts) == []

    def test_layers_that_are_allowed(self):
        self.assertTrue(self.layer("src/engine/engine.h", "src/core/job.h"))
        self.assertTrue(self.layer("src/engine/journal/wheel.cc", "src/engine/engine.h"))
        self.assertTrue(self.layer("src/queue/queue.cc", "src/engine/engine.h"))
        self.assertTrue(self.layer("src/queue/queue_test.cc", "src/engine/memory/engine.h"))
        self.assertTrue(self.layer("src/queue/queue_test.cc", "tests/support/clock.h"))
        self.assertTrue(self.layer("src/app/main.cc", "src/engine/journal/engine.h"))
        self.assertTrue(self.layer("src/engine/kafka/ladder.cc", "src/engine/redis/pool.h"))
        self.assertTrue(self.layer("src/engine/kafka/ladder.cc", "src/kafka/producer.h"))
        self.assertTrue(self.layer("src/delivery/kafka_sink.h", "src/kafka/producer.h"))
        self.assertTrue(self.layer("tests/contract/a_test.cc", "src/engine/journal/engine.h"))

    def test_layers_that_are_not(self):
        self.assertFalse(self.layer("src/core/job.h", "src/engine/engine.h"))
        self.assertFalse(self.layer("src/queue/queue.cc", "src/engine/journal/engine.h"))
        self.assertFalse(self.layer("src/queue/queue.cc", "src/engine/memory/engine.h"))
        self.assertFalse(self.layer("src/engine/journal/x.cc", "src/engine/memory/engine.h"))
        self.assertFalse(self.layer("src/engine/engine.h", "src/engine/journal/x.h"))
        self.assertFalse(self.layer("src/net/session.cc", "src/queue/queue.h"))
        self.assertFalse(self.layer("src/kafka/producer.h", "src/queue/queue.h"))
        self.assertFalse(self.layer("src/queue/queue.cc", "tests/support/clock.h"))

    def test_include_paths(self):
        texts = {"src/core/a.cc": '#include "a.h"\n#include <map>\n#include "core/a.h"\n#include "src/core/a.h"\n',
                 "src/core/a.h": ""}
        self.assertEqual(found(cxx.include_paths, texts), ["src/core/a.cc:1", "src/core/a.cc:4"])
        self.assertEqual(found(cxx.include_paths, {"src/api/a.cc": "#include <boost/asio.hpp>\n"}), ["src/api/a.cc:1"])
        self.assertEqual(found(cxx.include_paths, {"src/app/a.cc": "#include <librdkafka/rdkafka.h>\n"}), ["src/app/a.cc:1"])
        self.assertEqual(found(cxx.include_paths, {"src/kafka/a.cc": "#include <librdkafka/rdkafka.h>\n"}), [])

    def test_time(self):
        sleep = "std::this_thread::sleep" "_for(1ms);\n"
        now = "auto n = std::chrono::system_clock" "::now();\n"
        self.assertEqual(found(cxx.time, {"src/queue/a_test.cc": sleep}), ["src/queue/a_test.cc:1"])
        self.assertEqual(found(cxx.time, {"tests/simulation/a.cc": now}), ["tests/simulation/a.cc:1"])
        self.assertEqual(found(cxx.time, {"src/queue/a.cc": now}), ["src/queue/a.cc:1"])
        self.assertEqual(found(cxx.time, {"src/app/a.cc": now + sleep, "bench/micro/a.cc": now}), [])
        self.assertEqual(found(cxx.time, {"src/queue/a.cc": "// never sleep(1) here\n"}), [])

    def test_function_length(self):
        body = "  a();\n"
        self.assertEqual(found(cxx.function_length, {"a.cc": "void f() {\n" + body * 68 + "}\n"}), [])
        self.assertEqual(found(cxx.function_length, {"a.cc": "\nvoid f() {\n" + body * 69 + "}\n"}), ["a.cc:2"])

    def test_dead_headers(self):
        texts = {"src/core/a.h": "", "src/core/b.h": '#include "core/b.h"\n', "src/core/c.cc": '#include "core/a.h"\n'}
        self.assertEqual(found(cxx.dead_headers, texts), ["src/core/b.h:1"])

    def test_contract_engines(self):
        texts = {"src/engine/memory/e.h": "", "src/engine/journal/e.h": "", "src/engine/engine.h": "",
                 "tests/contract/engines.cc": '#include "engine/memory/e.h"\n'}
        self.assertEqual(found(cxx.contract_engines, texts), ["src/engine/journal/e.h:1"])

    def test_dead_sources(self):
        findings = built.dead_sources(Tree({"src/a.cc": "", "src/b.cc": ""}), {"src/a.cc"})
        self.assertEqual([finding.path for finding in findings], ["src/b.cc"])


class Functions(unittest.TestCase):
    def names(self, code):
        return [name for name, _, _ in functions(code)]

    def test_plain_and_members(self):
        self.assertEqual(self.names("int f(int a = 1) { return a; }"), ["f"])
        self.assertEqual(self.names("namespace a {\nclass B final : public C {\n public:\n  int f() const { return 1; }\n"
                                    " private:\n  int g() noexcept override;\n};\n}  // namespace a"), ["f"])
        self.assertEqual(self.names("std::optional<int> A::b(std::map<int, int> m) && { return 1; }"), ["A::b"])

    def test_values_are_not_functions(self):
        self.assertEqual(self.names("constexpr int kA[] = {1, 2};\nstd::string s{f(1)};\nenum class E { kA, kB };"), [])
        self.assertEqual(self.names("struct alignas(64) S {\n  int x{0};\n};"), [])

    def test_constructor_initialisers(self):
        self.assertEqual(self.names("A::A(int x) : a_{x}, b_(f(x)), c_{} {\n  g();\n}\nvoid h() {}"), ["A::A", "h"])

    def test_templates_and_trailing_types(self):
        self.assertEqual(self.names("template <class T, class U = std::less<T>>\nauto f(T t) -> std::vector<T> {}"), ["f"])
        self.assertEqual(self.names("template <typename T>\nclass A {\n  void f() {}\n};"), ["f"])
        self.assertEqual(self.names('extern "C" int f(int a) { return a; }'), ["f"])

    def test_literals_and_comments_are_ignored(self):
        code = 'void f() {\n  g("}{", \'{\', R"({{)", 1\'000);  // {\n  /* { */\n}\n#define M(x) {\nvoid h() {}\n'
        self.assertEqual(list(functions(code)), [("f", 1, 4), ("h", 6, 6)])

    def test_a_test_is_named_by_its_arguments(self):
        self.assertEqual(self.names("TEST(Suite, Case) { auto f = [] { return 1; }; }"), ["TEST(Suite,Case)"])


class DocsRules(unittest.TestCase):
    def test_links(self):
        page = "# Top\n[a](b.md) [b](b.md#two-words) [c](https://x.y) [d](#top) `[e](no.md)`\n[f](no.md)\n[g](b.md#no)\n"
        texts = {"docs/a.md": page, "docs/b.md": "## Two words!\n"}
        self.assertEqual(found(docs.links, texts), ["docs/a.md:3", "docs/a.md:4"])

    def test_links_in_code_blocks_are_ignored(self):
        self.assertEqual(found(docs.links, {"a.md": "```\n[f](no.md)\n```\n"}), [])

    def test_readme_length(self):
        self.assertEqual(found(docs.readme_length, {"README.md": "x\n" * 120}), [])
        self.assertEqual(found(docs.readme_length, {"README.md": "x\n" * 121}), ["README.md:121"])

    def test_translations(self):
        english = "# A\n## B\n```sh\nmake run  # try it\n```\n"
        chinese = "# 甲\n## 乙\n```sh\nmake run  # 试一试\n```\n"
        self.assertEqual(found(docs.translations, {"README.md": english, "README.zh-CN.md": chinese}), [])
        self.assertEqual(found(docs.translations, {"README.md": english}), ["README.md:1"])
        for changed in (chinese.replace("## 乙\n", ""), chinese.replace("make run", "make test"), "# 甲\n## 乙\n"):
            self.assertNotEqual(found(docs.translations, {"README.md": english, "README.zh-CN.md": changed}), [])

    def test_decisions(self):
        texts = {"docs/adr/README.md": "[one](0001-one.md)\n", "docs/adr/0001-one.md": "", "docs/adr/0002-two.md": ""}
        self.assertEqual(found(docs.decisions, texts), ["docs/adr/0002-two.md:1"])


class Exceptions(unittest.TestCase):
    def apply(self, listed, findings):
        return [str(item) for item in exceptions.apply(Tree({exceptions.FILE: listed}), findings)]

    def test_a_reason_excuses(self):
        long_file = next(iter(text.length(Tree({"a.cc": "\n" * 700}))))
        long_function = next(iter(cxx.function_length(Tree({"a.cc": "void A::f() {\n" + "\n" * 80 + "}\n"}))))
        self.assertEqual(self.apply("long-file a.cc one table\nlong-function a.cc:A::f one switch\n",
                                    [long_file, long_function]), [])

    def test_no_reason_and_no_need_are_findings(self):
        self.assertEqual(len(self.apply("long-file a.cc\n", [])), 1)
        self.assertEqual(len(self.apply("long-file a.cc it was long\n", [])), 1)
        self.assertEqual(len(self.apply("", [Finding("a.cc", 1, "a tab; use spaces")])), 1)


class PythonRules(unittest.TestCase):
    def test_function_length(self):
        self.assertEqual(found(python.function_length, {"a.py": "def f():\n" + "    g()\n" * 69}), [])
        self.assertEqual(found(python.function_length, {"a.py": "def f():\n" + "    g()\n" * 70}), ["a.py:1"])


if __name__ == "__main__":
    unittest.main()
