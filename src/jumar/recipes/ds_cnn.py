"""DS-CNN: keyword spotting small enough for a microcontroller, sizes S, M and L.

Paper: Y. Zhang, N. Suda, L. Lai, V. Chandra, "Hello Edge: Keyword Spotting on Microcontrollers",
https://arxiv.org/abs/1711.07128. Original: ARM-software/ML-KWS-for-MCU (train.py, models.py and
train_commands.txt); DS-CNN_ID1769 of Ascend's ModelZoo for TensorFlow trains size S.

Data: Speech Commands (folders of WAV files, one per word), or any data set with that layout;
`jumar data keywords` creates one with a speech synthesiser.
Expected on Speech Commands after 30,000 steps: 94.4 % (S), 94.9 % (M), 95.4 % (L) of the test
clips (paper).

Choices where the sources disagree or the original has a pitfall:

- Evaluation uses the running averages of the batch norms. The original evaluates its training
  graph: validation and test use the statistics of each batch, and even update the averages.
- The learning rate drops after 10,000 and 20,000 steps, as in train_commands.txt; the paper did not
  use the default of train.py, 15,000 steps at 0.001 and 3,000 at 0.0001.
- The validation speakers are scored every 400 steps. To score the test speakers at the end, run
  `jumar evaluate RUN --checkpoint best --set data.eval_part=testing`.
- All computations are in float32. ID1769 adds `precision.mode=allow_mix_precision`; the front end
  stays in float32 even then, because the power of a clip spans ten decades.
- Without a folder of background noise, white and pink noise are generated; the original trains
  without noise in this case.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn

from jumar.data.speech.keyword_data import KeywordData
from jumar.data.speech.keyword_set import open_keyword_sets
from jumar.ground.errors import UserError
from jumar.models.dscnn import DSCNN, SIZES, tf_names
from jumar.models.mfcc import Mfcc
from jumar.models.tf_layout import TfNames
from jumar.recipes.recipe import OneObjectiveRecipe
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.tasks.class_weights import MEANING, class_weights
from jumar.tasks.keywords import KeywordTask
from jumar.training.optimizers import Adam, Momentum, OptimizerSettings
from jumar.training.schedules import Cosine, Piecewise, ScheduleSettings
from jumar.training.settings import CheckpointSettings, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class DSCNNModel:
    """The network."""

    size: str = setting("S", "One of the three published networks.", choices=tuple(SIZES))
    matrix_product: bool = setting(
        True,
        "Compute 1x1 convolutions as matrix products where that is faster (CPU, channels_last); "
        "set to false if a mixlist treats Conv2D and MatMul differently.",
    )


@dataclass(frozen=True, kw_only=True)
class FrontEnd:
    """The cepstral coefficients (MFCC), which are the network's input instead of raw audio."""

    window_ms: float = setting(40.0, "Length of a frame.", unit="ms", minimum=1)
    stride_ms: float = setting(20.0, "Step from frame to frame.", unit="ms", minimum=1)
    coefficients: int = setting(10, "Number of coefficients per frame.", minimum=1, maximum=40)

    def create(self, sample_rate: int) -> Mfcc:
        """Build the front end: audio `[N, samples]` in, `[N, frames, coefficients]` out.

        Raises:
            UserError: The sample rate is too low for the bands, which reach up to 4000 Hz.
        """
        try:
            return Mfcc(
                sample_rate=sample_rate,
                window_samples=round(sample_rate * self.window_ms / 1_000),
                stride_samples=round(sample_rate * self.stride_ms / 1_000),
                coefficients=self.coefficients,
            )
        except ValueError as error:
            raise UserError(str(error), where="front_end") from None


@dataclass(frozen=True, kw_only=True)
class KeywordLoss:
    """The loss."""

    label_smoothing: float = setting(
        0.0, "Share of the probability spread over all labels.", minimum=0, maximum=1
    )
    class_weights: tuple[str, ...] = setting((), MEANING)


@dataclass(frozen=True, kw_only=True)
class KeywordRecipe(OneObjectiveRecipe):
    """A network that recognises spoken words, its data and its optimizer."""

    objective_name = "keywords"

    model: DSCNNModel = setting(DSCNNModel(), "The network.")
    front_end: FrontEnd = setting(FrontEnd(), "From sound to coefficients.")
    data: KeywordData = setting(KeywordData(), "The clips.")
    loss: KeywordLoss = setting(KeywordLoss(), "The loss.")
    optimizer: OptimizerSettings = setting(Momentum(), "The optimizer.")
    schedule: ScheduleSettings = setting(Cosine(), "The learning rate over the run.")

    def build_task(self, notice: Callable[[str], None]) -> KeywordTask:
        """Open the clips and build the network; see `Recipe.build_task`."""
        front_end = self.build_front_end()
        train, evaluation = open_keyword_sets(self.data, seed=self.seed, notice=notice)
        weights = class_weights(
            self.loss.class_weights, self.data.labels, train.kind.label_counts, notice
        )
        return KeywordTask(
            self.build_model(),
            front_end,
            picture=front_end.log_mel,
            labels=self.data.labels,
            train_data=train,
            eval_data=evaluation,
            label_smoothing=self.loss.label_smoothing,
            class_weights=weights,
        )

    def build_front_end(self) -> Mfcc:
        """Build the front end: audio in, features out; it has no weights.

        Raises:
            UserError: The clips are shorter than a frame.
        """
        front_end = self.front_end.create(self.data.sample_rate)
        if not front_end.frames(self.data.clip_samples):
            raise UserError(
                f"a clip of {self.data.clip_ms} ms is shorter than a frame of "
                f"{self.front_end.window_ms:g} ms",
                where="data.clip_ms",
            )
        return front_end

    def build_model(self) -> DSCNN:
        """Build the network with an output for each label."""
        return DSCNN(
            num_labels=len(self.data.labels),
            size=SIZES[self.model.size],
            matrix_product=self.model.matrix_product,
        )

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the original's graph."""
        assert isinstance(model, DSCNN)
        return tf_names(model)


@register("ds-cnn-s")
def ds_cnn_s() -> KeywordRecipe:
    """DS-CNN of size S (23,180 parameters): batch 100, 30,000 steps, 94.4 % in the paper.

    Run: jumar train ds-cnn-s --set data.path=SPEECH_COMMANDS
    """
    return KeywordRecipe(
        optimizer=Adam(learning_rate=5e-4),
        schedule=Piecewise(boundaries=("9999it", "19999it"), values=(1.0, 0.2, 0.04)),
        training=TrainingSettings(duration="30000it", log_every="100it", evaluate_every="400it"),
        checkpoints=CheckpointSettings(every="2000it", keep=3),
    )


@register("ds-cnn-m")
def ds_cnn_m() -> KeywordRecipe:
    """DS-CNN of size M (136,580 parameters): batch 100, 30,000 steps, 94.9 % in the paper.

    Run: jumar train ds-cnn-m --set data.path=SPEECH_COMMANDS
    """
    return replace(ds_cnn_s(), model=DSCNNModel(size="M"))


@register("ds-cnn-l")
def ds_cnn_l() -> KeywordRecipe:
    """DS-CNN of size L (413,736 parameters): batch 100, 30,000 steps, 95.4 % in the paper.

    Run: jumar train ds-cnn-l --set data.path=SPEECH_COMMANDS
    """
    return replace(ds_cnn_s(), model=DSCNNModel(size="L"))
