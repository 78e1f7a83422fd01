"""BERT and NEZHA: pre-training with a masked language model and next-sentence prediction.

Papers: J. Devlin et al., "BERT", https://arxiv.org/abs/1810.04805; J. Wei et al., "NEZHA",
https://arxiv.org/abs/1909.00204. Originals: google-research/bert; Bert-base_ID0060 and Nezha-large
of Ascend's ModelZoo for TensorFlow, from which the hyperparameters come.

Data: `jumar data pretraining TEXT --vocab VOCAB --to DEST`, or TFRecord files of the original's
`create_pretraining_data.py`. For training in two phases, start two runs, the second with longer
instances and `transfer.start_from=FIRST_RUN`.
Expected on the 4 kB of the original's sample_text.txt: all masked words are memorised.

Choices where the sources disagree:

- The learning rate is 1e-4, as in every script, not 1e-5, as in the README and the description of
  the delivery.
- Adam's averages are not corrected for their initial value of zero, as in the originals;
  `optimizer.bias_correction=step` corrects them. LAMB is as published;
  `optimizer.bias_correction=variable` selects the variant of the original script.
- Layer norms are computed in float32 with an epsilon of 1e-12 in every precision mode; Ascend's
  scripts use 1e-4 in half precision.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn

from jumar.data.loading.loader_settings import LoaderSettings
from jumar.data.text.pretraining_set import NewMasks, open_pretraining_set
from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.names import tf_names
from jumar.models.tf_layout import TfNames
from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.recipes.bert_model import (
    BertModel,
    EncoderRecipe,
    bert_size,
    with_vocabulary,
)
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.tasks.pretraining import PretrainingTask
from jumar.training.optimizers import AdamW, Lamb, OptimizerSettings
from jumar.training.schedules import Polynomial, ScheduleSettings
from jumar.training.settings import CheckpointSettings, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class PretrainingData(LoaderSettings):
    """The path of the instances, and whether they get new masks."""

    path: str = setting(
        "", "A folder of `jumar data pretraining`, or TFRecord files: a folder, glob or file."
    )
    eval_path: str = setting(
        "none",
        "Instances for evaluation; empty: the training instances, `none`: no evaluation.",
        unit="path",
    )
    mask_anew: bool = setting(
        False, "Draw new masks in every epoch instead of using the stored ones."
    )
    masked_lm_prob: float = setting(
        0.15, "Fraction of the word pieces that new masks cover.", minimum=0, maximum=1
    )
    whole_word_mask: bool = setting(
        False, "Whether new masks cover all pieces of a word (those that begin with ##) or none."
    )

    def new_masks(self) -> NewMasks | None:
        """Return the settings of new masks; None for the stored masks."""
        if not self.mask_anew:
            return None
        return NewMasks(masked_lm_prob=self.masked_lm_prob, whole_word_mask=self.whole_word_mask)


@dataclass(frozen=True, kw_only=True)
class PretrainingRecipe(EncoderRecipe):
    """BERT or NEZHA, its data and its optimizer."""

    objective_name = "pretraining"

    data: PretrainingData = setting(PretrainingData(), "The instances.")
    optimizer: OptimizerSettings = setting(AdamW(), "The optimizer.")
    schedule: ScheduleSettings = setting(Polynomial(), "The learning rate over the run.")

    def build_task(self, notice: Callable[[str], None]) -> PretrainingTask:
        """Open the instances and build the network; see `Recipe.build_task`."""
        tokenizer = self.tokenizer()
        model = with_vocabulary(self.model, tokenizer)
        train = open_pretraining_set(
            self.data.path,
            tokenizer.vocabulary,
            seed=self.seed,
            new_masks=self.data.new_masks(),
            notice=notice,
        )
        evaluation = None
        if self.data.eval_path != "none":
            evaluation = open_pretraining_set(
                self.data.eval_path or self.data.path,
                tokenizer.vocabulary,
                training=False,
                notice=notice,
            )
        return PretrainingTask(_network(model), train_data=train, eval_data=evaluation)

    def build_model(self) -> BertForPretraining:
        """Build the encoder with both heads."""
        model = self.model
        if not model.vocab_size and model.vocabulary:
            model = with_vocabulary(model, self.tokenizer())
        return _network(model)

    def tf_names(self, model: nn.Module) -> TfNames:
        """Return the names in the original's graph."""
        return tf_names(name for name, _ in model.named_parameters())


