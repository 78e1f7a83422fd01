"""The settings of keyword data: location of the clips, keywords, and augmentation."""

from dataclasses import dataclass

from jumar.data.loading.division import DividedData, is_divided
from jumar.data.loading.loader_settings import LoaderSettings, batch_size_setting
from jumar.data.speech.speech_commands import SILENCE, UNKNOWN
from jumar.ground.errors import UserError
from jumar.settings import setting

SPEECH_COMMANDS_WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")


@dataclass(frozen=True, kw_only=True)
class KeywordData(DividedData, LoaderSettings):
    """Where to find the clips, which words are keywords, and how to augment clips."""

    path: str = setting("", "A folder or zip with a folder of WAV files for each word.")
    eval_path: str = setting(
        "",
        "The same for evaluation; empty for a part of path, none to skip evaluation. All of a set "
        "without parts is used.",
        changeable=True,
    )
    eval_part: str = setting(
        "validation", "The part used for evaluation.", choices=("validation", "testing")
    )
    words: tuple[str, ...] = setting(
        SPEECH_COMMANDS_WORDS, "The keywords; all other words in the data are unknown words."
    )
    silence_percentage: float = setting(
        10.0, "Clips without speech.", unit="% of the wanted clips", minimum=0
    )
    unknown_percentage: float = setting(
        10.0, "Clips of unknown words.", unit="% of the wanted clips", minimum=0
    )
    sample_rate: int = setting(
        16_000,
        "Clips with a different rate are resampled.",
        unit="Hz",
        minimum=1_000,
        maximum=96_000,
    )
    clip_ms: int = setting(
        1_000, "Longer clips are cut, shorter ones padded.", unit="ms", minimum=10, maximum=60_000
    )
    time_shift_ms: float = setting(
        100.0, "Clips are shifted by up to this much in either direction.", unit="ms", minimum=0
    )
    background_frequency: float = setting(
        0.8, "Fraction of the clips with background noise.", minimum=0, maximum=1
    )
    background_volume: float = setting(
        0.1,
        "Maximum volume of background noise, as a fraction of its full volume.",
        minimum=0,
        maximum=1,
    )
    background_snr_db: tuple[float, ...] = setting(
        (),
        "Minimum and maximum ratio of speech to background noise, instead of the volume, which "
        "then only applies to silence; empty for the original's behaviour.",
        unit="dB",
    )
    gain_db: float = setting(
        0.0,
        "Maximum change of loudness in either direction; 0: none.",
        unit="dB",
        minimum=0,
    )
    speed: float = setting(
        0.0,
        "Maximum relative change of speed in either direction; 0: none.",
        minimum=0,
        maximum=1,
    )
    batch_size: int = batch_size_setting(100)
    cache_mb: int = setting(
        2_000,
        "Cache of decoded training clips, and another for evaluation, shared by all workers.",
        unit="MB",
        minimum=0,
    )

    def check(self) -> None:
        """Check words, ratios and divisions.

        Raises:
            UserError: There are no words, a word is repeated or in upper case, the ratios are not a
                range, or divisions contradict each other.
        """
        is_divided(self, self.eval_path)
        folded = [word.lower() for word in self.words]
        if not folded or len(set(folded)) < len(folded) or folded != list(self.words):
            raise UserError(
                f"'{','.join(self.words)}' is not a list of distinct lower-case words",
                where="data.words",
                todo="For instance: data.words=yes,no,stop",
            )
        if {SILENCE, UNKNOWN} & set(folded):
            raise UserError(
                f"{SILENCE} and {UNKNOWN} are reserved labels",
                where="data.words",
                todo="List only the keywords.",
            )
        ratios = self.background_snr_db
        if ratios and (len(ratios) != 2 or ratios[0] > ratios[1]):
            raise UserError(
                f"must be a lower and a higher ratio, not {ratios}", where="data.background_snr_db"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of a network's outputs, in the original's order."""
        return (SILENCE, UNKNOWN, *self.words)

    @property
    def clip_samples(self) -> int:
        """Number of audio samples in a clip."""
        return self.sample_rate * self.clip_ms // 1_000
