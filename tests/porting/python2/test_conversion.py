import ast
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import fissix
import pytest
from fissix.pgen2.parse import ParseError
from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.python2.conversion import REASONS, Converted, to_python3, with_python3_names
from jumar.porting.script.source import decode


def converted(text: str) -> Converted:
    found = to_python3(text)
    assert found is not None, text
    ast.parse(found.text)
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("print 'a'\n", "print('a')\n"),
        ("print\n1L\n", "print()\n1\n"),
        ("print 'a', 'b'\n", "print('a', 'b')\n"),
        ("print 'a',\n", "print('a', end=' ')\n"),
        ("print ('a'),\n", "print(('a'), end=' ')\n"),
        ("print ('a') % b\n", "print(('a') % b)\n"),
        ("print (a, b); print c\n", "print((a, b)); print(c)\n"),
        ("print (a); print c\n", "print (a); print(c)\n"),
        ("print (); print c\n", "print(()); print(c)\n"),
        ("print >>sys.stderr, 'a',\n", "print('a', end=' ', file=sys.stderr)\n"),
        ("print >> f\n", "print(file=f)\n"),
        ("print>>f,'a'\n", "print('a', file=f)\n"),
        ("print 'a' \\\n  'b'  # c\n", "print('a' \\\n  'b')  # c\n"),
        ("print 'Ж', x # ж\n", "print('Ж', x) # ж\n"),
        ("try: pass\nexcept E, e: pass\n", "try: pass\nexcept E as e: pass\n"),
        ("try: pass\nexcept (E,\n F), e: pass\n", "try: pass\nexcept (E,\n F) as e: pass\n"),
        (
            "try:\n\tpass\nexcept E, (a, b):\n\t# c\n\tpass\n",
            "try:\n\tpass\nexcept E as error:\n\t# c\n\t(a, b) = error.args\n\tpass\n",
        ),
        (
            "try: error\nexcept E, (a, b): pass\n",
            "try: error\nexcept E as error_: (a, b) = error_.args; pass\n",
        ),
        ("raise E, 'a'\n", "raise E('a')\n"),
        ("raise E, ('a' % b)\n", "raise E('a' % b)\n"),
        ("raise E, 'a', t\n", "raise E('a').with_traceback(t)\n"),
        ("raise E, None, t\n", "raise E().with_traceback(t)\n"),
        ("raise e, None, t\n", "raise e.with_traceback(t)\n"),
        ("raise E, (a), t\n", "raise E(a).with_traceback(t)\n"),
        ("exec c\n", "exec(c)\n"),
        ("exec c in g, l\n", "exec(c, g, l)\n"),
        ("exec(c, g); 1L\n", "exec(c, g); 1\n"),
        ("a <> b\n", "a != b\n"),
        ("x = `a` + `b, c`\n", "x = repr(a) + repr((b, c))\n"),
        ("x = 0777, 00, 0, 10L, 0xFFL, 0L, 09.5\n", "x = 0o777, 00, 0, 10, 0xFF, 0, 09.5\n"),
        ("x = ur'a\\d', u'b'\n", "x = r'a\\d', u'b'\n"),
        ("print `1L`,\n", "print(repr(1), end=' ')\n"),
        (
            "from __future__ import print_function\nprint('a', f)\n1L\n",
            "from __future__ import print_function\nprint('a', f)\n1\n",
        ),
        ("'''from x'''\nprint 'a'\r\nprint 'b'", "'''from x'''\nprint('a')\r\nprint('b')"),
        ("if a:\n        b\n\tc\n", "if a:\n        b\n        c\n"),
        (
            "if a:\n\tprint '''\n\tb'''\n        c\n",
            "if a:\n        print('''\n\tb''')\n        c\n",
        ),
        ("\x0cprint 'a'\n", "\x0cprint('a')\n"),
    ],
)
def test_unambiguous_code_is_rewritten_in_place(before: str, after: str) -> None:
    found = converted(before)
    assert found.text == after
    assert {edit.rule for edit in found.edits} <= set(REASONS)
    assert found.edits


@pytest.mark.parametrize(
    "text",
    [
        "def f((a, b)): pass\n",
        "lambda (a, b): a\n",
        "print 'a'\nx = ur'\\u1234'\n",
        "raise 'a', b\n",
        "print >>files[`1`], 'a'\n",
        "print 'a'\rprint 'b'\r",
        "x = (\n",
        "x = = 1\n",
        "print 'a\n",
        "try: pass\nexcept E, a.b: pass\n",
        "f(async=True)\n",
        "print('a', file=f)\nprint >>f, 'a'\n",
    ],
)
def test_ambiguous_code_is_not_converted(text: str) -> None:
    assert to_python3(text) is None


