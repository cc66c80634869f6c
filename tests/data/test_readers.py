import gzip
import html
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_archives import make_tar

from shared.data.opening import read_lines
from shared.data.readers import bible, read

PSALM, GENESIS, JOB, ACTS = (19, 3, 1), (1, 1, 2), (18, 42, 17), (44, 15, 17)
TITLED_BASIC = "To the chief music-maker. A Psalm. Of David. When Nathan the prophet came to him. Have pity on me."


@pytest.mark.parametrize(
    ("language", "verse", "text", "expected"),
    [
        ("fr", PSALM, "(3:1) Psaume de David. (3:2) O Éternel! -Pause.", "O Éternel! Pause."),
        ("fr", (19, 3, 2), "(3:3) Combien qui disent", "Combien qui disent"),
        ("fr", (3, 6, 2), "(5:21 Lorsque quelqu'un", "Lorsque quelqu'un"),
        ("fr", (44, 20, 1), "(19:40b) Après", "Après"),
        ("fr", (19, 24, 1), "(24:1) Psaume de David. La terre", "La terre"),
        (
            "fr",
            (19, 51, 1),
            "(51:1) Au chef. (51:2) Lorsque Nathan vint. (51:3) O Dieu! (oui)",
            "O Dieu! (oui)",
        ),
        ("fr", (19, 122, 1), "Cantique des degrés. De David. Je suis", "Je suis"),
        ("fr", (19, 13, 1), "(13:1) Au chef des chantres. Psaume de David.", ""),
        ("de", PSALM, "(Ein Psalm von David.) Jehova! wie viele (Sela.)", "Jehova! wie viele (Sela.)"),
        ("de", GENESIS, "[Und] er sprach: (denn so) -", "Und er sprach: (denn so)"),
        ("de", GENESIS, "auf ewig. * * *", "auf ewig."),
        ("de", GENESIS, "(*)", ""),
        ("es", PSALM, "Salmo de David. \u00adOH Jehová, cuánto", "Oh Jehová, cuánto"),
        ("es", PSALM, "Salmo: de David. ¿POR qué estás", "¿Por qué estás"),
        ("es", PSALM, "Salmo de David. A TI, oh Jehová", "A ti, oh Jehová"),
        ("es", PSALM, "JEHOVA es mi pastor", "Jehová es mi pastor"),
        ("es", GENESIS, "\t Y DESPUÉS movió", "Y después movió"),
        ("en_web", GENESIS, "God`s first -[fruits] [by them]", "God's first fruits by them"),
        ("en_web", JOB, "full of days. BOOK I Psalm 1", "full of days."),
        ("en_web", JOB, "forever. Psalm 31 For the Chief Musician.", "forever."),
        ("en_basic", PSALM, TITLED_BASIC, "Have pity on me."),
        ("en_basic", PSALM, "To the chief music-maker. Of David. When I was waiting.", "When I was waiting."),
        ("en_basic", (19, 119, 1), "ALEPH Happy are they", "Happy are they"),
        ("en_basic", GENESIS, "...", ""),
        ("en_basic", GENESIS, "(8:1)", ""),
        ("fr_darby", ACTS, "qui fait ces choses» [Amos 9:11-12]", "qui fait ces choses»"),
        ("fr_darby", ACTS, "1 Et le #Dieu dit : — l’Éternel ! —", "Et le Dieu dit: — l'Éternel!"),
        (
            "en",
            PSALM,
            "LORD, how are they (increased) that trouble me!",
            "LORD, how are they (increased) that trouble me!",
        ),
    ],
)
def test_a_verse_is_freed_of_what_is_not_the_verse(language, verse, text, expected):
    assert bible.clean(text, language, verse) == expected


@given(text=st.text(), language=st.sampled_from(["en", "en_web", "en_basic", "fr", "fr_darby", "de", "es"]))
def test_a_cleaned_verse_is_one_trimmed_line_with_letters_or_empty(text, language):
    cleaned = bible.clean(text, language, PSALM)
    assert cleaned == " ".join(cleaned.split())
    assert not cleaned or any(character.isalpha() for character in cleaned)


