"""The providers of all agents with equal settings: a primary and maybe a fallback."""

from collections.abc import Iterator

import structlog

from memd.config.settings import AgentSettings
from memd.embedding.provider_health import Standby
from memd.embedding.running_provider import ProviderParts, RunningProvider
from memd.providers.choose import Candidate, ProviderChoice
from memd.providers.provider import Identity
from memd.providers.remote.spec import ProviderSpec
from memd.store.embedding_cache import Space

log = structlog.get_logger()


class ProviderPair:
    """The primary provider of some settings and its fallback, both running."""

    def __init__(
        self,
        settings: AgentSettings,
        choice: ProviderChoice,
        parts: ProviderParts,
    ) -> None:
        """Create the pair; `begin` starts it.

        Args:
            settings: The settings of one of its agents.
            choice: The providers chosen by these settings.
            parts: What running providers share.
        """
        self.settings = settings
        self.choice = choice
        self._parts = parts
        self.primary: RunningProvider | None = None  # the provider that the settings choose
        self.fallback: RunningProvider | None = None

    async def begin(self) -> None:
        """Start both without waiting for requests, which follow in tasks."""
        choice = self.choice
        standby: Standby | None = None
        if choice.fallback is not None:
            self.fallback = RunningProvider(choice.fallback, self._parts, self.settings)
            standby = Standby(self.fallback.name, self.fallback.health.probe_wanted, self._parts.thresholds)
        if choice.primary is not None:
            self.primary = RunningProvider(choice.primary, self._parts, self.settings, standby)
            await self.primary.begin(at_once=True)
        if self.fallback is not None:
            await self.fallback.begin(at_once=False)
        log.info(
            "embed.provider_chosen",
            provider="none" if self.primary is None else self.primary.name,
            model="" if self.primary is None else self.primary.model,
            host=None if self.primary is None else self.primary.host,
            because=choice.because or None,
            reason=choice.reason,
        )
        self._parts.changes.notify()

    async def renew(self, choice: ProviderChoice) -> None:
        """Restart with newly chosen providers, unless they are the same and healthy.

        A refusing provider is retried, and a fallback is left. If starting fails, the old providers continue.
        """
        is_same = _is_same_candidate(choice.primary, self.choice.primary) and _is_same_candidate(
            choice.fallback, self.choice.fallback
        )
        is_well = not self.is_on_fallback and all(one.health.reason is None for one in self.members)
        if is_same and is_well:
            for made in (choice.primary, choice.fallback):
                await _close_unused(made, self.choice)
            self.choice = _with_reasons(self.choice, choice)
            # Retries what was refused, even if the provider has answered something else since.
            self.ask_again()
            return
        before = self.choice, self.primary, self.fallback
        ending = [*self.members]
        self.choice, self.primary, self.fallback = choice, None, None
        try:
            await self.begin()
        except BaseException:
            # The next renewal must not take the partly started providers for the chosen ones.
            ending = [*self.members]
            self.choice, self.primary, self.fallback = before
            self._parts.changes.notify()
            raise
        finally:
            for member in ending:
                await member.close()

    def ask_again(self) -> None:
        """Retry providers that fail or refuse now; a fallback is left if the primary answers."""
        for member in self.members:
            member.ask_again()

    async def close(self) -> None:
        """Close both."""
        for member in self.members:
            await member.close()

    # --- which of the two

    @property
    def members(self) -> Iterator[RunningProvider]:
        """Yield both, as far as they exist; the one in use first."""
        both = (self.primary, self.fallback)
        yield from (one for one in (both if not self.is_on_fallback else both[::-1]) if one is not None)

    @property
    def used(self) -> RunningProvider | None:
        """The provider for new indexes; None: there is none."""
        return next(self.members, None)

    @property
    def is_on_fallback(self) -> bool:
        """Whether the fallback is used instead of the primary."""
        return self.primary is not None and self.primary.health.now.left is not None

    @property
    def wanted(self) -> Identity | None:
        """The identity of the vectors for new indexes; None: no provider, or its model is not known yet."""
        return None if self.used is None else self.used.identity

    def member_of(self, space: Space) -> RunningProvider | None:
        """Return the provider of a vector space; None: neither has it."""
        return next((one for one in self.members if one.space == space), None)

    # --- in words

    @property
    def name(self) -> str:
        """The name of the provider in use; "none" without a provider."""
        return "none" if self.used is None else self.used.name

    @property
    def model(self) -> str:
        """The name of its model; "" without a provider."""
        return "" if self.used is None else self.used.model

    @property
    def reason(self) -> str | None:
        """Why nothing is embedded, or not by the primary; None: the primary is healthy."""
        used = self.used
        if used is None:
            return self.choice.reason
        if used.health.reason is not None:
            return used.health.reason
        if used.provider is None:
            return f"{used.name}: {used.host} is being asked what its model {used.model} is like"
        if self.is_on_fallback:
            return f"{self.why_fallback}; {used.name} stands in"
        return None

    @property
    def why_fallback(self) -> str | None:
        """Why the fallback is used; None: it is not."""
        primary = self.primary
        if primary is None or (left := primary.health.now.left) is None:
            return None
        if not primary.health.returns:
            return left.reason
        stay = f"{self._parts.thresholds.stay_s / 60:.0f} minutes"
        return f"{primary.name} answers again, and is used again {stay} after it was left"

    @property
    def instead_of(self) -> tuple[str, str] | None:
        """The provider that the settings name but that is not available, and why; None: it is available."""
        wanted = self.settings.provider
        if wanted in {"auto", "none"} or self.primary is None or self.choice.fallback is not None:
            return None
        passed_over = next((one for one in self.choice.passed_over if one.provider == wanted), None)
        return None if passed_over is None else (wanted, passed_over.reason)


def _is_same_candidate(one: Candidate | None, other: Candidate | None) -> bool:
    """Return whether requests to two candidates would be equal, including the key."""
    if isinstance(one, ProviderSpec) or isinstance(other, ProviderSpec) or one is None or other is None:
        return one == other
    return one.identity == other.identity


async def _close_unused(made: Candidate | None, used: ProviderChoice) -> None:
    """Close a candidate that was created for comparison only."""
    is_used = made is used.primary or made is used.fallback
    if made is not None and not isinstance(made, ProviderSpec) and not is_used:
        await made.close()


def _with_reasons(used: ProviderChoice, now: ProviderChoice) -> ProviderChoice:
    """Return the choice in use with the reasons of a newer one."""
    return ProviderChoice(
        used.primary, now.reason, now.passed_over, now.because, used.fallback, now.no_fallback
    )