def test_edits_have_locations_in_both_texts() -> None:
    before = "x = `a`; print 'b'\ntry:\n  y\nexcept E, (a, b):\n  print 1L\n"
    found = converted(before)
    new = found.text.split("\n")
    old = before.split("\n")
    shown = [(edit.rule, edit.before, edit.after) for edit in found.edits]
    assert shown == [
        ("python2-repr", "`a`", "repr(a)"),
        ("python2-print", "print 'b'", "print('b')"),
        ("python2-except", "except E, (a, b)", "except E as error"),
        ("python2-print", "print 1L", "print(1)"),
        ("python2-number", "1L", "1"),
    ]
    for edit in found.edits:
        after = edit.place_after
        assert after is not None
        assert old[edit.place.line - 1][edit.place.column - 1 :].startswith(edit.before)
        assert new[after.line - 1][after.column - 1 :].startswith(edit.after)
        assert found.place_before(after) == edit.place


def test_names_missing_from_python_3_are_findings_at_their_location() -> None:
    text = (
        "import urllib2, itertools, six\n"
        "print 'é', `a`; reload(b)\n"
        "x = unicode(b, 'utf-8')\n"
        "n = len(files) / batch\n"
        "m = len(files) / 2.0 + float(a) / b\n"
        "z = zip(a, b)[0]; keys = d.keys() + [1]\n"
        "from itertools import izip\n"
        "image = (image - mean) / std\n"
    )
    found = converted(text)
    assert [(one.rule, str(one.place), str(one.place_after)) for one in found.findings] == [
        ("python2-module", "1:1", "1:1"),
        ("python2-builtin", "2:17", "2:22"),
        ("python2-builtin", "3:5", "3:5"),
        ("python2-division", "4:5", "4:5"),
        ("python2-list", "6:5", "6:5"),
        ("python2-list", "6:26", "6:26"),
        ("python2-attribute", "7:1", "7:1"),
    ]
    assert all(one.reason.zh and one.todo.zh for one in found.findings)


def test_names_defined_or_guarded_by_the_file_are_no_findings() -> None:
    found = converted(
        "from __future__ import division\n"
        "from six.moves import xrange\n"
        "try:\n  import cPickle as pickle\nexcept ImportError:\n  import pickle\n"
        "def reduce(f, x): pass\n"
        "print xrange(3), reduce(f, x), a / b\n"
    )
    assert not found.findings
    assert "xrange(3)" in found.text
    assert "import cPickle as pickle" in found.text


NAMES = [
    ("import cPickle, os\n", "import pickle as cPickle, os\n"),
    ("import cPickle as pickle\n", "import pickle\n"),
    ("from  Queue import Queue  # q\n", "from  queue import Queue  # q\n"),
    ("for i in xrange(3): f(unicode(i))\n", "for i in range(3): f(str(i))\n"),
    ("isinstance(é, (int, long, basestring))\n", "isinstance(é, (int, int, str))\n"),
    ("d.iteritems(), e.f.iterkeys()\n", "d.items(), e.f.keys()\n"),
    ("not d.has_key(k)\n", "not (k in d)\n"),
    ("d.has_key(x or long(y))\n", "((x or int(y)) in d)\n"),
    ("d.has_key(e.has_key(k))\n", "((k in e) in d)\n"),
    ("import itertools\nitertools.izip(a, b)\n", "import itertools\nzip(a, b)\n"),
    ("import sys\nsys.maxint\n", "import sys\nsys.maxsize\n"),
    ("import sys as sys\nsys.maxint\n", "import sys as sys\nsys.maxsize\n"),
]


def named(text: str) -> str:
    found = with_python3_names(text, ast.parse(text), lambda name: name == "ConfigParser")
    return found.text if found else text


@pytest.mark.parametrize(("before", "after"), NAMES)
def test_names_are_rewritten_in_files_that_python_3_parses(before: str, after: str) -> None:
    assert named(before) == after
    assert named(after) == after


def test_rewritten_names_are_no_findings_and_the_others_are_located_in_both_texts() -> None:
    text = "for i in xrange(3): x = d.keys()[0]\n"
    found = with_python3_names(text, ast.parse(text), lambda _: False)
    assert found is not None
    assert [(one.rule, str(one.place), str(one.place_after)) for one in found.findings] == [
        ("python2-list", "1:25", "1:24"),
    ]


@pytest.mark.parametrize(("before", "after"), NAMES)
def test_names_are_rewritten_in_files_of_python_2(before: str, after: str) -> None:
    assert converted(before + "print 1L\n").text == after + "print(1)\n"


