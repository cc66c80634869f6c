"""Every reader on odd but legal files, whose rows are known, and on broken ones, which are refused with their line."""

import json
import re
import unicodedata
from collections import Counter

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from test_fuzz_opening import spelled
from test_readers import TREES, linearised, written

from shared.data.generated.scenes import SIDE
from shared.data.photos import PhotoSplit
from shared.data.readers import read
from shared.data.splits import Segment, hashed_split, tidy, write_corpus
from tests.data import odd
from tests.inputs.raw_data import CASES
from tests.refused import assert_refused, sentence_of

FLAT = odd.LINE.map(lambda text: text.replace("\r", ""))
FIELD = FLAT.map(lambda text: text.replace("\t", " "))


def read_all(*arguments):
    """Split to its segments, without the reasons why others are left out."""
    corpus = read(*arguments)
    return {split: [each for each in segments if isinstance(each, Segment)] for split, segments in corpus.items()}


def whole(draw, lines):
    """The bytes of lines, of which an empty last one has an end."""
    content, found = draw(odd.texts(lines))
    return content if found == lines else "".join(f"{line}\n" for line in lines).encode()


def sgml(lines, draw):
    """Segments of SGML, with what stands between them in such files."""
    escaped = [line.replace("&", "&amp;").replace("<", "&lt;") for line in lines]
    begin = draw(st.sampled_from(["<seg>", '<seg id="1">', "<SEG ID=1>", "<seg\tid='é'>"]))
    if draw(st.booleans()):
        escaped = ["<![CDATA[{}]]>".format(line.replace("]]>", "]]]]><![CDATA[>")) for line in lines]
    between = ["", "<p>", "<title>no</title>", "<segment>no</segment>", "a > b", "<!-- <seg>no</seg>\n-->"]
    between = draw(st.sampled_from(between))
    space = draw(st.sampled_from(["", " ", "\t"]))
    return "<doc>\n" + "".join(f"{begin}{space}{line}{space}</seg>{between}\n" for line in escaped) + "</doc>\n"


@odd.EXAMPLES
@given(st.lists(st.tuples(FLAT, FLAT), min_size=1, max_size=5), st.data())
def test_parallel_texts_stay_beside_each_other(pairs, data):
    options, skip = {"parts": {"train": [{"a": "a", "b": "b"}]}}, data.draw(st.booleans())
    with odd.folder() as raw:
        for language, lines in zip("ab", zip(*pairs, strict=True), strict=True):
            form = data.draw(st.sampled_from(["txt", "txt.xz", "sgm", "XML", "sgm.xz", "tags"]))
            options["parts"]["train"][0][language] = f"{language}.{form}"
            path = raw / f"{language}.{form}"
            if form.lower() in ("sgm", "xml", "sgm.xz"):
                path.write_bytes(odd.packed(sgml(lines, data.draw).encode(), path))
                continue
            if form == "tags":
                assume(not any(re.match(r"\s*</?\w", line) for line in lines))
                notes = data.draw(st.sampled_from([["<url>a</url>"], [" <talkid>1</talkid>", "<keywords>é"], []]))
                lines = [*notes, *lines, *notes]
            path.write_bytes(odd.packed(whole(data.draw, [*lines]), path))
        found = read_all("parallel", raw, ["b", "a"], options | {"skip_incomplete": skip})["train"]
        pairs = [(one.strip(), other.strip()) for one, other in pairs]
        kept = [pair for pair in pairs if all(pair) or not skip]
        assert [segment.texts for segment in found] == [(other, one) for one, other in kept]
        found = read_all("parallel", raw, ["a", "b"], {"valid_every": 2, "parts": options["parts"]})
        assert [segment.texts for segment in found["valid"]] == pairs[1::2]
        assert [segment.texts for segment in found["train"]] == pairs[::2]
        (raw / "more").write_bytes(whole(data.draw, [*(one for one, _ in pairs), "more"]))
        options["parts"]["train"][0]["a"] = "more"
        assert "do not have equally many segments" in sentence_of(read_all, "parallel", raw, ["a", "b"], options)


