"""What is learnt of a table while it is updated: alpha and beta of its cost, and its period (section 2.4)."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_ALPHA, UNKNOWN_BETA = 1.0, 0.0  # until the first update was seen
LEAST_ALPHA = 1e-6  # no update takes no time at all
FORGET = 0.95  # how much an observation still counts after the next one
OUTLIER = 4.0  # an update that took more than so many times what was expected counts as one that took just so long
SURE = 3  # so many updates have to be seen before any is an outlier
UNKNOWN_SHARE = 0.3  # of an update that one job for several tables does once, until such a job was seen
MOST_SHARE = 0.95
SHARE_WEIGHT = 0.2  # at least, of the newest observation of that share
SIGNIFICANT = 1.25  # a parameter that changed by this factor has changed significantly (section 3.2)


@dataclass(frozen=True)
class Learnt:
    """What a table's updates taught; kept from one run to the next."""

    alpha_s: float
    beta: float
    period_s: float | None  # of a derived table, its ancestors' longest
    observed: int


class CostEstimate:
    """alpha and beta by least squares over the recent updates, none of them negative; what was given stays."""

    __slots__ = ("_e", "_en", "_n", "_nn", "_w", "alpha", "beta", "given_alpha", "given_beta", "observed", "widest")

    def __init__(self, alpha: float | None, beta: float | None) -> None:
        self.given_alpha, self.given_beta = alpha, beta
        self.alpha = UNKNOWN_ALPHA if alpha is None else alpha
        self.beta = UNKNOWN_BETA if beta is None else beta
        self.observed = 0
        self.widest = 0.0  # the most time's data that an update was seen to load
        self._w = self._n = self._e = self._nn = self._en = 0.0

    @property
    def learns(self) -> bool:
        """Whether there is anything to learn."""
        return self.given_alpha is None or self.given_beta is None

    @property
    def known(self) -> bool:
        """Whether enough was seen to reckon with it."""
        return not self.learns or self.observed >= SURE

    def values(self) -> tuple[float, float]:
        """alpha and beta as known now."""
        return max(self.alpha, LEAST_ALPHA), self.beta

    def remember(self, learnt: Learnt) -> None:
        """Begin with what an earlier run learnt, as if it had been seen some times."""
        if self.given_alpha is None:
            self.alpha = learnt.alpha_s
        if self.given_beta is None:
            self.beta = learnt.beta
        if learnt.observed and learnt.period_s:
            alpha, beta = self.alpha, self.beta
            for n in (learnt.period_s, 2 * learnt.period_s):
                self.observe(n, alpha + beta * n)
            self.observed = max(self.observed, learnt.observed)

    def observe(self, n: float, seconds: float) -> None:
        """An update that loaded n seconds' data took so long."""
        if self.observed >= SURE:
            alpha, beta = self.values()
            seconds = min(seconds, OUTLIER * (alpha + beta * n))
        self.observed += 1
        self.widest = max(self.widest, n)
        self._w = self._w * FORGET + 1
        self._n = self._n * FORGET + n
        self._e = self._e * FORGET + seconds
        self._nn = self._nn * FORGET + n * n
        self._en = self._en * FORGET + n * seconds
        mean_n, mean_e = self._n / self._w, self._e / self._w
        spread = self._nn / self._w - mean_n * mean_n
        if self.given_alpha is not None:
            self.beta = max((mean_e - self.given_alpha) / mean_n, 0.0) if mean_n > 0 else 0.0
        elif self.given_beta is not None:
            self.alpha = max(mean_e - self.given_beta * mean_n, 0.0)
        elif spread <= 1e-4 * mean_n * mean_n:  # always about as much: no slope can be seen
            self.alpha, self.beta = mean_e, 0.0
        else:
            slope = (self._en / self._w - mean_n * mean_e) / spread
            self.beta = min(max(slope, 0.0), mean_e / mean_n)  # so that alpha is not negative either
            self.alpha = mean_e - self.beta * mean_n


class ScanEstimate:
    """How much of an update is what one job for several tables does once: as given, or as such jobs showed."""

    __slots__ = ("given", "observed", "value")

    def __init__(self, given: float | None) -> None:
        self.given = given
        self.value = UNKNOWN_SHARE if given is None else given
        self.observed = 0

    def observe(self, share: float) -> None:
        """One job for several tables showed that this share of each was done once."""
        if self.given is None:
            self.observed += 1
            weight = max(1 / self.observed, SHARE_WEIGHT)
            self.value += weight * (min(max(share, 0.0), MOST_SHARE) - self.value)


class PeriodEstimate:
    """The time between arrivals: as given, or a moving average of what was seen."""

    __slots__ = ("given", "last", "observed", "value")

    def __init__(self, given: float | None) -> None:
        self.given = given
        self.value = given
        self.last: float | None = None
        self.observed = 0

    def remember(self, learnt: Learnt) -> None:
        """Begin with what an earlier run learnt: one gap that is another does not overthrow it."""
        if self.given is None and learnt.period_s is not None:
            self.value, self.observed = learnt.period_s, max(learnt.observed, 1)

    def observe(self, now: float) -> None:
        """A batch arrived."""
        if self.given is None:
            if self.last is not None and now > self.last:
                gap = now - self.last
                self.observed += 1
                weight = max(1 / self.observed, 1 - FORGET)
                self.value = gap if self.value is None else self.value + weight * (gap - self.value)
            self.last = now


def significant(before: float, after: float) -> bool:
    """Whether a parameter changed so much that the tracks should be shared anew."""
    return after > before * SIGNIFICANT or after * SIGNIFICANT < before