@pytest.mark.parametrize(
    "text",
    [
        "from six.moves import xrange\nxrange(3)\n",
        "try:\n    unicode\nexcept NameError:\n    unicode = str\nunicode(3)\n",
        "if sys.version_info[0] < 3:\n    x = unicode(x)\n",
        "if six.PY3:\n    pass\nelif isinstance(x, unicode):\n    pass\n",
        "six.iteritems(d)\n",
        "class D:\n    def iteritems(self): pass\nd.iteritems()\n",
        "def f(input): return raw_input(input)\n",
        "async def xrange(n): pass\nxrange(3)\n",
        "import ConfigParser\n",
        "itertools.izip(a, b)\n",
        "unicode(a, 'utf-8')\n",
        "a / b\n",
    ],
)
def test_ambiguous_names_are_kept(text: str) -> None:
    assert named(text) == text


LINES = [
    "print 'a'",
    "print `a`, 1L,",
    "print >>f, 'Ж'",
    "raise E, 'a'",
    "x = 1  # print 'a'",
    "'''print 1L\n  <> `a`'''",
    "if a <> 0777: exec c in d",
    "try: pass\nexcept E, e: print e",
    "def f():\n\tprint\n\treturn 1",
    "\f",
    "",
]


@given(
    lines=st.lists(st.sampled_from(LINES), min_size=1, max_size=8),
    newline=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
)
def test_positions_map_to_the_new_text_and_back(lines: list[str], newline: str, last: bool) -> None:
    text = newline.join([*lines, "print 2"]).replace("\n", newline) + (newline if last else "")
    text = text.replace("\r\r", "\r")
    found = converted(text)
    assert found.text.count("\r") == text.count("\r")
    assert found.text.endswith("\n") == text.endswith("\n")
    old = text.split("\n")
    for edit in found.edits:
        assert edit.place_after is not None
        assert found.place_before(edit.place_after) == edit.place
        assert old[edit.place.line - 1][edit.place.column - 1 :].startswith(
            edit.before.split("\n")[0]
        )
    # Comments and strings over several lines are none of the spans.
    for kept in ("# print 'a'", f"'''print 1L{newline}  <> `a`'''"):
        assert found.text.count(kept) == text.count(kept)


@given(st.text(alphabet="print `1L\n\t()'\"<>,x\\", max_size=40))
def test_conversion_never_raises_on_any_text(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = to_python3(text)
    assert found is None or isinstance(found, Converted)


@pytest.fixture(scope="module")
def fixers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The fixers of lib2to3, which nobody here wrote, as a function of a text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        from fissix.refactor import RefactoringTool
    names = ("print", "except", "raise", "exec", "ne", "repr", "numliterals")
    tool = RefactoringTool([f"fissix.fixes.fix_{name}" for name in names])
    return lambda text: str(tool.refactor_string(text, "a.py"))


def meaning(text: str) -> str:
    return ast.dump(ast.parse(text))


REAL = sorted((Path(fissix.__file__).parent / "tests" / "data").glob("*.py"))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_scripts_are_converted_equivalently_to_lib2to3(
    path: Path, fixers: Callable[[str], str]
) -> None:
    text = decode(path.read_bytes()).text
    found = None if _parses(text) else to_python3(text)
    if found is not None:
        assert meaning(found.text) == meaning(fixers(text))
    else:
        assert _parses(text) or path.name == "py2_test_grammar.py"


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@given(
    arguments=st.lists(
        st.sampled_from(["a", "'b' % c", "`d`", "(e)", "(f, g)", "1L", "h <> 2", "[0777]", "i()"]),
        max_size=3,
    ),
    head=st.sampled_from(["print ", "print>>f, ", "print >> sys.stderr,", "raise E, ", "exec "]),
    tail=st.sampled_from(["", ",", ";x", " # c", " \\\n + 1"]),
)
def test_statements_are_converted_equivalently_to_lib2to3(
    arguments: list[str], head: str, tail: str, fixers: Callable[[str], str]
) -> None:
    text = f"if 1L:\n\t{head}{', '.join(arguments)}{tail}\n"
    found = to_python3(text)
    if found is not None:
        try:
            expected = meaning(fixers(text))
        except (SyntaxError, ParseError):
            return
        assert meaning(found.text) == expected


def test_nothing_is_cached_in_the_home_directory(tmp_path: Path) -> None:
    code = (
        "from jumar.porting.python2.conversion import to_python3\n"
        "assert to_python3('print 1').edits"
    )
    paths = os.pathsep.join(sys.path)
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **home})
    assert not list(tmp_path.iterdir())


def test_division_that_fails_in_python_3_is_found_without_other_python_2_names() -> None:
    text = "def blocks(x, size):\n    k = x.shape[0] / size\n    return x[: size * k], k / 2\n"
    converted = with_python3_names(text, ast.parse(text), lambda _: False)
    assert converted is not None
    (finding,) = converted.findings
    assert (finding.rule, str(finding.place), finding.severity) == (
        "python2-division",
        "2:9",
        "blocking",
    )
    assert finding.todo.en == "Use //, which rounds down like / in Python 2."
    assert with_python3_names(text.replace(" / ", " // "), ast.parse("x"), lambda _: False) is None
