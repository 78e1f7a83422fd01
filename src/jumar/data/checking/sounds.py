"""Checks of clips of spoken words."""

import hashlib

from jumar.data.checking.item import CheckedPart, Item
from jumar.data.samples import CorruptRecord, Notice
from jumar.data.speech.speech_commands import Part, Speech, open_speech
from jumar.data.speech.wav import read_wav
from jumar.ground.errors import UserError

_PARTS: dict[Part, str] = {
    "training": "training",
    "validation": "evaluation",
    "testing": "testing",
}


class ClipReader:
    """Reads the clips of a part."""

    def __init__(self, speech: Speech) -> None:
        self._speech = speech

    def __len__(self) -> int:
        return len(self._speech.word_of)

    def item(self, index: int) -> Item:
        """See `ItemReader.item`."""
        word = self._speech.words[int(self._speech.word_of[index])]
        try:
            record = self._speech.source.read(index)
            wave = read_wav(record.encoded, record.origin)
        except CorruptRecord as error:
            return Item(where=error.fault.origin, fault=error.fault.reason)
        traits = [f"{wave.rate} Hz"]
        if not wave.samples.any():
            traits.append("silent" if len(wave.samples) else "without samples")
        return Item(
            where=record.origin,
            content=hashlib.blake2b(record.encoded, digest_size=16).digest(),
            meaning=hashlib.blake2b(wave.samples.tobytes(), digest_size=16).digest(),
            label=word,
            classes=(word,),
            size=(("duration", len(wave.samples) / wave.rate),),
            traits=tuple(traits),
        )


def open_clips(path: str, eval_path: str, notice: Notice) -> list[CheckedPart]:
    """Open the parts of a set of clips; missing ones are left out.

    Raises:
        UserError: There are no clips at a path.
    """
    training = open_speech(path, "training", whole=bool(eval_path), notice=notice)
    opened_parts = [("training", training)]
    if eval_path:
        opened_parts.append(
            ("evaluation", open_speech(eval_path, "validation", whole=True, notice=notice))
        )
    else:
        for part in ("validation", "testing"):
            try:
                opened_parts.append((_PARTS[part], open_speech(path, part, notice=notice)))
            except UserError as error:
                notice(f"{part}: {error.what}")
    return [
        CheckedPart(name=name, reader=ClipReader(speech), classes=speech.words)
        for name, speech in opened_parts
    ]
