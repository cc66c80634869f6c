"""Hand-made files in the Penn Treebank's format."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from shared.data.fetch import fetch
from shared.data.opening import read_lines
from shared.data.readers.treebank import linearise, parse
from shared.errors import ReplicationError

ASKED = """
( (S
    (NP-SBJ-1 (DT The) (NN-X board) )
    (VP (VBD was)
      (VP (VBN asked)
        (NP-2 (-NONE- *-1) )
        (S (NP-SBJ (-NONE- *) )
          (VP (TO to)
            (VP (VB give) (PRT|ADVP (RP up) ) (-LRB- -LRB-) (SBAR=3 (-NONE- 0) (S (-NONE- *T*-2) )))))))
    (. .) ))
"""
ASKED_WORDS = "The board was asked to give up -LRB- ."
ASKED_TREE = "(S (NP XX XX )NP (VP XX (VP XX (S (VP XX (VP XX (PRT XX )PRT XX )VP )VP )S )VP )VP XX )S"


def linearised(text):
    return [(" ".join(words), " ".join(symbols)) for words, symbols in map(linearise, parse(text))]


def test_traces_function_tags_and_empty_constituents_go():
    assert linearised(ASKED) == [(ASKED_WORDS, ASKED_TREE)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(S (UH Yes))", [("Yes", "(S XX )S")]),
        ("(TOP (S (UH Yes)))(ROOT(S1 (FRAG (UH No))))", [("Yes", "(S XX )S"), ("No", "(FRAG XX )FRAG")]),
        ("( (UH Yes) )", [("Yes", "XX")]),
        ("( (NP (NP (NN a)) (SBAR (-NONE- *T*))) )", [("a", "(NP (NP XX )NP )NP")]),
        ("( (S (-NONE- *)) ) ()", [("", ""), ("", "")]),
        ("", []),
    ],
)
def test_roots_are_not_constituents_and_chains_stay(text, expected):
    assert linearised(text) == expected


LABELS = st.sampled_from(["S", "NP-SBJ", "VP", "PP-LOC=2", "-NONE-"])
LEAVES = st.tuples(st.sampled_from(["NN", "VB", "-NONE-"]), st.sampled_from(["a", "b", "*T*-1"])).map(list)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.tuples(LABELS, st.lists(inner, min_size=1, max_size=3)).map(lambda t: [t[0], *t[1]]),
)


def written(tree):
    return tree if isinstance(tree, str) else f"({' '.join(map(written, tree))})"


@given(TREES)
def test_any_tree_comes_back_and_its_line_is_balanced(tree):
    assert list(parse(written(tree))) == [tree]
    words, symbols = linearise(tree)
    assert symbols.count("XX") == len(words) == written(tree).count("(NN ") + written(tree).count("(VB ")
    opened = []
    for before, symbol in zip(["", *symbols], symbols, strict=False):
        if symbol.startswith("("):
            opened.append(symbol[1:])
        elif symbol.startswith(")"):
            assert symbol[1:] == opened.pop()
            assert not before.startswith("(")  # no constituent without words
    assert not opened


@pytest.fixture
def mirror(tmp_path):
    """A mirror with one file per section, in upper case where it is section 22, as on some discs."""
    folder = tmp_path / "mirror/treebank_3/parsed/mrg/wsj"
    for section in range(25):
        name = f"wsj_{section:02}00.mrg"
        path = folder / f"{section:02}" / (name.upper() if section == 22 else name)
        path.parent.mkdir(parents=True)
        path.write_text(f"( (S (NP (NN section)) (VP (VBZ is) (CD s{section})) (. .)) )\n{ASKED}")
    return tmp_path / "mirror"


@pytest.fixture
def root(pytestconfig, tmp_path):
    (tmp_path / "data").mkdir()
    card = (pytestconfig.rootpath / "data/wsj.yaml").read_text(encoding="utf-8")
    (tmp_path / "data/wsj.yaml").write_text(card, encoding="utf-8")
    return tmp_path / "data"


QUIET = Console(file=io.StringIO())


def test_the_shipped_card_reads_a_treebank_in_its_official_sections(root, mirror):
    manifest = fetch("wsj", root=root, mirror=mirror, console=QUIET)
    assert manifest.dropped == {"train": 20, "valid": 1, "test": 0}  # the sentence that all sections share
    assert list(read_lines(root / "wsj/train.words")) == [f"section is s{i} ." for i in range(2, 22)]
    assert set(read_lines(root / "wsj/train.tree")) == {"(S (NP XX )NP (VP XX XX )VP XX )S"}
    assert list(read_lines(root / "wsj/valid.key")) == ["22/WSJ_2200.MRG:0"]
    assert list(read_lines(root / "wsj/test.words")) == ["section is s23 .", ASKED_WORDS]
    assert list(read_lines(root / "wsj/test.key")) == ["23/wsj_2300.mrg:0", "23/wsj_2300.mrg:1"]


def test_another_treebank_is_not_taken_for_the_first_one(root, mirror):
    fetch("wsj", root=root, mirror=mirror, console=QUIET)
    (root / "wsj/test.words").unlink()
    (mirror / "treebank_3/parsed/mrg/wsj/00/wsj_0000.mrg").write_text("( (NP (NN other)) )")
    with pytest.raises(ReplicationError, match=r"the sha256 of wsj/ is .* delete the old data"):
        fetch("wsj", root=root, mirror=mirror, console=QUIET)


def test_without_the_licensed_files_it_is_said_where_they_belong(root, tmp_path, monkeypatch):
    monkeypatch.delenv("REPLICATIONS_MIRROR", raising=False)
    with pytest.raises(ReplicationError, match=r"parsed/mrg: no mirror is set \(\$REPL") as error:
        fetch("wsj", root=root, console=QUIET)
    assert str(error.value).endswith(
        "\nIt cannot be fetched from elsewhere (licence: Linguistic Data Consortium, LDC99T42, for holders of its "
        "licence only): set REPLICATIONS_MIRROR to a folder that holds the files."
    )
    with pytest.raises(ReplicationError, match="treebank_3/parsed/mrg/wsj does not exist"):
        fetch("wsj", root=root, mirror=tmp_path, console=QUIET)
