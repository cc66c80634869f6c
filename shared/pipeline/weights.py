"""Refuses weights that are damaged, or of another model than the one that they are loaded into."""

from __future__ import annotations

import traceback
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from shared.errors import ReplicationError


def check_weights(path: Path) -> None:
    """Refuse a checkpoint whose content has changed since it was written; one that is no archive fails when it is read.

    Torch checks no checksum, and would load changed weights. This reads the file once: 0.02 processor seconds for
    30 MB, less than loading it takes.

    Raises:
        ReplicationError: a checksum is wrong, or the file cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            changed = archive.testzip()
    except zipfile.BadZipFile:
        return
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; run the train stage first.") from None
    except (RuntimeError, EOFError, ValueError, zlib.error):  # a header was overwritten
        raise ReplicationError(f"{path} is damaged; delete it and train again.") from None
    except OSError as error:
        raise ReplicationError(f"{path} cannot be read ({error.strerror}); make it readable.") from None
    if changed is not None:
        raise ReplicationError(f"{path} is damaged (the checksum of {changed} is wrong); delete it and train again.")


@contextmanager
def refusing_other_weights(variant: str, trained: Sequence[Path]) -> Iterator[None]:
    """Say in one sentence that weights do not fit the model that they are loaded into.

    Args:
        variant: that is to be trained again.
        trained: folders of its runs.

    Raises:
        ReplicationError: they have other names or sizes, or are none; other errors stay what they are.
    """
    try:
        yield
    except (RuntimeError, LookupError, TypeError, AttributeError) as error:
        if not any(frame.name == "load_weights" for frame in traceback.extract_tb(error.__traceback__)):
            raise
        raise ReplicationError(
            f"the weights in {' or '.join(map(str, trained))} are of another model than its settings are; train "
            f"{variant} again."
        ) from None
