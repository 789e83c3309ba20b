"""Views of something that changes, as a stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from fleetapp.api.errors import error_body, internal
from fleetapp.api.feed import Pull
from fleetapp.api.sse import ClientGone, EventStream, connected
from fleetapp.errors import FleetError

COMMENT_EVERY = 15.0


async def stream_views(request: web.Request, views: AsyncIterator[Any]) -> web.StreamResponse:
    """Each view as an event, until the listener goes or the agent ends."""
    stream = EventStream(request)
    pull = Pull(views, lambda: connected(request))
    try:
        await stream.open()
        while True:
            view = await pull.next(COMMENT_EVERY)
            if view is None:
                await stream.comment()
            else:
                await stream.send(view)
    except EOFError:
        await stream.end()
    except ClientGone:
        pass  # a window was closed
    except FleetError as error:
        await stream.end(error_body(error))
    except Exception as error:  # noqa: BLE001 - the status line is out: the middleware is too late
        await stream.end(error_body(internal(error)))
    finally:
        await pull.close()
    return stream.response
