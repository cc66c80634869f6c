"""All blocks of several exhibits, as a report draws them."""

from shared.reports.exhibits import drawn


def draw_all(exhibits, results, folder):
    return [block for blocks in drawn(exhibits, results, folder) for block in blocks]
