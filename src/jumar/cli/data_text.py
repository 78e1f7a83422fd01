"""`jumar data pretraining` and `jumar data vocab`."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from jumar.cli.counts import checked_workers
from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.paths import exists, expanded
from jumar.ground.text import counted, size_text

_Text = Annotated[str, Parameter(help="A file, a folder of files, or a glob, in UTF-8.")]
_MoreTexts = Annotated[str, Parameter(help="More files, folders or globs.")]

_LOWER_CASE = {"auto": None, "lower": True, "cased": False}


def pretraining(
    text: _Text,
    /,
    *more: _MoreTexts,
    vocab: Path,
    to: Path,
    order: Literal["streaming", "original"] = "streaming",
    max_seq_length: int = 128,
    max_predictions_per_seq: int = 20,
    masked_lm_prob: float = 0.15,
    short_seq_prob: float = 0.1,
    dupe_factor: int = 10,
    random_seed: int = 12345,
    case: Literal["auto", "lower", "cased"] = "auto",
    do_whole_word_mask: bool = False,
    segmenter: Literal["none", "spaces", "jieba"] = "none",
    next_sentence: Annotated[bool, Parameter(negative="--no-next-sentence")] = True,
    longest_word: int | None = None,
    shards: int = 8,
    workers: int | None = None,
) -> int:
    """Write masked segment pairs for pre-training BERT and NEZHA, as TFRecord files.

    The texts have one sentence per line and a blank line between documents. The records have the
    features of google-research/bert. The folder is written completely or not at all; the same
    texts and options always result in the same bytes, with any number of processes.

    Parameters
    ----------
    vocab
        The vocabulary: a vocab.txt, or the folder of a BERT tokenizer of Hugging Face.
    to
        Folder for the records; it must not exist.
    order
        streaming: in parallel, with little memory; after Ctrl-C the same command resumes.
        original: exactly the instances that google-research/bert's create_pretraining_data.py
        creates from the same files and seed, in the same order.
    max_seq_length
        Word pieces per instance, including [CLS] and [SEP].
    max_predictions_per_seq
        Maximum number of masked word pieces per instance.
    masked_lm_prob
        Fraction of word pieces that are masked.
    short_seq_prob
        Fraction of documents whose instances have a random, shorter length.
    dupe_factor
        Number of times each document is used, with different masks.
    random_seed
        Random seed.
    case
        lower: convert text to lower case and remove accents; cased: keep it; auto: as configured in
        the tokenizer's folder, lower for a vocab.txt.
    do_whole_word_mask
        Mask all word pieces of a word or none.
    segmenter
        How to split Chinese into words for --do-whole-word-mask: at spaces in the text or by jieba.
    next_sentence
        Make each instance a pair of segments, of which half are not consecutive; otherwise a single
        segment.
    longest_word
        Words with more characters than this are unknown; 200 as in google-research/bert and NEZHA,
        100 in Ascend's Bert-base and Nezha-large.
    shards
        Number of TFRecord files.
    workers
        Number of processes; by default one per processor.
    """
    from jumar.data.text.documents import text_files
    from jumar.data.text.original_writer import write_original
    from jumar.data.text.pretraining_files import PretrainingRequest, check_outside_inputs
    from jumar.data.text.pretraining_options import PretrainingOptions
    from jumar.data.text.streaming_writer import write_streaming
    from jumar.data.text.tokenizer import open_tokenizer
    from jumar.training.progress import Console

    console, to = Console(), expanded(to)
    options = PretrainingOptions(
        max_seq_length=max_seq_length,
        max_predictions_per_seq=max_predictions_per_seq,
        masked_lm_prob=masked_lm_prob,
        short_seq_prob=short_seq_prob,
        dupe_factor=dupe_factor,
        random_seed=random_seed,
        whole_word_mask=do_whole_word_mask,
        next_sentence=next_sentence,
        segmenter=segmenter,
    )
    inputs = (text, *more)
    check_outside_inputs(inputs, to)
    write, unit = (
        (write_original, "instances") if order == "original" else (write_streaming, "bytes")
    )
    with console.bar(unit, None) as bar:
        summary = write(
            PretrainingRequest(
                files=text_files(inputs),
                tokenizer=open_tokenizer(
                    vocab, lower_case=_LOWER_CASE[case], longest_word=longest_word
                ),
                options=options,
                destination=to,
                shards=shards,
                workers=checked_workers(workers, "processes"),
                progress=bar.show_with_total,
                notice=console.line,
            )
        )
    console.line(
        f"{counted(summary.documents, 'document')} of {counted(summary.pieces, 'word piece')}, "
        f"{summary.unknown / summary.pieces:.2%} of them [UNK]: "
        f"{counted(summary.instances, 'instance')} in {counted(shards, 'shard')}, "
        f"{size_text(summary.bytes)}: {to}"
    )
    return 0


def vocab(
    text: _Text,
    /,
    *more: _MoreTexts,
    to: Path,
    size: int = 21_128,
    case: Literal["lower", "cased"] = "lower",
    min_frequency: int = 2,
) -> int:
    """Build a word-piece vocabulary from texts, as a vocab.txt in BERT's format.

    The same texts and options always result in the same vocabulary.

    Parameters
    ----------
    to
        The file to write; it must not exist.
    size
        Maximum number of word pieces, including special ones; Chinese BERT has 21128.
    case
        lower: convert text to lower case and remove accents; cased: keep it.
    min_frequency
        Minimum number of times that two pieces must be adjacent to be merged.
    """
    from jumar.data.text.basic_words import BasicWords
    from jumar.data.text.documents import text_files
    from jumar.data.text.vocabulary_training import train_vocabulary
    from jumar.training.progress import Console

    console, to, lower = Console(), expanded(to), case == "lower"
    if exists(to):
        raise UserError("already exists", where=str(to), todo="Remove it, or choose another name.")
    files = text_files((text, *more))
    with console.bar("bytes", None) as bar:
        pieces = train_vocabulary(
            files,
            size=size,
            words=BasicWords(lower, lower),
            min_frequency=min_frequency,
            progress=bar.show_with_total,
        )
    write_text(to, "".join(f"{piece}\n" for piece in pieces))
    console.line(f"{counted(len(pieces), 'word piece')} from {counted(len(files), 'file')}: {to}")
    return 0
