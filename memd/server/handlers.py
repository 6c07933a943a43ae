"""Passes each request to the module that answers it, and maps errors to codes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import assert_never

import structlog

from memd.agent.agents import Agents, AgentUnavailable, UnknownAgent
from memd.errors import TransientError
from memd.server.request_times import RequestTimes
from memd.server.requests.browse import DuplicateFinder, list_chunks, list_files, list_turns
from memd.server.requests.control import DaemonControl, answer_private, control_daemon
from memd.server.requests.get import get, tags
from memd.server.requests.search import ConnectedClient, explain, search
from memd.server.requests.status import ProcessFacts, status
from memd.server.requests.sync import WarmedSessions, sync
from memd.server.scope import BadRequest, Caller, DeniedSession
from memd.store.errors import StoreClosed, StoreDamaged, StoreNewer
from memd_client import messages as wire

log = structlog.get_logger()

RELOADS = 16  # configuration reloads that one request survives: after more of them it fails
CHANGES = 64  # concurrent changes, including those of clients that have disconnected

LookUp = (
    wire.Search
    | wire.Explain
    | wire.Get
    | wire.Tags
    | wire.Files
    | wire.Chunks
    | wire.Turns
    | wire.Duplicates
)
"""The requests that read memory."""


class Handlers:
    """Answers the requests of all clients."""

    def __init__(
        self, agents: Agents, facts: ProcessFacts, control: DaemonControl, times: RequestTimes | None = None
    ) -> None:
        self._agents = agents
        self._facts = facts
        self._control = control
        self._times = RequestTimes() if times is None else times
        self._warmed = WarmedSessions()
        self._duplicates = DuplicateFinder()
        # changes in progress, even if their client has disconnected
        self._changes: set[asyncio.Task[wire.Reply]] = set()
        self._is_closed = False

    def of_client(self) -> Callable[[wire.Request], Awaitable[wire.Reply]]:
        """Return a request handler for one more client."""
        return partial(self.handle, client=ConnectedClient())

    async def handle(self, request: wire.Request, *, client: ConnectedClient | None = None) -> wire.Reply:
        """Answer a request; any error becomes a Failure, and the connection stays open."""
        caller = Caller(self._agents, request.session_key)
        client = client or ConnectedClient()
        if isinstance(request, wire.Reload | wire.Embed):
            reply = await self._to_its_end(request, caller, client)
        else:
            reply = await self._attempt(request, caller, client)
        if isinstance(reply, wire.Failure) and reply.code == "unavailable" and not caller.is_private:
            # The reason may name files and directories, which only the owner may see.
            return wire.Failure(code=reply.code, message="memory cannot be asked just now")
        return reply

    async def close(self) -> None:
        """Cancel the changes in progress, and accept no more."""
        self._is_closed = True
        for change in self._changes:
            change.cancel()
        if self._changes:
            await asyncio.wait(self._changes)

    async def _to_its_end(
        self, request: wire.Reload | wire.Embed, caller: Caller, client: ConnectedClient
    ) -> wire.Reply:
        """Answer a request that makes several changes; they are completed even if the client disconnects."""
        if self._is_closed or len(self._changes) >= CHANGES:
            return wire.Failure(
                code="unavailable",
                message="memd is stopping" if self._is_closed else "too many changes are under way",
                hint="Try again in a moment.",
            )
        change = asyncio.create_task(self._attempt(request, caller, client))
        self._changes.add(change)
        change.add_done_callback(self._changes.discard)
        return await asyncio.shield(change)

    async def _attempt(self, request: wire.Request, caller: Caller, client: ConnectedClient) -> wire.Reply:
        try:
            for _ in range(RELOADS):
                with contextlib.suppress(StoreClosed):
                    return await self._dispatch(request, caller, client)
                # The agent was stopped to apply new settings: ask the one that replaces it.
                await self._agents.wait_until_unchanging()
            return await self._dispatch(request, caller, client)
        except DeniedSession as error:
            return wire.Failure(code="denied", message=str(error))
        except BadRequest as error:
            return wire.Failure(code="bad_request", message=str(error))
        except UnknownAgent as error:
            return wire.Failure(code="unknown_agent", message=str(error))
        except StoreDamaged as error:
            return wire.Failure(
                code="unavailable", message=f"an index is damaged: {error}", hint="memd-ctl reindex"
            )
        except (AgentUnavailable, StoreNewer) as error:
            # A failed agent is started again by itself, but what makes it fail rarely ends within a moment.
            return wire.Failure(code="unavailable", message=str(error), hint="memd-ctl doctor")
        except TransientError as error:
            hint = "memd-ctl doctor" if error.needs_person else "Try again in a moment."
            return wire.Failure(code="unavailable", message=str(error), hint=hint)
        except Exception:
            # A bug in memd must end neither the connection nor the daemon.
            log.exception("server.request_failed", request=type(request).__name__)
            return wire.Failure(
                code="internal",
                message="memd failed at this request; its log has the details",
                hint="memd-ctl logs",
            )

    async def _dispatch(self, request: wire.Request, caller: Caller, client: ConnectedClient) -> wire.Reply:
        if isinstance(request, LookUp):
            return await self._look_up(request, caller, client)
        match request:
            case wire.Sync():
                return await sync(request, caller, self._agents)
            case wire.Warm():
                return await self._warmed.warm(request, caller)
            case wire.Status():
                return await status(request, caller, self._agents, self._facts, self._times)
            case wire.Reindex() | wire.Embed() | wire.RedactText():
                return await answer_private(request, caller)
            case wire.Reload() | wire.Stop():
                return await control_daemon(request, caller, self._control, self._facts.config)
            case _:
                assert_never(request)

    async def _look_up(self, request: LookUp, caller: Caller, client: ConnectedClient) -> wire.Reply:
        """Answer a request that reads memory."""
        match request:
            case wire.Search():
                return await search(request, caller, client, self._times)
            case wire.Explain():
                return await explain(request, caller, client)
            case wire.Get():
                return await get(request, caller, self._times)
            case wire.Tags():
                return await tags(request, caller)
            case wire.Files():
                return await list_files(request, caller)
            case wire.Chunks():
                return await list_chunks(request, caller)
            case wire.Turns():
                return await list_turns(request, caller)
            case wire.Duplicates():
                return await self._duplicates.list(request, caller)
