"""What the replications share: attention, layers, data, training, decoding, metrics, claims, reports, pipeline."""

from shared.torchvision_compat import install as _install

_install()
