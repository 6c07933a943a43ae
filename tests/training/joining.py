"""Trains the matrix that joins the two models of the bundled one: `python -m tests.training.joining`, in an environment with torch.

Writes memd/providers/local/bundled-joining.npy; then run `python -m tests.training.model_files`. Nearly all of its twenty minutes
on two cores go into the vectors of both models.

It begins as the directions in which the joined vectors differ most. Then a question is to be closer to its note than to all others
of a batch (InfoNCE), and likewise to a longer text that has its note somewhere: else the vectors of long texts, which no question
was about, are worse than before. In talks it is to be closer to the chunk and to the part that hold the turn which answers it
than to those of other talks, and to others of its own. The mean of several runs is written.
"""

import random
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from memd.providers.local import bundled_model, sentence_encoder_file
from memd.providers.local.e5_onnx import E5Onnx
from memd.providers.local.sentence_encoder import SentenceEncoder
from memd.providers.provider import Vector, Vectors
from memd.text.tokens import cjk_share
from tests.training import talks
from tests.training.pairs import NotePair, for_joining
from tests.training.talks import Talk

ENCODER_WEIGHT = 0.25  # of the cosine of the second model beside that of the first one, before the training
EPOCHS = 10
BATCH = 256  # notes
RATE = 3e-4
TEMPERATURE = 0.04
PLAIN_WEIGHT = 0.5  # of questions in the words of their notes, which are the easiest
SEEDS = (1, 2, 3, 4)  # of the runs
TALKS = 24  # of a batch
TALK_WEIGHT = 0.5  # of questions about talks
LONG = (250, 400, 600, 700)  # characters of a longer text; of one in Chinese half as many

Embed = Callable[[str], tuple[Vector, Vector]]
"""Returns the vectors of a text by both models, each of length 1."""


class _Embedded(NamedTuple):
    """The texts of a talk that are embedded in one way."""

    rows: torch.Tensor  # of the texts
    holds: torch.Tensor  # (questions, texts), bool: whether the text has the turn that answers


class _TalkRows(NamedTuple):
    """A talk's vectors."""

    questions: torch.Tensor
    forms: Sequence[tuple[_Embedded, _Embedded]]  # chunks and parts, as transcript and as note


def longer(pairs: Sequence[NotePair]) -> list[str]:
    """Return for each note a text of it and of other notes in its language."""
    rng = random.Random(3)
    every = [text for pair in pairs for text in (pair.note, pair.near)]
    others = {is_cjk: [text for text in every if _is_cjk(text) is is_cjk] for is_cjk in (True, False)}
    found = []
    for pair in pairs:
        is_cjk = _is_cjk(pair.note)
        wanted = rng.choice(LONG) // (2 if is_cjk else 1)
        parts = [pair.note]
        while sum(map(len, parts)) < wanted:
            parts.append(rng.choice(others[is_cjk]))
        rng.shuffle(parts)
        found.append("\n".join(parts))
    return found


def _is_cjk(text: str) -> bool:
    return cjk_share(text) > 0.2


def train(passage: Embed, query: Embed, pairs: Sequence[NotePair], said: Sequence[Talk]) -> Vectors:
    """Return the matrix, shape (dimensions of both models, 384).

    Args:
        passage: Embeds a document.
        query: Embeds a question.
        pairs: The notes and their questions.
        said: The talks and their questions.
    """
    notes, near, long = (
        _rows(passage, texts)
        for texts in ([one.note for one in pairs], [one.near for one in pairs], longer(pairs))
    )
    questions = [_rows(query, [one.questions[kind] for one in pairs]) for kind in range(3)]
    asked_of_talks = [_of_talk(passage, query, talk, n) for n, talk in enumerate(said)]
    start = _main_directions(torch.cat([notes, near, *questions]))
    runs = [_run(seed, start, notes, near, long, questions, asked_of_talks) for seed in SEEDS]
    matrix: Vectors = torch.stack(runs).mean(dim=0).numpy()
    weight = np.full(len(matrix), np.sqrt(ENCODER_WEIGHT), np.float32)
    weight[: bundled_model.DIMENSIONS] = 1
    return matrix * weight[:, None]


