"""FASTA files of proteins from UniProt, split by family; one test split may hold relatives of training proteins."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from shared.config import Strict
from shared.data.homology import AMINO_ACIDS, ANOMALOUS, families
from shared.data.opening import text_lines
from shared.data.splits import Corpus, Segment, hashed_split
from shared.errors import ReplicationError

_HEADER = re.compile(r">(sp|tr)\|([A-Z0-9]+)\|\S+ (.+?) OS=(.+?)(?: [A-Z]{2}=|$)")
_HEADERS = {"uniprot": _HEADER, "any": re.compile(r">()(\S+) ?(.*)()")}
_DATABASES = {"sp": "Swiss-Prot", "tr": "TrEMBL", "": ""}
_OTHER = re.compile(f"[^{AMINO_ACIDS}{ANOMALOUS}]")
_BASES = "ACGTUN"  # of DNA and RNA; the letters that stand for one of several are as rare in these as N
_FRAGMENT = re.compile(r"\s*\(fragments?\)")
_GUESSED = re.compile(r"^(?:(?:putative|probable|possible|predicted) )+")
_NAMELESS = re.compile(r"^(?:protein)?$|uncharacterized|hypothetical|unnamed")


class HeldOut(Strict):
    """Families for the split ``test_families``, as Choromanski et al. (2021) hold out 20 families of Pfam.

    Attributes:
        families: number of families, chosen by the hash of their first accession number.
        smallest: least number of members of such a family.
        largest: largest number of members of such a family.
    """

    families: int = Field(ge=1)
    smallest: int = Field(ge=1)
    largest: int = Field(ge=1)


class FastaOptions(Strict):
    """Options of the reader ``fasta``.

    Attributes:
        file: name of the raw file.
        headers: of UniProt, or any: an identifier and, after a space, a name.
        shortest: least length of a sequence in amino acids.
        k: length of the k-mers that relatives have in common, see :mod:`shared.data.homology`.
        jaccard: least Jaccard index of relatives.
        containment: least containment of relatives.
        valid_percent: percentage of the families in valid.
        test_percent: percentage of the families in test.
        held_out: the families that are in none of train, valid and test, if there are any.
        relatives_percent: percentage of the proteins with relatives in train that are in test_relatives.
    """

    file: str
    headers: Literal["uniprot", "any"] = "uniprot"
    shortest: int = Field(default=1, ge=1)
    k: int = Field(default=5, ge=2, le=8)
    jaccard: float = Field(gt=0, le=1)
    containment: float = Field(gt=0, le=1)
    valid_percent: int = Field(ge=0, le=50)
    test_percent: int = Field(ge=0, le=50)
    held_out: HeldOut | None = None
    relatives_percent: int = Field(default=0, ge=0, le=50)


class Protein(NamedTuple):
    """An entry of UniProt; ``database`` is Swiss-Prot (reviewed entries) or TrEMBL (unreviewed)."""

    accession: str
    sequence: str
    name: str
    organism: str
    database: str


def read_fasta(raw: Path, languages: Sequence[str], options: FastaOptions) -> Corpus:
    """Proteins in a FASTA file of UniProt, split by family; one test split may hold relatives of training proteins.

    Proteins are keyed ``family:accession``, each sequence once. The name of a family is the accession number of its
    first protein, and the place of that one where several families begin with one number. Proteins of the same name are
    in one family, unless the name is uninformative. The names of fragments end in "(Fragment)". From the families of
    train, of which the first protein always stays, ``relatives_percent`` takes some into ``test_relatives``.

    Raises:
        ReplicationError: the languages are wrong, the file is not FASTA of UniProt or has the letters of DNA alone, or
            there are too few families to hold out.
    """
    if not languages or languages[0] != "sequence" or not set(languages) < set(Protein._fields):
        raise ReplicationError(
            "the reader 'fasta' has the language sequence and, after it, any of name, organism and database."
        )
    found: dict[str, Protein] = {}
    left_out = []
    for protein in proteins(raw / options.file, _HEADERS[options.headers]):
        if len(protein.sequence) < options.shortest:
            left_out.append(f"a sequence has fewer than {options.shortest} letters")
        elif found.setdefault(protein.sequence, protein) is not protein:
            left_out.append("an equal sequence stands before it")
    total, bases = sum(map(len, found)), sum(sequence.count(base) for sequence in found for base in _BASES)
    if total > 20 * options.k and bases >= 0.9 * total and set().union(*found) <= {*_BASES, *"RYSWKMBDHV"}:
        raise ReplicationError(f"{options.file} has the letters {', '.join(_BASES)} of DNA or RNA; give proteins.")
    entries = list(found.values())
    home = families(
        list(found), k=options.k, jaccard=options.jaccard, containment=options.containment,
        kin=[plain_name(protein.name) for protein in entries],
    )  # fmt: skip
    firsts = Counter(entries[first].accession for first in {*home})  # of which two may have one identifier
    names = [f"{name} {first}" if firsts[name := entries[first].accession] > 1 else name for first in home]
    corpus: dict[str, list[Segment | str]] = {"train": [*left_out], "valid": [], "test": []}
    held_out = set()
    if options.held_out:
        corpus["test_families"], held_out = [], _held_out(Counter(names), options.held_out)
    if options.relatives_percent:
        corpus["test_relatives"] = []
    for at, (first, name, protein) in enumerate(zip(home, names, entries, strict=True)):
        split = hashed_split(name, valid_percent=options.valid_percent, test_percent=options.test_percent)
        if name in held_out:
            split = "test_families"
        elif split == "train" and first != at:
            own = hashed_split(protein.accession, valid_percent=0, test_percent=options.relatives_percent)
            split = "test_relatives" if own == "test" else "train"
        texts = tuple(str(getattr(protein, language)) for language in languages)
        corpus[split].append(Segment(texts, key=f"{name.replace(':', '_')}:{protein.accession}"))
    return corpus


def proteins(path: Path, form: re.Pattern[str] = _HEADER) -> Iterator[Protein]:
    """Yield the entries of a FASTA file in file order. The pattern ``form`` says how their headers are written.

    Raises:
        ReplicationError: the file has another format, or a letter that is not an amino acid code; names the line.
    """
    header: re.Match[str] | None = None
    parts, place = list[str](), path.name
    for number, line in enumerate(map(str.rstrip, text_lines(path)), start=1):
        if line.startswith(">"):
            if header:
                yield _protein(header, parts, place)
            header, parts, place = form.match(line), [], f"{path.name}, line {number}"
        elif line:
            parts.append(line.upper() if line.isascii() else line)
        if line and header is None:
            raise ReplicationError(
                f"{path.name} is not the card's FASTA: '{line[:60]}' in line {number} is no header; correct it."
            )
        if parts and (odd := _OTHER.search(parts[-1])):
            raise ReplicationError(
                f"{path.name}: line {number} has the character {odd[0]!r}, which stands for no amino acid; remove it."
            )
    if header is None:
        raise ReplicationError(f"{path.name} is not FASTA: it has no header; correct it.")
    yield _protein(header, parts, place)


def _protein(header: re.Match[str], parts: Sequence[str], place: str) -> Protein:
    if not parts:
        raise ReplicationError(f"{place}: the protein {header[2]} has no sequence; correct it.")
    return Protein(header[2], "".join(parts), header[3] or header[2], header[4], _DATABASES[header[1]])


def plain_name(name: str) -> str | None:
    """Return a protein name in lower case without "(Fragment)" and "Putative"; None if the rest is uninformative."""
    plain = _GUESSED.sub("", _FRAGMENT.sub("", name.lower()))
    return None if _NAMELESS.search(plain) else plain


def _held_out(sizes: Mapping[str, int], options: HeldOut) -> set[str]:
    suited = [name for name, size in sizes.items() if options.smallest <= size <= options.largest]
    if len(suited) < options.families:
        raise ReplicationError(
            f"{options.families} families are to be held out, but only {len(suited)} have {options.smallest} to "
            f"{options.largest} members; change 'held_out' in the card."
        )
    return set(sorted(suited, key=lambda name: hashlib.sha256(name.encode()).digest())[: options.families])