def make_bible(folder, keys=("k", "l"), verses=3):
    connection = sqlite3.connect(folder / "bible.db")
    columns = "bbName TEXT, bNumber INTEGER, cNumber INTEGER, vNumber INTEGER, vText TEXT"
    connection.execute(f"CREATE TABLE bible ({columns})")
    rows = [
        (key, 1, chapter, verse, f"{key} text {chapter} {verse}")
        for key in keys
        for chapter in range(200, 0, -1)
        for verse in range(1, verses + 1)
    ]
    connection.executemany("INSERT INTO bible VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    return connection


def test_a_chapter_is_in_one_split_and_verses_are_in_order(tmp_path):
    make_bible(tmp_path).close()
    corpus = read("bible", tmp_path, ["en", "fr"], {"translations": {"en": "k", "fr": "l"}})
    homes = {}
    for split, segments in corpus.items():
        keys = [tuple(map(int, segment.key.split(":"))) for segment in segments]
        assert keys == sorted(keys)
        for _, chapter, _ in keys:
            assert homes.setdefault(chapter, split) == split
        for segment in segments:
            _, chapter, verse = segment.key.split(":")
            assert segment.texts == (f"k text {chapter} {verse}", f"l text {chapter} {verse}")
    assert sum(len(segments) for segments in corpus.values()) == 600


def sgm(*segments):
    lines = "\n".join(f'<seg id="{i}">{html.escape(text)}</seg>' for i, text in enumerate(segments, 1))
    return f'<srcset setid="x">\n<doc docid="a">\n<hl>\n{lines}\n</hl>\n</doc>\n</srcset>\n'.encode()


def wmt(tmp_path, other):
    """Make archives of the layout of a card's downloads, with three lines in each file."""

    def make(download):
        contents = {"unwanted/europarl-v7.cs-en.cs": b"cesky\n"}
        for member, raw in download["members"].items():
            language, stem = other if f".{other}" in raw else "en", raw.split(".")[0]
            lines = [f"{language} {stem} one & two", f"{language} {stem} three", f"EN newstest2014, {stem}"]
            if stem == "commoncrawl":
                lines[1] = lines[1] if language == "en" else ""  # no translation
                lines[2] = f"«{language}» newstest2014 THREE!"  # also in test
            content = sgm(*lines) if raw.endswith(".sgm") else "".join(line + "\n" for line in lines).encode()
            contents[member] = gzip.compress(content) if member.endswith(".gz") else content
        name = download["url"].rpartition("/")[2]
        return make_tar(tmp_path / name, contents, "w" if name.endswith(".tar") else "w:gz").read_bytes()

    return make


def test_wmt14_is_read_from_archives_of_the_official_layout(tmp_path, fetched_small):
    manifest, folder = fetched_small("wmt14_fr_en", wmt(tmp_path, "fr"))
    assert manifest.dropped == {"train": 1, "valid": 0, "test": 0}
    assert next(read_lines(folder / "test.fr")) == "fr newstest2014 one & two"
    assert list(read_lines(folder / "valid.en"))[3] == "en newstest2013 one & two"
    train = list(zip(read_lines(folder / "train.en"), read_lines(folder / "train.fr"), strict=True))
    assert len(train) == 13
    assert train[6] == ("en commoncrawl one & two", "fr commoncrawl one & two")
    assert train[-3] == ("en giga-fren one & two", "fr giga-fren one & two")


def test_the_german_wmt14_has_the_filtered_test_and_a_second_one(tmp_path, fetched_small):
    _, folder = fetched_small("wmt14_de_en", wmt(tmp_path, "de"))
    assert next(read_lines(folder / "test.de")) == "de newstest2014 one & two"
    assert next(read_lines(folder / "test_2015.de")) == "de newstest2015 one & two"
    assert next(read_lines(folder / "valid.en")) == "en newstest2013 one & two"
    train = list(zip(read_lines(folder / "train.en"), read_lines(folder / "train.de"), strict=True))
    assert len(train) == 7
    assert train[3] == ("en commoncrawl one & two", "de commoncrawl one & two")
