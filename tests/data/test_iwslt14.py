"""The shipped card of IWSLT 2014 on a small archive of the official layout."""

from test_archives import make_tar

from shared.data.opening import read_lines

SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
TALKS = 10
SHARED = "3 sentence 0 < 5 & more"  # by train and test


def talk(language, number):
    keywords = "<keywords>talks, TEDTalks</keywords>\n" if language == "en" or number % 2 else ""
    return (
        f"<url>http://www.ted.com/talks/{number}</url>\n{keywords}"
        f"<speaker>Someone {number}</speaker>\n<talkid>{number}</talkid>\n"
        f"<title>{language}: Title {number}</title>\n<description>{language}: About {number}</description>\n"
        + "".join(f" {language} {number} sentence {i} < 5 & more\n" for i in range(4))
        + "\n"  # neither side has a text
    )


def xml(language, name):
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<doc docid="1" genre="lectures">\n'
        f'<title>Not a segment</title>\n<seg id="1"> {language} {name} one &amp; two </seg>\n'
        f'<seg id="2"> {language} {SHARED} </seg>\n</doc>\n</mteval>\n'.replace("& ", "&amp; ")
    )


def test_train_and_valid_are_the_talks_and_test_the_five_sets(tmp_path, fetched_small):
    contents = {}
    for language in ("de", "en"):
        talks = "".join(talk(language, number) for number in range(TALKS))
        contents[f"de-en/train.tags.de-en.{language}"] = talks.encode()
        for name in SETS:
            contents[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = xml(language, name).encode()
    archive = make_tar(tmp_path / "de-en.tgz", contents, "w:gz").read_bytes()
    manifest, folder = fetched_small("iwslt14_de_en", lambda download: archive)
    expected = []
    for number in range(TALKS):
        sentences = [f"de {number} sentence {i} < 5 & more" for i in range(4)]
        expected += [f"de: Title {number}", f"de: About {number}", *sentences]
    assert list(read_lines(folder / "valid.de")) == expected[22::23]
    kept = [text for i, text in enumerate(expected, start=1) if i % 23 and text != f"de {SHARED}"]
    assert list(read_lines(folder / "train.de")) == kept
    assert list(read_lines(folder / "train.en")) == [text.replace("de", "en", 1) for text in kept]
    assert manifest.dropped == {"test": 0, "train": 1, "valid": 0}
    first = list(read_lines(folder / "test.en"))[::2]
    assert first == [f"en {name} one & two" for name in SETS]
