"""How similar proteins of two splits are, from sets of words."""

from collections import Counter, defaultdict

from shared.data.homology import AMINO_ACIDS


def words(text, k):
    """Every run of k letters that are all standard amino acids."""
    runs = {text[i : i + k] for i in range(len(text) - k + 1)}
    return {word for word in runs if set(word) <= set(AMINO_ACIDS)}


def largest_similarity(first, second, k):
    """The largest Jaccard similarity and the largest containment of any pair across the two sides."""
    sets, holders = [words(text, k) for text in first], defaultdict(list)
    for i, inside in enumerate(sets):
        for word in inside:
            holders[word].append(i)
    jaccard = containment = 0.0
    for other in (words(text, k) for text in second):
        for i, common in Counter(i for word in other for i in holders[word]).items():
            jaccard = max(jaccard, common / (len(sets[i]) + len(other) - common))
            containment = max(containment, common / min(len(sets[i]), len(other)))
    return jaccard, containment
