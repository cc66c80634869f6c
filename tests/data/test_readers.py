import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.readers import bible

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
        ("fr", (19, 51, 1), "(51:1) Au chef. (51:2) Lorsque Nathan vint. (51:3) O Dieu! (oui)", "O Dieu! (oui)"),
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
