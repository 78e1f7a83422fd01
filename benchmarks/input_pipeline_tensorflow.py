"""The tf.data side of input_pipeline.py; needs TensorFlow and nothing else.

    python input_pipeline_tensorflow.py FOLDER_OF_JPEGS THREADS

Answers each line `warm-up batches` on standard input with the seconds that the batches took.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf  # pyright: ignore[reportMissingImports]

BATCH = 64
SIZE = 224
MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)


def prepare(encoded):
    """Decode the crop only, resize, mirror, normalise: the original AlexNet script's graph."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(encoded),
        bounding_boxes=tf.zeros([1, 0, 4]),
        min_object_covered=0.1,
        aspect_ratio_range=(0.75, 1.333),
        area_range=(0.08, 1.0),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.concat([begin[:2], size[:2]], axis=0)
    picture = tf.image.decode_and_crop_jpeg(
        encoded, window, channels=3, dct_method="INTEGER_FAST", fancy_upscaling=False
    )
    picture = tf.compat.v1.image.resize_images(picture, [SIZE, SIZE])
    picture = tf.image.random_flip_left_right(picture)
    return (picture - tf.constant(MEAN)) / tf.constant(STD)


def batches(folder: Path, threads: int) -> Iterator[object]:
    """An endless stream of batches made by a pool of threads."""
    encoded = [path.read_bytes() for path in sorted(folder.glob("*.jpg"))]
    data = tf.data.Dataset.from_tensor_slices(encoded).repeat()
    data = data.map(prepare, num_parallel_calls=threads).batch(BATCH).prefetch(2)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    return iter(data.with_options(options))


def main() -> None:
    """Serve requests until standard input ends."""
    stream = batches(Path(sys.argv[1]), int(sys.argv[2]))
    for line in sys.stdin:
        warm_up, count = (int(word) for word in line.split())
        for _ in range(warm_up):
            next(stream)
        print("warm", flush=True)
        start = time.perf_counter()
        for _ in range(count):
            next(stream)
        print(json.dumps(time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