LABEL = st.sampled_from(["0", "1", "pos", "very good", "é", "e\u0301", "NaN", "²", "<unk>", "1.0"])
RECORDS = st.lists(st.tuples(LABEL, FIELD), min_size=1, max_size=5)
BROKEN = [
    '{"text": "a"}', '{"label": "0"}', '{"text": null, "label": "0"}', '{"text": 3, "label": "0"}', "[]", '"a"', "null",
    "", '{"text": "a", "label": ["0"]}', '{"text": "a", "label": {}}', '{"text": ["a"], "label": "0"}', "{",
    '{"text": "a", "label": NaN}', '{"text": "a", "label": "2"}', '{"text": "a", "label": "0", "label": "1"}',
]  # fmt: skip


@odd.EXAMPLES
@given(RECORDS, st.sampled_from(["jsonl", "jsonl.xz", "tab", "txt", "folder"]), st.data())
def test_labelled_texts_keep_their_class(rows, form, data):
    draw = data.draw
    with odd.folder() as raw:
        path = raw / (form if form == "folder" else f"a.{form}")
        if form == "folder":
            rows = [(f"n{label}", text) for label, text in rows]
            for number, (label, text) in enumerate(rows):
                (path / label).mkdir(parents=True, exist_ok=True)
                name = draw(st.sampled_from(["{}.txt", "{}_7.txt", "{}.TXT", "{} ².txt"])).format(number)
                (path / label / name).write_bytes(("\ufeff" * draw(st.booleans()) + text).encode())
            for name in draw(st.lists(odd.HIDDEN, max_size=2, unique=True)):
                (path / name).mkdir()
                (path / name / "1.txt").write_text("hidden")
                (path / rows[0][0] / name).touch()
            rows = sorted(rows, key=lambda row: row[0])
        elif form == "tab":
            flags = draw(st.sampled_from(["class\t", "\tclass", "", "\t"]))
            path.write_bytes(whole(draw, ["label\ttext", "d\tstring", flags, *("\t".join(row) for row in rows)]))
        elif form == "txt":
            rows = [(label.replace(" ", "_"), text) for label, text in rows]
            path.write_bytes(whole(draw, [" ".join(row) for row in rows]))
        else:
            lines = [json.dumps({"text": t, "label": c, "text2": 1}, ensure_ascii=draw(st.booleans())) for c, t in rows]
            path.write_bytes(odd.packed(whole(draw, lines), path))
        options = {"parts": {"train": ["none", path.name]}}
        found = read_all("labelled", raw, ["text", "label"], options)["train"]
        expected = [(re.sub(r"(?i)<br\s*/?>", " ", text), label) for label, text in rows]
        assert [segment.texts for segment in found] == expected
        drawn = read_all("labelled", raw, ["label", "text"], options | {"valid_percent": 50})
        both = [segment.texts for split in ("train", "valid") for segment in drawn[split]]
        assert sorted(both) == sorted((label, text) for text, label in expected)
        homes = {text: split for split in drawn for _, text in (segment.texts for segment in drawn[split])}
        assert len(homes) == len({text for text, _ in expected})


@odd.EXAMPLES
@given(RECORDS, st.data())
def test_a_broken_record_is_said_with_its_line(rows, data):
    labels = {label: label for label, _ in rows} | {"0": "0"}
    options = {"parts": {"train": ["a"]}, "labels": labels}
    with odd.folder() as raw:
        lines = [json.dumps({"text": text, "label": label}) for label, text in rows]
        lines.append(data.draw(st.sampled_from(BROKEN)))
        options["parts"]["train"] = ["a.json"]
        (raw / "a.json").write_bytes(whole(data.draw, [*lines, "{}"]))
        assert_refused(rf"^a\.json, line {len(lines)}\b", read_all, "labelled", raw, ["text", "label"], options)
        lines = [" ".join((label.replace(" ", "_"), text)) for label, text in rows]
        lines.append(data.draw(st.sampled_from(["", " text", "other text", "0\ttext", "a\u00a0b text", "other"])))
        options["parts"]["train"] = ["a"]
        options["labels"] = data.draw(st.sampled_from([None, {label.replace(" ", "_"): label for label in labels}]))
        assume(options["labels"] or not lines[-1].startswith("other"))
        (raw / "a").write_bytes(whole(data.draw, [*lines, "0 a"]))
        assert_refused(rf"^a, line {len(lines)}\b", read_all, "labelled", raw, ["text", "label"], options)


