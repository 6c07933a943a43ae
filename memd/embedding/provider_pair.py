"""What embeds for all agents with equal settings: a provider, maybe a fallback, and which of the two is used."""

from collections.abc import Iterator

import structlog

from memd.config.settings import AgentSettings
from memd.embedding.health import Standby
from memd.embedding.running_provider import ProviderParts, RunningProvider
from memd.providers.choose import Candidate, ProviderChoice
from memd.providers.provider import Identity
from memd.providers.remote.spec import ProviderSpec
from memd.store.embeddings import Space

log = structlog.get_logger()


class ProviderPair:
    """A choice of providers, alive."""

    def __init__(
        self,
        settings: AgentSettings,
        choice: ProviderChoice,
        tools: ProviderParts,
    ) -> None:
        """Nothing is asked yet.

        Args:
            settings: Of one of the agents that it is for.
            choice: What these settings mean just now.
            tools: What members are made with.
        """
        self.settings = settings
        self.choice = choice
        self._tools = tools
        self._primary: RunningProvider | None = None
        self._fallback: RunningProvider | None = None

    async def begin(self) -> None:
        """Live, as far as that takes no request; what takes one is done behind."""
        choice = self.choice
        standby: Standby | None = None
        if choice.fallback is not None:
            self._fallback = RunningProvider(choice.fallback, self._tools, self.settings)
            standby = Standby(self._fallback.name, self._fallback.health.probe_wanted, self._tools.patience)
        if choice.primary is not None:
            self._primary = RunningProvider(choice.primary, self._tools, self.settings, standby)
            await self._primary.begin(at_once=True)
        if self._fallback is not None:
            await self._fallback.begin(at_once=False)
        log.info(
            "embed.provider_chosen",
            provider="none" if self._primary is None else self._primary.name,
            model="" if self._primary is None else self._primary.model,
            host=None if self._primary is None else self._primary.host,
            because=choice.because or None,
            reason=choice.reason,
        )
        self._tools.changes.notify()

    async def renew(self, choice: ProviderChoice) -> None:
        """Begin anew with what the settings mean now, unless nothing has changed and all is well.

        What was terminal gets another chance, and a fallback is left. Whatever this fails with, what embedded before goes on.
        """
        is_same = _alike(choice.primary, self.choice.primary) and _alike(
            choice.fallback, self.choice.fallback
        )
        is_well = not self.is_on_fallback and all(one.health.reason is None for one in self.members)
        if is_same and is_well:
            for made in (choice.primary, choice.fallback):
                await _give_up(made, self.choice)
            self.choice = _with_reasons(self.choice, choice)
            self.ask_again()  # what was refused, though the provider has answered something else since
            return
        before = self.choice, self._primary, self._fallback
        ending = [*self.members]
        self.choice, self._primary, self._fallback = choice, None, None
        try:
            await self.begin()
        except BaseException:
            # The next renewal would take what has half begun for all that the settings mean, and well.
            ending = [*self.members]
            self.choice, self._primary, self._fallback = before
            for made in (choice.primary, choice.fallback):
                if all(member.candidate is not made for member in ending):
                    await _give_up(made, self.choice)
            self._tools.changes.notify()
            raise
        finally:
            for member in ending:
                await member.close()

    def ask_again(self) -> None:
        """Ask those that do not answer, or refuse, once more now; a fallback is left if the first one answers."""
        for member in self.members:
            member.ask_again()

    async def close(self) -> None:
        """End everything."""
        for member in self.members:
            await member.close()

    # --- who embeds

    @property
    def members(self) -> Iterator[RunningProvider]:
        """All there are, the one that is used first."""
        both = (self._primary, self._fallback)
        yield from (one for one in (both if not self.is_on_fallback else both[::-1]) if one is not None)

    @property
    def used(self) -> RunningProvider | None:
        """The one whose vectors new indexes are to have."""
        return next(self.members, None)

    @property
    def is_on_fallback(self) -> bool:
        """Whether the fallback is used in the place of the first provider."""
        return self._primary is not None and self._primary.health.now.left is not None

    @property
    def wanted(self) -> Identity | None:
        """What vectors an index is to have; None: nothing embeds, or it is not known yet what it is like."""
        return None if self.used is None else self.used.identity

    def member_of(self, space: Space) -> RunningProvider | None:
        """The one whose vectors these are."""
        return next((one for one in self.members if one.space == space), None)

    @property
    def primary(self) -> RunningProvider | None:
        """The first provider."""
        return self._primary

    @property
    def fallback(self) -> RunningProvider | None:
        """The second one."""
        return self._fallback

    # --- in words

    @property
    def name(self) -> str:
        """Of the provider that is used."""
        return "none" if self.used is None else self.used.name

    @property
    def model(self) -> str:
        """Of the provider that is used."""
        return "" if self.used is None else self.used.model

    @property
    def trouble(self) -> str | None:
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
        """Why the first provider is not used, as far as is known just now; None: it is."""
        primary = self._primary
        if primary is None or (left := primary.health.now.left) is None:
            return None
        if not primary.health.returns:
            return left.reason
        stay = f"{self._tools.patience.stay_s / 60:.0f} minutes"
        return f"{primary.name} answers again, and is used again {stay} after it was left"

    @property
    def instead_of(self) -> tuple[str, str] | None:
        """The provider that settings name and that could not be had, and why; None: it is the one they name."""
        wanted = self.settings.provider
        if wanted in {"auto", "none"} or self._primary is None or self.choice.fallback is not None:
            return None
        passed_over = next((one for one in self.choice.passed_over if one.provider == wanted), None)
        return None if passed_over is None else (wanted, passed_over.reason)


def _alike(one: Candidate | None, other: Candidate | None) -> bool:
    """Whether two candidates are asked in the same way, with the same key."""
    if isinstance(one, ProviderSpec) or isinstance(other, ProviderSpec) or one is None or other is None:
        return one == other
    return one.identity == other.identity


async def _give_up(made: Candidate | None, used: ProviderChoice) -> None:
    """Close what was made to compare with, and is not needed."""
    is_used = made is used.primary or made is used.fallback
    if made is not None and not isinstance(made, ProviderSpec) and not is_used:
        await made.close()


def _with_reasons(used: ProviderChoice, now: ProviderChoice) -> ProviderChoice:
    """The choice that is in use, with the reasons of now."""
    return ProviderChoice(
        used.primary, now.reason, now.passed_over, now.because, used.fallback, now.no_fallback
    )
