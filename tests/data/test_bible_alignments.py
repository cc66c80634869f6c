import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.readers import read
from shared.data.readers.bible import tokenize

OPTIONS = {"translations": {"en": "k", "en_web": "4"}, "valid_percent": 20, "test_percent": 20}
CHAPTERS = 30
EVALUATED = ("valid", "test")


def link(source, target):
    return {"source": [f"n{token}" for token in source], "target": list(target), "meta": {"process": "manual"}}


def token(verse, position, chapter=1):
    return f"40{chapter:03}{verse:03}{position:03}"


def chapter_records(chapter):
    """Verse 1 has a crossing and a group of 2 × 2, verse 2 nothing, 3 and 4 share a record, 5 is renumbered."""

    def at(verse, *positions):
        return [token(verse, position, chapter) for position in positions]

    return [
        link(at(1, 1), at(1, 3)),
        link(at(1, 3, 2), at(1, 1, 2)),
        link(at(3, 1), at(3, 1)),
        link(at(3, 2), at(4, 1)),
        link(at(5, 2), at(6, 1)),
    ]


@pytest.fixture
def raw(tmp_path):
    """Six verses a chapter on three Greek words each; verse 6 is English only and belongs to the Greek verse 5."""
    greek, english, records = ["id\taltId\ttext\tlemma"], ["id\tsource_verse\ttext\texclude"], []
    for chapter in range(1, CHAPTERS + 1):
        for verse in range(1, 7):
            here = 5 if verse == 6 else verse
            for i in (1, 2, 3):
                place = token(verse, i, chapter)
                if verse < 6:
                    greek.append(f'n{place}\t"-1\tλ{chapter}.{verse}.{i}\tλ')
                word = '"' if i == 2 else f"w{chapter}.{verse}.{i}"
                english.append(f"{place}\t{token(here, 0, chapter)[:8]}\t{word}\t")
        records += chapter_records(chapter)
    (tmp_path / "SBLGNT.tsv").write_text("\n".join(greek) + "\n", encoding="utf-8")
    (tmp_path / "nt_BSB.tsv").write_text("\n".join(english) + "\n", encoding="utf-8")
    (tmp_path / "SBLGNT-BSB-manual.json").write_text(json.dumps({"records": records}), encoding="utf-8")
    connection = sqlite3.connect(tmp_path / "bible.db")
    columns = "bbName TEXT, bNumber INTEGER, cNumber INTEGER, vNumber INTEGER, vText TEXT"
    connection.execute(f"CREATE TABLE bible ({columns})")
    rows = [
        (key, 40, chapter, verse, "" if (key, verse) == ("4", 2) else f"{key}'s verse {chapter}, {verse}.")
        for key in ("k", "4")
        for chapter in range(1, CHAPTERS + 1)
        for verse in range(1, 7)
    ]
    connection.executemany("INSERT INTO bible VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return tmp_path


def by_verse(segments, verse):
    return [segment for segment in segments if segment.key.endswith(f":{verse}")]


def test_gold_links_are_all_pairs_of_a_record_from_zero_sorted(raw):
    corpus = read("bible_alignments", raw, ["grc", "en"], OPTIONS)
    for split in EVALUATED:
        first = by_verse(corpus[split], 1)
        assert first
        assert {segment.links for segment in first} == {"0-2 1-0 1-1 2-0 2-1"}
        chapter = first[0].key.split(":")[1]
        assert first[0].texts == (" ".join(f"λ{chapter}.1.{i}" for i in (1, 2, 3)), f'w{chapter}.1.1 " w{chapter}.1.3')


def test_english_renumbered_verses_join_the_greek_verse_they_belong_to(raw):
    corpus = read("bible_alignments", raw, ["grc", "en"], OPTIONS)
    fifth = by_verse(corpus["test"], 5)[0]
    assert len(fifth.texts[0].split()) == 3
    assert len(fifth.texts[1].split()) == 6
    assert fifth.links == "1-3"
    assert not any(by_verse(segments, 6) for segments in corpus.values())


def test_verses_that_share_a_record_are_left_out_and_unaligned_ones_are_trained_on_only(raw):
    corpus = read("bible_alignments", raw, ["grc", "en"], OPTIONS)
    assert all(not by_verse(segments, verse) for segments in corpus.values() for verse in (3, 4))
    assert by_verse(corpus["train"], 2)
    assert not any(by_verse(corpus[split], 2) for split in EVALUATED)


def test_train_has_every_english_text_of_a_verse_and_no_alignment(raw):
    train = read("bible_alignments", raw, ["grc", "en"], OPTIONS)["train"]
    assert all(segment.links is None for segment in train)
    chapter = train[0].key.split(":")[1]
    verse = [segment.texts for segment in train if segment.key == f"40:{chapter}:1"]
    assert [english for _, english in verse] == [
        f'w{chapter}.1.1 " w{chapter}.1.3',
        f"k’s verse {chapter} , 1 .",
        f"4’s verse {chapter} , 1 .",
    ]
    assert len({greek for greek, _ in verse}) == 1
    assert len([segment for segment in train if segment.key == f"40:{chapter}:2"]) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\"don't--he said, 'O man-child!'\" (12,000)", "“ don’t — he said , ‘ O man-child ! ’ ” ( 12,000 )"),
        ("'\"Do\" you,' said the kings' men...", "‘ “ Do ” you , ’ said the kings ’ men ..."),
        ('he said,"Go,\'", now;then.', "he said , ” Go , ’ ” , now ; then ."),
        ("", ""),
    ],
)
def test_plain_verses_are_written_as_the_aligned_text_is(text, expected):
    assert tokenize(text) == expected


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="'\"-")))
def test_tokenising_loses_nothing_but_white_space_and_is_idempotent(text):
    tokens = tokenize(text)
    assert "".join(tokens.split()) == "".join(text.split())
    assert tokenize(tokens) == tokens
