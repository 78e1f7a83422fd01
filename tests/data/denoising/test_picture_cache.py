"""Images are decoded once for all workers, and never mixed up."""

import multiprocessing
import pickle
import time

import numpy as np

from jumar.data.denoising.picture_cache import PictureCache


def picture(number: int, height: int = 4, width: int = 5) -> np.ndarray:
    return np.full((height, width, 3), number, np.uint8)


def test_cached_image_is_returned_read_only() -> None:
    cache = PictureCache(3, 1000)
    assert cache.get(1) is None
    cache.put(1, picture(7))
    kept = cache.get(1)
    assert kept is not None
    assert np.array_equal(kept, picture(7))
    assert not kept.flags.writeable
    assert cache.get(0) is None


def test_image_that_does_not_fit_is_not_cached_and_does_no_harm() -> None:
    cache = PictureCache(3, 130)
    for number in range(3):
        cache.put(number, picture(number))
    assert [cache.get(number) is not None for number in range(3)] == [True, True, False]
    assert np.array_equal(cache.get(1), picture(1))
    cache.put(2, picture(2, 1, 1))
    assert np.array_equal(cache.get(2), picture(2, 1, 1))


def test_zero_limit_caches_nothing() -> None:
    cache = PictureCache(1, 0)
    cache.put(0, picture(1))
    assert cache.get(0) is None


def fill(cache: PictureCache, numbers: range) -> None:
    for number in numbers:
        cache.put(number, picture(number, 3 + number % 3))


def test_forked_workers_fill_one_cache() -> None:
    cache = PictureCache(60, 60 * 75)
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=fill, args=(cache, range(start, 60, 2))) for start in (0, 1, 1)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    kept = [cache.get(number) for number in range(60)]
    result = [number for number, pixels in enumerate(kept) if pixels is not None]
    # Who does not get the lock in time keeps nothing; that is rare.
    assert len(result) > 50
    assert all(np.array_equal(kept[n], picture(n, 3 + n % 3)) for n in result)


def test_unreleased_lock_costs_a_tenth_of_a_second_and_not_the_run() -> None:
    cache = PictureCache(2, 1000)
    context = multiprocessing.get_context("fork")
    holder = context.Process(target=cache._lock.acquire)
    holder.start()
    holder.join()
    cache.put(0, picture(1))
    assert cache.get(0) is None


def test_pickled_cache_is_empty_and_works() -> None:
    cache = PictureCache(2, 1000)
    cache.put(0, picture(1))
    other = pickle.loads(pickle.dumps(cache))
    assert other.get(0) is None
    other.put(1, picture(2))
    assert np.array_equal(other.get(1), picture(2))


def test_images_of_any_shape_fill_the_cache_to_the_last_byte() -> None:
    cache = PictureCache(4, 24 + 6 + 20)
    shapes = [(2, 4, 3), (3, 2, 1), (5, 4, 1), (1, 1, 1)]
    pictures = [
        np.random.default_rng(place).integers(1, 256, shape).astype(np.uint8)
        for place, shape in enumerate(shapes)
    ]
    for place, pixels in enumerate(pictures):
        cache.put(place, pixels)
    for place, pixels in enumerate(pictures[:3]):
        kept = cache.get(place)
        assert kept is not None
        np.testing.assert_array_equal(kept, pixels)
        assert cache.get(place) is kept
    assert cache.get(3) is None


def test_caching_an_image_again_keeps_the_first_copy() -> None:
    cache = PictureCache(2, 200)
    cache.put(0, picture(1))
    cache.put(0, picture(2))
    cache.put(1, picture(3))
    for place, number in ((0, 1), (1, 3)):
        kept = cache.get(place)
        assert kept is not None
        assert np.array_equal(kept, picture(number))


def test_limit_one_byte_too_small_caches_nothing() -> None:
    for limit, fits in ((60, True), (59, False)):
        cache = PictureCache(1, limit)
        cache.put(0, picture(1))
        assert (cache.get(0) is not None) is fits


def test_lock_is_waited_for_a_tenth_of_a_second() -> None:
    cache = PictureCache(2, 1000)
    cache._lock.acquire()
    for call in (lambda: cache.put(0, picture(1)), lambda: cache.get(0)):
        begin = time.monotonic()
        call()
        assert 0.09 < time.monotonic() - begin < 0.9
    cache._lock.release()
    cache.put(0, picture(1))
    assert cache.get(0) is not None
    assert cache._lock.acquire(block=False)
