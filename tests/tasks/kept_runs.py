"""An exhibit drawn of results that have kept nothing but a file of attention."""

from types import SimpleNamespace


def draw_kept(exhibit, folder, **sources):
    """What an exhibit draws into ``folder``, of variants by name and the path of what their first seed has kept."""
    results = {
        name: SimpleNamespace(variant=name, seeds=(1,), attention=lambda seed, path=path: path)
        for name, path in sources.items()
    }
    return list(exhibit.draw(results, folder))
