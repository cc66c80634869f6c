from shared.data.cards import load_card


def test_the_cuts_of_the_shipped_cards_follow_each_other(pytestconfig):
    for dataset in ("enwik8", "text8"):
        parts = load_card(dataset, pytestconfig.rootpath / "data").reader.options["parts"]
        at = 0
        for split in ("train", "valid", "test"):
            (part,) = parts[split]
            assert part.get("start", 0) == at
            at += part["bytes"]
        assert at == 100_000_000
