"""What embeds for all agents with equal settings: a provider and maybe its fallback."""

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
    """The provider of some settings, and its fallback, both running."""

    def __init__(
        self,
        settings: AgentSettings,
        choice: ProviderChoice,
        parts: ProviderParts,
    ) -> None:
        """Nothing runs before `begin`.

        Args:
            settings: Of one of the agents that the pair embeds for.
            choice: What these settings mean just now.
            parts: What running providers are made with.
        """
        self.settings = settings
        self.choice = choice
        self._parts = parts
        self.primary: RunningProvider | None = None  # what the settings mean
        self.fallback: RunningProvider | None = None

    async def begin(self) -> None:
        """Start both, as far as that takes no request; requests follow in tasks."""
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
        """Begin anew with what the settings mean now, unless nothing has changed and all is well.

        What was terminal gets another chance, and a fallback is left. Whatever this fails with, what embedded before goes on.
        """
        is_same = _is_same_candidate(choice.primary, self.choice.primary) and _is_same_candidate(
            choice.fallback, self.choice.fallback
        )
        is_well = not self.is_on_fallback and all(one.health.reason is None for one in self.members)
        if is_same and is_well:
            for made in (choice.primary, choice.fallback):
                await _close_unused(made, self.choice)
            self.choice = _with_reasons(self.choice, choice)
            self.ask_again()  # what was refused, though the provider has answered something else since
            return
        before = self.choice, self.primary, self.fallback
        ending = [*self.members]
        self.choice, self.primary, self.fallback = choice, None, None
        try:
            await self.begin()
        except BaseException:
            # The next renewal would take what has half begun for all that the settings mean, and well.
            ending = [*self.members]
            self.choice, self.primary, self.fallback = before
            for made in (choice.primary, choice.fallback):
                if all(member.candidate is not made for member in ending):
                    await _close_unused(made, self.choice)
            self._parts.changes.notify()
            raise
        finally:
            for member in ending:
                await member.close()

    def ask_again(self) -> None:
        """Ask those that do not answer, or refuse, once more now; a fallback is left if the first one answers."""
        for member in self.members:
            member.ask_again()

    async def close(self) -> None:
        """Close both."""
        for member in self.members:
            await member.close()

    # --- which of the two

    @property
    def members(self) -> Iterator[RunningProvider]:
        """Both, as far as they are there; the one that is used comes first."""
        both = (self.primary, self.fallback)
        yield from (one for one in (both if not self.is_on_fallback else both[::-1]) if one is not None)

    @property
    def used(self) -> RunningProvider | None:
        """The provider whose vectors new indexes are to have; None: there is none."""
        return next(self.members, None)

    @property
    def is_on_fallback(self) -> bool:
        """Whether the fallback is used in the place of the first provider."""
        return self.primary is not None and self.primary.health.now.left is not None

    @property
    def wanted(self) -> Identity | None:
        """The vectors that an index is to have; None: there is no provider, or its model is not known yet."""
        return None if self.used is None else self.used.identity

    def member_of(self, space: Space) -> RunningProvider | None:
        """The provider whose vectors are of a space."""
        return next((one for one in self.members if one.space == space), None)

    # --- in words

    @property
    def name(self) -> str:
        """Name of the provider that is used; `none` where there is none."""
        return "none" if self.used is None else self.used.name

    @property
    def model(self) -> str:
        """Name of its model; empty where there is no provider."""
        return "" if self.used is None else self.used.model

    @property
    def reason(self) -> str | None:
        """Why nothing embeds, or why not what should; None: all is well."""
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
        """Why the fallback is used instead of its provider; None: it is not."""
        primary = self.primary
        if primary is None or (left := primary.health.now.left) is None:
            return None
        if not primary.health.returns:
            return left.reason
        stay = f"{self._parts.thresholds.stay_s / 60:.0f} minutes"
        return f"{primary.name} answers again, and is used again {stay} after it was left"

    @property
    def instead_of(self) -> tuple[str, str] | None:
        """The provider that the settings name and that could not be had, and why; None: the one they name is there."""
        wanted = self.settings.provider
        if wanted in {"auto", "none"} or self.primary is None or self.choice.fallback is not None:
            return None
        passed_over = next((one for one in self.choice.passed_over if one.provider == wanted), None)
        return None if passed_over is None else (wanted, passed_over.reason)


def _is_same_candidate(one: Candidate | None, other: Candidate | None) -> bool:
    """Whether requests to two candidates are the same, the key included."""
    if isinstance(one, ProviderSpec) or isinstance(other, ProviderSpec) or one is None or other is None:
        return one == other
    return one.identity == other.identity


async def _close_unused(made: Candidate | None, used: ProviderChoice) -> None:
    """Close a candidate that was made for a comparison and is not used."""
    is_used = made is used.primary or made is used.fallback
    if made is not None and not isinstance(made, ProviderSpec) and not is_used:
        await made.close()


def _with_reasons(used: ProviderChoice, now: ProviderChoice) -> ProviderChoice:
    """The choice that is in use, with the reasons of now."""
    return ProviderChoice(
        used.primary, now.reason, now.passed_over, now.because, used.fallback, now.no_fallback
    )