@odd.EXAMPLES
@given(
    st.lists(odd.texts(), min_size=1, max_size=3), st.lists(odd.NAME, min_size=3, max_size=3, unique=True), odd.HIDDEN
)
def test_running_text_is_its_lines_and_its_bytes(files, names, hidden):
    with odd.folder() as raw:
        (raw / "splits").mkdir()
        expected = []
        for (content, lines), name in sorted(zip(files, names, strict=False), key=lambda pair: pair[1]):
            (raw / "splits" / name).write_bytes(content)
            expected += [unicodedata.normalize("NFC", line) for line in lines]
        (raw / "splits" / hidden).write_bytes(b"\xff")
        first = next(path for path in sorted((raw / "splits").iterdir()) if path.name != hidden)
        size, name = first.stat().st_size, f"splits/{first.name}"
        test = [{"file": name, "bytes": size}] if size else []
        parts = {"train": [{"file": "splits"}], "valid": [{"file": name, "start": size // 2}], "test": test}
        options = {"parts": parts}
        found = {name: path.read_bytes() for name, path in read("running_text", raw, [], options).files.items()}
        text = found["train.text"].decode()
        assert text.removesuffix("\n").split("\n") == expected or (text, expected) in [("", []), ("", [""])]
        assert found["test.text"] == first.read_bytes()
        assert found["valid.text"] == first.read_bytes()[size // 2 :]


RESIDUES = st.text("ACDEFGHIKLMNPQRSTVWYBOUXZ", min_size=1, max_size=30)
TITLE = FLAT.map(lambda text: "N" + " ".join(text.replace("OS=", "").split()))
ENTRIES = st.lists(st.tuples(RESIDUES, TITLE, TITLE, st.sampled_from(["sp", "tr"])), min_size=2, max_size=5)
FASTA = {"file": "a", "jaccard": 1.0, "containment": 1.0, "valid_percent": 20, "test_percent": 20,
         "held_out": {"families": 1, "smallest": 1, "largest": 9}}  # fmt: skip


def fasta(entries, draw):
    """The lines of entries, wrapped anywhere, with blank lines and in any case."""
    lines = []
    for number, (letters, name, organism, database) in enumerate(entries):
        more = draw(st.sampled_from(["", " OX=9606 GN=a PE=1 SV=2", " PE=4"]))
        lines.append(f">{database}|P{number}|P{number}_X {name} OS={organism}{more}")
        letters = letters.lower() if draw(st.integers(0, 3)) == 0 else letters
        width = draw(st.integers(1, 40))
        rows = [letters[begin : begin + width] for begin in range(0, len(letters), width)]
        lines += [row + draw(st.sampled_from(["", " ", "\t"])) for row in rows]
        lines += [""] * draw(st.integers(0, 2))
    return lines


@odd.EXAMPLES
@given(ENTRIES, st.data())
def test_proteins_are_their_letters_however_they_are_wrapped(entries, data):
    with odd.folder() as raw:
        (raw / "a").write_bytes(whole(data.draw, fasta(entries, data.draw)))
        found = read_all("fasta", raw, ["sequence", "name", "organism", "database"], FASTA)
        once = {entry[0]: entry for entry in reversed(entries)}
        full = {"sp": "Swiss-Prot", "tr": "TrEMBL"}
        expected = Counter((*entry[:3], full[entry[3]]) for entry in once.values())
        assert Counter(segment.texts for segments in found.values() for segment in segments) == expected
        homes = {}
        for split, segments in found.items():
            for segment in segments:
                assert homes.setdefault(segment.key.partition(":")[0], split) == split


NO_RESIDUES = ["MA-C", "MAC*", "M A", "MJ", "MÄ", "ﬁ", "ſA", "1 MAC", ">sp|x", ">", ";MAC", "M\u200b", "\u212aM"]


@odd.EXAMPLES
@given(ENTRIES, st.sampled_from(NO_RESIDUES), st.data())
def test_what_stands_for_no_amino_acid_is_said_with_its_line(entries, wrong, data):
    lines = fasta(entries, data.draw)
    place = data.draw(st.sampled_from([0] + [place for place, line in enumerate(lines, 1) if line and line[0] != ">"]))
    with odd.folder() as raw:
        (raw / "a").write_bytes(whole(data.draw, [*lines[:place], wrong, *lines[place:]]))
        assert_refused(rf"^a\b.*\bline {place + 1} ", read_all, "fasta", raw, ["sequence"], FASTA)


ODD_BRACKETS = [
    "(S (NN a)", "(S (NN a)))", "a (NN b)", "(S (NN a b))", "(S a (NN b))", "(S (NN a) b)", "(NN a (NN b))",
    "(S (-LRB- () (NN a) (-RRB- )))", "(S (NN a) ())",
]  # fmt: skip


@odd.EXAMPLES
@given(st.lists(TREES, min_size=1, max_size=4), st.data())
def test_trees_of_a_treebank_are_those_of_its_files(trees, data):
    texts_of = [f"( {written(tree)} )" if data.draw(st.booleans()) else written(tree) for tree in trees]
    with odd.folder() as raw:
        (raw / "wsj/00").mkdir(parents=True)
        for name in ("b.MRG", "a.mrg"):
            spread = [data.draw(st.sampled_from([text, text.replace(" ", "\n  "), f"\n\n{text}"])) for text in texts_of]
            (raw / "wsj/00" / name).write_bytes(whole(data.draw, "\n".join(spread).split("\n")))
        (raw / "wsj/00" / data.draw(odd.HIDDEN)).touch()
        (raw / "wsj/00/readme.txt").write_text("(")
        options = {"folder": "wsj", "sections": {"train": ["00"]}}
        found = read_all("treebank", raw, ["words", "tree"], options)["train"]
        assert [segment.texts for segment in found] == [linearised(text)[0] for text in texts_of] * 2
        keys = [f"00/{name}:{i}" for name in ("a.mrg", "b.MRG") for i in range(len(trees))]
        assert [segment.key for segment in found] == keys
        wrong = data.draw(st.sampled_from(ODD_BRACKETS))
        (raw / "wsj/00/a.mrg").write_text("\n".join([*(text.replace("\n", " ") for text in texts_of), wrong]) + "\n")
        said = rf"^wsj/00/a\.mrg .*\bline {len(trees) + 1}\b"
        assert_refused(said, read_all, "treebank", raw, ["words", "tree"], options)


GREYS = [odd.encoded(np.full((SIDE, SIDE), value, np.uint8)) for value in range(6)]
CAPTION = FLAT.map(lambda text: f"Q {text}")


@odd.EXAMPLES
@given(
    st.dictionaries(odd.NAME, st.lists(CAPTION, min_size=1, max_size=3), min_size=3, max_size=5),
    st.sampled_from([".tar", ".zip", ".TAR", ".ZIP"]),
    st.booleans(),
    st.data(),
)
def test_photos_have_their_own_pixels_and_captions(photos, suffix, table, data):
    draw, said = data.draw, list(photos.values())
    paths = [draw(st.sampled_from(["", "x/", "é/a b/"])) + name for name in photos]
    asked = [path if draw(st.booleans()) else name for path, name in zip(paths, photos, strict=True)]
    homes = [odd.SPLITS[number % 3] for number in range(len(photos))]
    with odd.folder() as raw, odd.folder() as into:
        hidden = [f"{left}/{name}" for left in draw(st.lists(odd.HIDDEN, max_size=2, unique=True)) for name in photos]
        odd.archive(raw / f"a{suffix}", [*zip(paths, GREYS, strict=False), *((path, b"hidden") for path in hidden)])
        if table:
            rows = [(name, text) for name, captions in zip(asked, said, strict=True) for text in captions]
            lines = [",".join('"{}"'.format(field.replace('"', '""')) for field in row) for row in rows]
            (raw / "c.csv").write_bytes(whole(draw, ["image,caption", *lines]))
            for split in odd.SPLITS:
                lines = [name for name, home in zip(asked, homes, strict=True) if home == split]
                (raw / split).write_bytes(whole(draw, lines + [""] * draw(st.booleans())))
        else:
            published = (home.replace("valid", "val") for home in homes)
            (raw / "c.json").write_bytes(
                whole(draw, odd.described(zip(asked, published, said, strict=True)).split("\n"))
            )
        options = {"captions": ["c.csv", "c.json"], "splits": {split: split for split in odd.SPLITS}, "at_most": 2}
        corpus = read("photos", raw, ("captions", "photo"), options)
        write_corpus(corpus, ("captions", "photo"), into, compared=["photo"])
        for split in odd.SPLITS:
            found = PhotoSplit.load(into, split)
            own = [number for number, home in enumerate(homes) if home == split]
            assert found.columns["photo"] == [asked[number] for number in own]
            assert found.images(range(len(own)))[:, 0, 0, 0].tolist() == own
            kept = [[re.sub("[\b\x0e\x0f\x1a\x1b]", " ", text.lower()) for text in said[number][:2]] for number in own]
            expected = [[tidy(text) for text in captions] for captions in kept]
            assert [[tidy(caption.text) for caption in captions] for captions in found.captions] == expected


PIXELS = {"format": "idx", "train": ["a", "b"], "test": ["t"], "valid": 1}


@odd.EXAMPLES
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=6),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.sampled_from(["idx", "cifar"]),
    st.data(),
)
def test_no_picture_is_in_two_splits(train, test, form, data):
    cut, valid = data.draw(st.integers(1, len(train) - 1)), data.draw(st.integers(1, len(train) - 1))
    shape = (32, 32, 3) if form == "cifar" else data.draw(st.sampled_from([(1, 1, 1), (2, 3, 1), (1, 5, 1)]))

    def content(numbers):
        images = np.empty((len(numbers), *shape), np.uint8)
        images[:] = np.array(numbers)[:, None, None, None]
        return (odd.idx if form == "idx" else odd.cifar)(images)

    with odd.folder() as raw:
        for name, numbers in {"a": train[:cut], "b": train[cut:], "t": test}.items():
            (raw / name).write_bytes(content(numbers))
        expected = {"test": test, "valid": [n for n in train[-valid:] if n not in test]}
        expected["train"] = [n for n in train[:-valid] if n not in test and n not in train[-valid:]]
        options = PIXELS | {"format": form, "valid": valid}
        if not all(expected.values()):
            assert "came out empty" in sentence_of(read, "pixels", raw, [], options)
            return
        for name, path in read("pixels", raw, [], options).files.items():
            images = np.load(path)
            assert images.shape[1:] == shape
            assert images[:, 0, 0, 0].tolist() == expected[name.partition(".")[0]]
            assert (images == images[:, :1, :1, :1]).all()
        broken = (raw / "t").read_bytes()
        (raw / "t").write_bytes(data.draw(st.sampled_from([broken[:-1], broken + b"\0", broken[1:], b""])))
        assert sentence_of(read, "pixels", raw, [], options).startswith("t ")


NUMBERS = st.tuples(st.integers(1, 66), st.integers(1, 150), st.integers(1, 176))
VERSE = FLAT.map(lambda text: "w " + re.sub(r"[-\[\]#*()`’—\u00ad]", "", text))


@odd.EXAMPLES
@given(st.dictionaries(NUMBERS, st.tuples(VERSE, VERSE), min_size=1, max_size=5), st.booleans())
def test_verses_are_in_their_order_and_beside_their_translations(verses, lacking):
    with odd.folder() as raw:
        rows = [(key, *verse, pair[i]) for verse, pair in verses.items() for i, key in enumerate("kl")]
        odd.bible(raw / "bible.db", rows[lacking:])
        arguments = "bible", raw, ["en", "xx"], {"translations": {"en": "k", "xx": "l"}}
        if lacking:
            assert "do not have the same verses" in sentence_of(read_all, *arguments)
            return
        corpus = read_all(*arguments)
        found = {segment.key: segment.texts for segments in corpus.values() for segment in segments}
        assert all(hashed_split(each.key.rpartition(":")[0]) == split for split in corpus for each in corpus[split])
        expected = {":".join(map(str, verse)): tuple(map(tidy, pair)) for verse, pair in verses.items()}
        assert {key: tuple(map(tidy, pair)) for key, pair in found.items()} == expected


PLACE = st.tuples(st.integers(40, 66), st.integers(1, 9), st.integers(1, 9))
TOKENS = st.lists(odd.WORD, min_size=1, max_size=3)


@odd.EXAMPLES
@given(st.dictionaries(PLACE, st.tuples(TOKENS, TOKENS), min_size=1, max_size=4), st.booleans(), st.data())
def test_gold_links_are_of_the_words_they_stand_at(verses, torn, data):
    greek, english, records, links, first = ["id\ttext"], ["id\tsource_verse\ttext"], [], {}, []
    for (book, chapter, verse), sides in verses.items():
        code, own = f"{book:02}{chapter:03}{verse:03}", links.setdefault((book, chapter, verse), set())
        # The numbers of English verses follow another tradition.
        begins = f"n{code}", f"{book}{chapter:03}{verse + 100}"
        tokens = [[begin + f"{i:03}" for i in range(len(side))] for begin, side in zip(begins, sides, strict=True)]
        greek += map("\t".join, zip(tokens[0], sides[0], strict=True))
        english += (f"{token}\t{code}\t{word}" for token, word in zip(tokens[1], sides[1], strict=True))
        first.append(tokens)
        for _ in range(data.draw(st.integers(0, 2))):
            ends = [data.draw(st.sets(st.integers(0, len(side) - 1), min_size=1)) for side in sides]
            own |= {(s, t) for s in ends[0] for t in ends[1]}
            source, target = ([side[place] for place in end] for side, end in zip(tokens, ends, strict=True))
            records.append({"source": source, "target": target})
    gone = [*verses][:2] if torn and len(verses) > 1 else []  # a record connects these verses
    records += [{"source": first[0][0][:1], "target": first[1][1][:1]}] if gone else []
    with odd.folder() as raw:
        odd.bible(raw / "bible.db", [("k", *verse, "More, or less") for verse in verses])
        for name, lines in {"SBLGNT.tsv": greek, "nt_BSB.tsv": english}.items():
            (raw / name).write_bytes(whole(data.draw, lines))
        (raw / "SBLGNT-BSB-manual.json").write_text(json.dumps({"records": records}))
        options = {"translations": {"en": "k"}, "valid_percent": 30, "test_percent": 30}
        arguments = "bible_alignments", raw, ["grc", "en"], options
        expected = {"train": [], "valid": [], "test": []}
        for place, (source, target) in verses.items():
            split = hashed_split(f"{place[0]}:{place[1]}", valid_percent=30, test_percent=30)
            gold, key = " ".join(f"{s}-{t}" for s, t in sorted(links[place])), ":".join(map(str, place))
            if place not in gone and split == "train":
                said = (" ".join(target), "More , or less")
                expected[split] += [Segment((" ".join(source), english), key) for english in said]
            elif place not in gone and gold:
                expected[split].append(Segment((" ".join(source), " ".join(target)), key, gold))
        assert read_all(*arguments) == expected
        lines = [("n1\ta b", "not one word"), ("n1\t", "not one word"), (greek[1], "stands above"), ("n1", "has 1")]
        wrong, said = data.draw(st.sampled_from(lines))
        (raw / "SBLGNT.tsv").write_text("\n".join([*greek, wrong]), encoding="utf-8", newline="")
        assert re.match(rf"SBLGNT\.tsv.* line {len(greek) + 1} .*{said}", sentence_of(read_all, *arguments))


SCENES = next(case for case in CASES if case.reader == "scenes")
SVG_BEGINS = ["\ufeff", '<?xml version="1.0" encoding="UTF-8"?>\r\n', "<!-- <svg -->", "\n\n"]
NO_DRAWING = [
    "", "<svg", "<svg/>", '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 72"/>', "\udcff", "png",
    '<svg xmlns:x="http://www.w3.org/1999/xlink"><image x:href="/etc/passwd"/></svg>', "<!DOCTYPE svg><svg/>",
    "<g>" * 60 + "</g>" * 60,
]  # fmt: skip


@odd.EXAMPLES
@given(st.sampled_from(SVG_BEGINS), st.sampled_from(["names.json", "groups.json", "svg/1F400.svg"]), st.data())
def test_scenes_are_those_of_their_files_however_these_are_written(begin, broken, data):
    arguments = "scenes", SCENES.languages, SCENES.options
    with odd.folder() as raw:
        SCENES.write(raw)
        expected = read_all("scenes", raw, *arguments[1:])
        names, groups = (json.loads((raw / f"{name}.json").read_text()) for name in ("names", "groups"))
        data.draw(st.randoms(use_true_random=False)).shuffle(groups)
        code = int(groups[0]["unified"], 16)
        groups[0]["unified"] += "-FE0F"
        names |= {f"{chr(code)}\ufe0f": names.pop(chr(code)), "é": {"fr": ":é:"}}
        groups.append({"unified": "1F468-200D-1F469", "subcategory": "mammal", "sort_order": 0, "more": None})
        for name, value in (("names", names), ("groups", groups)):
            (raw / f"{name}.json").write_bytes(whole(data.draw, spelled(value, data.draw).split("\n")))
        for path in (raw / "svg").iterdir():
            path.write_text(begin + path.read_text() + "\n\n", "utf-8", newline="")
        assert read_all("scenes", raw, *arguments[1:]) == expected
        contents = NO_DRAWING if "svg" in broken else ["{", "[3]", '{"a": 1}', "", "[{}]", "NaN"]
        (raw / broken).write_text(data.draw(st.sampled_from(contents)), "utf-8", errors="surrogateescape")
        assert re.match(rf"{broken}|1F400|names\.json or", sentence_of(read_all, "scenes", raw, *arguments[1:]))


@odd.EXAMPLES
@given(st.integers(1, 3), st.integers(0, 2), st.integers(2, 256), st.data())
def test_pixel_texts_have_a_word_for_each_square(pool, margin, levels, data):
    height, width = (2 * margin + pool * data.draw(st.integers(1, 3)) for _ in "hw")
    pixels = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 256, (4, height, width), dtype=np.uint8)
    classes = data.draw(st.lists(st.integers(0, 255), min_size=4, max_size=4))
    options = {"train": ["a", "b"], "test": ["a", "b"], "valid": 1, "margin": margin, "pool": pool, "levels": levels}
    with odd.folder() as raw:
        (raw / "a").write_bytes(odd.idx(pixels))
        (raw / "b").write_bytes(b"\0\0\x08\x01\0\0\0\x04" + bytes(classes))
        inside = pixels[:, margin : height - margin, margin : width - margin].astype(float)
        squares = inside.reshape(4, inside.shape[1] // pool, pool, inside.shape[2] // pool, pool).mean(axis=(2, 4))
        words = np.floor(np.floor(squares + 0.5) * levels / 256).astype(int).reshape(4, -1).tolist()
        rows = [(" ".join(map(str, row)), str(number)) for row, number in zip(words, classes, strict=True)]
        found = read_all("pixel_texts", raw, ["text", "label"], options)
        said = {split: [each.texts for each in found[split]] for split in found}
        assert said == {"train": rows[:3], "valid": rows[3:], "test": rows}
        name = data.draw(st.sampled_from("ab"))
        content = (raw / name).read_bytes()
        (raw / name).write_bytes(data.draw(st.sampled_from([content[:-1], content + b"\0", content[1:], b""])))
        assert sentence_of(read_all, "pixel_texts", raw, ["text", "label"], options).startswith(f"{name} ")
