"""One folder per paper. Importing ``shared`` first makes torchvision importable on any build of torch."""

import shared  # noqa: F401
