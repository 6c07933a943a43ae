"""What embeds for all agents with equal settings: a provider, maybe a fallback, and which of the two is used."""

import asyncio
from collections.abc import Callable, Iterator

import structlog

from memd.config.settings import AgentSettings
from memd.embedding import fallback_state
from memd.embedding.fallback_state import FellBack, Standing, Well
from memd.embedding.running_provider import PROBE_CAP_S, ProviderParts, ProviderTrouble, RunningProvider
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
        changed: Callable[[], None],
    ) -> None:
        """Nothing is asked yet.

        Args:
            settings: Of one of the agents that it is for.
            choice: What these settings mean just now.
            tools: What members are made with.
            changed: Called whenever agents may have to look again what they embed with.
        """
        self.settings = settings
        self.choice = choice
        self.standing: Standing = Well()
        self._tools = tools
        self._changed = changed
        self._primary: RunningProvider | None = None
        self._fallback: RunningProvider | None = None
        self._later: asyncio.TimerHandle | None = None  # the first provider is asked again

    async def begin(self) -> None:
        """Live, as far as that takes no request; what takes one is done behind."""
        choice = self.choice
        if choice.primary is not None:
            self._primary = self._member(choice.primary, self._heard_of_primary)
            await self._primary.begin(at_once=True)
        if choice.fallback is not None:
            self._fallback = self._member(choice.fallback, lambda _: self._changed())
            await self._fallback.begin(at_once=False)
        log.info(
            "embed.provider_chosen",
            provider="none" if self._primary is None else self._primary.name,
            model="" if self._primary is None else self._primary.model,
            host=None if self._primary is None else self._primary.host,
            because=choice.because or None,
            reason=choice.reason,
        )
        self._changed()

    async def renew(self, choice: ProviderChoice) -> None:
        """Begin anew with what the settings mean now, unless nothing has changed and all is well.

        What was terminal gets another chance, and a fallback is left. Whatever this fails with, what embedded before goes on.
        """
        is_same = _alike(choice.primary, self.choice.primary) and _alike(
            choice.fallback, self.choice.fallback
        )
        is_well = isinstance(self.standing, Well) and all(one.trouble is None for one in self.members)
        if is_same and is_well:
            for made in (choice.primary, choice.fallback):
                await _give_up(made, self.choice)
            self.choice = _with_reasons(self.choice, choice)
            self.ask_again()  # what was refused, though the provider has answered something else since
            return
        before = self.choice, self.standing, self._primary, self._fallback, self._later
        ending = [*self.members]
        self.choice, self.standing, self._primary, self._fallback, self._later = (
            choice,
            Well(),
            None,
            None,
            None,
        )
        try:
            await self.begin()
        except BaseException:
            # The next renewal would take what has half begun for all that the settings mean, and well.
            ending = [*self.members]
            self._forget_timer()
            self.choice, self.standing, self._primary, self._fallback, self._later = before
            for made in (choice.primary, choice.fallback):
                if all(member.candidate is not made for member in ending):
                    await _give_up(made, self.choice)
            self._changed()
            raise
        finally:
            for member in ending:
                await member.close()
        if (later := before[-1]) is not None:
            later.cancel()

    def ask_again(self) -> None:
        """Ask those that do not answer, or refuse, once more now; a fallback is left if the first one answers."""
        self.standing = fallback_state.doubted(self.standing)
        for member in self.members:
            member.ask_again()

    async def close(self) -> None:
        """End everything."""
        self._forget_timer()
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
        return isinstance(self.standing, FellBack)

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
        if used.trouble is not None:
            return used.trouble.reason
        if used.provider is None:
            return f"{used.name}: {used.host} is being asked what its model {used.model} is like"
        if self.is_on_fallback:
            return f"{self.why_fallback}; {used.name} stands in"
        return None

    @property
    def why_fallback(self) -> str | None:
        """Why the first provider is not used, as far as is known just now; None: it is."""
        if not isinstance(self.standing, FellBack):
            return None
        if not self.standing.answers or self._primary is None:
            return self.standing.reason
        stay = f"{self._tools.patience.stay_s / 60:.0f} minutes"
        return f"{self._primary.name} answers again, and is used again {stay} after it was left"

    @property
    def instead_of(self) -> tuple[str, str] | None:
        """The provider that settings name and that could not be had, and why; None: it is the one they name."""
        wanted = self.settings.provider
        if wanted in {"auto", "none"} or self._primary is None or self.choice.fallback is not None:
            return None
        passed_over = next((one for one in self.choice.passed_over if one.provider == wanted), None)
        return None if passed_over is None else (wanted, passed_over.reason)

    # --- which of the two

    def _member(
        self, candidate: Candidate, told: Callable[[ProviderTrouble | None], None]
    ) -> RunningProvider:
        return RunningProvider(
            candidate,
            self._tools,
            self.settings,
            told=told,
            moved=self._changed,
        )

    def _heard_of_primary(self, trouble: ProviderTrouble | None) -> None:
        now, before = self._tools.clock(), self.standing
        if trouble is None:
            self.standing = fallback_state.answered(before, now, self._tools.patience)
        else:
            self.standing = fallback_state.failed(
                before,
                trouble.reason,
                now,
                self._tools.patience,
                is_final=trouble.is_final,
                has_fallback=self._fallback is not None,
            )
        if self._primary is not None:
            self._primary.longest_wait_s = self._tools.patience.ask_s if self.is_on_fallback else PROBE_CAP_S
        if isinstance(before, FellBack) != self.is_on_fallback:
            self._tell_of_change()
        elif trouble is None and isinstance(self.standing, FellBack) and not self.standing.is_final:
            # It is well again, and the fallback has not been used for long enough.
            self._ask_later(self.standing.since + self._tools.patience.stay_s - now)
        if before != self.standing:
            self._changed()

    def _ask_later(self, wait_s: float) -> None:
        self._forget_timer()
        if self._primary is not None:
            self._later = asyncio.get_running_loop().call_later(max(0.0, wait_s), self._primary.ask)

    def _forget_timer(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _tell_of_change(self) -> None:
        if self._fallback is not None and isinstance(self.standing, FellBack):
            log.warning(
                "embed.fallback_taken",
                provider=self._fallback.name,
                reason=self.standing.reason,
                final=self.standing.is_final,
            )
            self._fallback.ask()
        elif self._primary is not None:
            log.info("embed.fallback_left", provider=self._primary.name)


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
