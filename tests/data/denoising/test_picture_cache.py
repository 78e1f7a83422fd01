"""Pictures are decoded once for all workers, and never mixed up."""

import multiprocessing
import pickle

import numpy as np

from jumar.data.denoising.picture_cache import PictureCache


def picture(number: int, height: int = 4, width: int = 5) -> np.ndarray:
    return np.full((height, width, 3), number, np.uint8)


def test_a_kept_picture_comes_back_and_cannot_be_changed() -> None:
    cache = PictureCache(3, 1000)
    assert cache.get(1) is None
    cache.put(1, picture(7))
    kept = cache.get(1)
    assert kept is not None
    assert np.array_equal(kept, picture(7))
    assert not kept.flags.writeable
    assert cache.get(0) is None


def test_what_does_not_fit_is_not_kept_and_harms_nothing() -> None:
    cache = PictureCache(3, 130)
    for number in range(3):
        cache.put(number, picture(number))
    assert [cache.get(number) is not None for number in range(3)] == [True, True, False]
    assert np.array_equal(cache.get(1), picture(1))
    cache.put(2, picture(2, 1, 1))
    assert np.array_equal(cache.get(2), picture(2, 1, 1))


def test_a_limit_of_nothing_keeps_nothing() -> None:
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
    found = [number for number, pixels in enumerate(kept) if pixels is not None]
    # Who does not get the lock in time keeps nothing; that is rare.
    assert len(found) > 50
    assert all(np.array_equal(kept[n], picture(n, 3 + n % 3)) for n in found)


def test_a_lock_that_is_never_given_back_costs_a_tenth_of_a_second_not_the_run() -> None:
    cache = PictureCache(2, 1000)
    context = multiprocessing.get_context("fork")
    holder = context.Process(target=cache._lock.acquire)
    holder.start()
    holder.join()
    cache.put(0, picture(1))
    assert cache.get(0) is None


def test_a_pickled_cache_is_empty_and_works() -> None:
    cache = PictureCache(2, 1000)
    cache.put(0, picture(1))
    other = pickle.loads(pickle.dumps(cache))
    assert other.get(0) is None
    other.put(1, picture(2))
    assert np.array_equal(other.get(1), picture(2))
