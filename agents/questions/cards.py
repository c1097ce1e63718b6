"""Cards: a fact of an architecture each, for kernels whose code it concerns. Pure."""

import re
from functools import lru_cache
from pathlib import Path

from agents.context import StepContext
from agents.questions.kernel_features import features_of
from warpsmith.domain.base import Frozen
from warpsmith.domain.device import Backend
from warpsmith.tuning.analysis.search_facts import facts_of

FOLDER = Path(__file__).parents[1] / "cards"
MOST_CARDS = 3
FEW_BLOCKS = "few_blocks"
"""Feature of a kernel that has fewer blocks than the device has multiprocessors on some workload."""


class Card(Frozen):
    """A fact, and the kernels that it is for: of one of the features, or with such code."""

    text: str
    rank: int
    """Place among the cards that fit; the lowest rank comes first."""
    features: tuple[str, ...] = ()
    code: str = ""
    """Pattern of the sources that it is for."""
    unless: str = ""
    """Pattern of sources that have no need of it."""

    def fits(self, features: frozenset[str], source: str) -> bool:
        """True if it is for such a kernel."""
        meant = bool(features & {*self.features}) or bool(self.code and re.search(self.code, source))
        return meant and not (self.unless and re.search(self.unless, source))


def cards_for(context: StepContext) -> tuple[str, ...]:
    """The cards that fit the job's kernel on its device, best first, `MOST_CARDS` at most."""
    if context.baseline is None or context.job.kernel.backend is not Backend.CUDA:
        return ()
    known = cards(context.baseline.device.architecture.removesuffix("a"))
    if not known:
        return ()
    features = features_of(context)
    places = context.baseline.device.limits.multiprocessors
    measured = facts_of(context.job, context.baseline).baseline.workloads
    if any(0 < w.blocks < places for w in measured):
        features |= {FEW_BLOCKS}
    return tuple(c.text for c in known if c.fits(features, context.job.kernel.text))[:MOST_CARDS]


@lru_cache
def cards(architecture: str) -> tuple[Card, ...]:
    """The cards of an architecture, by rank; none if there are none."""
    found = [_card(path.read_text(encoding="utf-8")) for path in sorted((FOLDER / architecture).glob("*.md"))]
    return tuple(sorted(found, key=lambda card: card.rank))


def _card(page: str) -> Card:
    """A card from its page: a head of `field: value` lines, an empty line, the text."""
    head, _, text = page.partition("\n\n")
    values = dict(re.split(r":\s*", line, maxsplit=1) for line in head.splitlines())
    listed = tuple(part.strip() for part in values.pop("features", "").split(",") if part.strip())
    return Card.model_validate({**values, "features": listed, "text": " ".join(text.split())})
