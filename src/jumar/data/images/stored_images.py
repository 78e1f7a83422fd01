"""Image source: TFRecord shards in an object store."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jumar.data.images.image_shards import LABELS_FILE, ImageShards, is_shard_name
from jumar.data.records.stored_shards import ShardListing, list_shards
from jumar.data.samples import ImageSource, Notice
from jumar.ground.paths import store_url


def names_stored_shards(path: str) -> bool:
    """Return whether a path names TFRecord shards in an object store."""
    url = store_url(path)
    return url is not None and stored_shards(url) is not None


@lru_cache(maxsize=64)
def stored_shards(url: str) -> ShardListing | None:
    """List the TFRecord shards at a URL; None if it names anything else.

    Raises:
        UserError: There are no shards, or the store does not respond.
    """
    return list_shards(url, is_shard_name)


def open_stored_images(listing: ShardListing, paths: Sequence[Path], notice: Notice) -> ImageSource:
    """Open shards in a store that were selected and checked by their names."""
    stored_shards = listing.opened(paths, notice, companions=[LABELS_FILE])
    return ImageShards([stored_shards.folder / path.name for path in paths], notice, stored_shards)