def _network(model: BertModel) -> BertForPretraining:
    return BertForPretraining(bert_size(model), unpadded=model.unpadded)


@register("bert-base")
def bert_base() -> PretrainingRecipe:
    """BERT-base: batch 128, 500,000 steps, Adam at 1e-4, as in Bert-base_ID0060.

    Run: jumar train bert-base --set data.path=INSTANCES --set model.vocabulary=vocab.txt
    """
    return PretrainingRecipe(
        data=PretrainingData(batch_size=128),
        optimizer=AdamW(
            learning_rate=1e-4, epsilon=1e-4, weight_decay=0.01, bias_correction="none"
        ),
        schedule=Polynomial(warmup="10000it", warmup_from_zero=True),
        training=TrainingSettings(
            duration="500000it",
            log_every="100it",
            evaluate_every="10000it",
            clip="norm",
            clip_limit=1.0,
            channels_last=False,
        ),
        checkpoints=CheckpointSettings(every="10000it", keep=3),
        precision=PrecisionSettings(
            mode="allow_mix_precision",
            loss_scale=ExponentialLossScale(
                init_loss_scale=2.0**32,
                incr_every_n_steps=1000,
                decr_every_n_nan_or_inf=2,
                decr_ratio=0.5,
            ),
        ),
    )


@register("bert-large")
def bert_large() -> PretrainingRecipe:
    """BERT-large: batch 128, 500,000 steps, like BERT-base except for the size.

    Run: jumar train bert-large --set data.path=INSTANCES --set model.vocabulary=vocab.txt
    """
    return replace(bert_base(), model=BertModel(size="bert-large"))


@register("nezha-base")
def nezha_base() -> PretrainingRecipe:
    """NEZHA-base: batch 128, 500,000 steps, Adam at 1e-4, relative positions.

    Run: jumar train nezha-base --set data.path=INSTANCES --set model.vocabulary=vocab.txt
    """
    return replace(bert_base(), model=BertModel(size="nezha-base"))


@register("nezha-large")
def nezha_large() -> PretrainingRecipe:
    """NEZHA-large: batch 64, 1,000,000 steps, LAMB at 1e-4 with a square-root decay.

    Run: jumar train nezha-large --set data.path=INSTANCES --set model.vocabulary=vocab.txt
    """
    base = bert_base()
    return replace(
        base,
        model=BertModel(size="nezha-large"),
        data=replace(base.data, batch_size=64),
        optimizer=Lamb(learning_rate=1e-4, epsilon=1e-6, weight_decay=0.01),
        schedule=Polynomial(warmup="10000it", warmup_from_zero=True, power=0.5),
        training=replace(base.training, duration="1000000it"),
    )


@register("bert-tiny")
def bert_tiny() -> PretrainingRecipe:
    """BERT with 2 layers and 128 hidden units, for a CPU: float32, batch 32, 2,000 steps.

    Run: jumar train bert-tiny --set data.path=INSTANCES --set model.vocabulary=vocab.txt
    """
    base = bert_base()
    return replace(
        base,
        model=BertModel(size="bert-tiny"),
        data=replace(base.data, batch_size=32),
        optimizer=AdamW(
            learning_rate=1e-3, epsilon=1e-6, weight_decay=0.01, bias_correction="none"
        ),
        schedule=Polynomial(warmup="10%", warmup_from_zero=True),
        training=replace(base.training, duration="2000it", evaluate_every="500it"),
        checkpoints=CheckpointSettings(every="500it", keep=3),
        precision=PrecisionSettings(),
    )