def _rows(embed: Embed, texts: Sequence[str]) -> torch.Tensor:
    """Return the vectors of both models, side by side."""
    rows = []
    for text in texts:
        one, other = embed(text)
        rows.append(np.concatenate([one, np.float32(np.sqrt(ENCODER_WEIGHT)) * other]))
    return torch.from_numpy(np.stack(rows).astype(np.float32))


def _of_talk(passage: Embed, query: Embed, talk: Talk, seed: int) -> _TalkRows:
    def embedded(texts: Mapping[str, Collection[int]]) -> _Embedded:
        holds = torch.tensor([[asked.turn in held for held in texts.values()] for asked in talk.asked])
        return _Embedded(_rows(passage, list(texts)), holds)

    cuts = [talks.as_transcript(talk, seed), talks.as_note(talk, seed)]
    forms = [(embedded(cut.chunks), embedded(cut.parts)) for cut in cuts]
    return _TalkRows(_rows(query, [asked.question for asked in talk.asked]), forms)


def _main_directions(rows: torch.Tensor) -> torch.Tensor:
    _, directions = torch.linalg.eigh(rows.T @ rows)
    return directions.flip(1)[:, : bundled_model.DIMENSIONS].contiguous()


def _run(
    seed: int,
    start: torch.Tensor,
    notes: torch.Tensor,
    near: torch.Tensor,
    long: torch.Tensor,
    questions: Sequence[torch.Tensor],
    asked_of_talks: Sequence[_TalkRows],
) -> torch.Tensor:
    torch.manual_seed(seed)
    rng = random.Random(seed)
    matrix = start.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([matrix], lr=RATE)
    steps = EPOCHS * (len(notes) // BATCH)
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    own = torch.arange(BATCH)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(notes)).split(BATCH):
            if len(batch) < BATCH:
                continue
            short = functional.normalize(torch.cat([notes[batch], near[batch]]) @ matrix, dim=1)
            beside = functional.normalize(long[batch] @ matrix, dim=1)
            loss = torch.zeros(())
            for rows, weight in zip(questions, (1.0, 1.0, PLAIN_WEIGHT), strict=True):
                asked = functional.normalize(rows[batch] @ matrix, dim=1) / TEMPERATURE
                loss = loss + weight * functional.cross_entropy(asked @ short.T, own)
                loss = loss + weight * functional.cross_entropy(asked @ beside.T, own)
            loss = loss + TALK_WEIGHT * _talk_loss(
                matrix, rng.sample(asked_of_talks, TALKS), rng.randrange(2)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            falling.step()
    return matrix.detach()


def _talk_loss(matrix: torch.Tensor, some: Sequence[_TalkRows], form: int) -> torch.Tensor:
    """Return the loss of the questions about some talks: by chunks, and by parts."""
    asked = functional.normalize(torch.cat([talk.questions for talk in some]) @ matrix, dim=1) / TEMPERATURE
    loss = torch.zeros(())
    for way in range(2):
        embedded = [talk.forms[form][way] for talk in some]
        rows = functional.normalize(torch.cat([one.rows for one in embedded]) @ matrix, dim=1)
        holds = torch.block_diag(*(one.holds.float() for one in embedded)).bool()
        close = asked @ rows.T
        right = close.masked_fill(~holds, -torch.inf)
        loss = loss + (close.logsumexp(dim=1) - right.logsumexp(dim=1)).mean()
    return loss


def main() -> None:
    """Train, and write the matrix."""
    tuning = bundled_model.beside(bundled_model.TUNING_FILE)
    first = E5Onnx(bundled_model.model_file(), 2, tuning)
    encoder = SentenceEncoder(*sentence_encoder_file.weights(bundled_model.encoder_folder(), None))
    matrix = train(
        lambda text: (first.passage(text), encoder.vector(text)),
        lambda text: (first.query(text), encoder.vector(text)),
        for_joining(),
        talks.read(),
    )
    file = bundled_model.beside(bundled_model.JOINING_FILE)
    np.save(file, matrix.astype(np.float16))
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
