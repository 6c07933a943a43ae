"""Whose turn it is to have qmd embed: models take all of a machine, so one at a time does in the whole process."""

import asyncio


class EmbedSlot(asyncio.Lock):
    """Held while a qmd embeds; those that wait come in the order they came."""
