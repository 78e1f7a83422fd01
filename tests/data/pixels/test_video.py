"""Video files, where PyAV is installed; and what is said where it is not."""

import struct
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from jumar.data.pixels.video import (
    VideoReader,
    VideoWriter,
    check_written_video,
    is_video,
    written_bits,
)
from jumar.data.samples import Fault
from jumar.ground.errors import UserError
from tests.data.photographs import scene

RATE = Fraction(30000, 1001)
FRAMES = [scene(32, 48, seed) for seed in range(5)]


def test_without_pyav_a_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    for opened in (VideoReader, lambda path: VideoWriter(path, RATE)):
        with pytest.raises(UserError, match=r"jumar\[video\]"):
            opened(tmp_path / "clip.mp4")
    assert list(tmp_path.iterdir()) == []


class TestWithPyAv:
    @pytest.fixture(autouse=True)
    def _pyav(self) -> None:
        pytest.importorskip("av", reason="needs PyAV, the extra 'video'")

    def written(self, path: Path, frames: list[np.ndarray] = FRAMES) -> Path:
        with VideoWriter(path, RATE) as video:
            for frame in frames:
                video.write(frame)
        return path

    def test_matroska_round_trip_is_lossless(self, tmp_path: Path) -> None:
        reader = VideoReader(self.written(tmp_path / "clip.mkv"))
        result = list(reader.frames())
        assert reader.rate == RATE
        assert [np.array_equal(*pair) for pair in zip(result, FRAMES, strict=True)] == [True] * 5
        assert [path.name for path in tmp_path.iterdir()] == ["clip.mkv"]

    @pytest.mark.parametrize("size", [(32, 48), (31, 47)])
    def test_mp4_round_trip_is_close_for_any_size(
        self, tmp_path: Path, size: tuple[int, int]
    ) -> None:
        frames = [scene(*size, seed) for seed in range(5)]
        reader = VideoReader(self.written(tmp_path / "clip.mp4", frames))
        assert reader.count == 5
        for result, frame in zip(reader.frames(), frames, strict=True):
            assert isinstance(result, np.ndarray)
            assert np.abs(result.astype(int) - frame).mean() < 8

    def test_truncated_file_ends_with_a_fault(self, tmp_path: Path) -> None:
        whole = self.written(tmp_path / "clip.mkv", FRAMES * 4).read_bytes()
        (tmp_path / "cut.mkv").write_bytes(whole[: len(whole) // 3])
        *result, last = VideoReader(tmp_path / "cut.mkv").frames()
        assert 0 < len(result) < 10
        assert isinstance(last, Fault)
        assert "should have 20 frames" in last.reason

    def test_audio_longer_than_the_video_is_not_a_fault(self, tmp_path: Path) -> None:
        av = pytest.importorskip("av")
        with av.open(str(tmp_path / "clip.mkv"), "w") as container:
            video = container.add_stream("ffv1", rate=25)
            video.width, video.height, video.pix_fmt = 48, 32, "bgr0"
            audio = container.add_stream("pcm_s16le", rate=16000, layout="mono")
            for pixels in FRAMES:
                frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                container.mux(video.encode(frame))
            sound = av.AudioFrame.from_ndarray(
                np.zeros((1, 32000), np.int16), format="s16", layout="mono"
            )
            sound.sample_rate = 16000
            container.mux(audio.encode(sound))
            container.mux(video.encode(None))
            container.mux(audio.encode(None))
        result = list(VideoReader(tmp_path / "clip.mkv").frames())
        assert [np.array_equal(*pair) for pair in zip(result, FRAMES, strict=True)] == [True] * 5

    def test_leaving_with_an_exception_leaves_no_file(self, tmp_path: Path) -> None:
        video = VideoWriter(tmp_path / "clip.mkv", RATE)
        video.write(FRAMES[0])
        assert list(tmp_path.iterdir())
        video.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
        assert list(tmp_path.iterdir()) == []

    def test_frames_of_another_size_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="does not fit"):
            self.written(tmp_path / "a.mkv", [FRAMES[0], scene(10, 10)])
        assert list(tmp_path.iterdir()) == []

    def test_file_that_is_not_a_video_is_an_error(self, tmp_path: Path) -> None:
        for content in (b"", b"no video at all" * 100):
            (tmp_path / "clip.mp4").write_bytes(content)
            with pytest.raises(UserError, match="cannot be read as a video"):
                VideoReader(tmp_path / "clip.mp4")
        with pytest.raises(UserError, match=r"\.webm"):
            VideoWriter(tmp_path / "clip.webm", RATE)

    def test_playlist_that_names_other_files_is_not_followed(self, tmp_path: Path) -> None:
        secret = self.written(tmp_path / "secret.mkv")
        playlists = [
            f"ffconcat version 1.0\nfile '{secret.name}'\n",
            f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{secret.name}\n#EXT-X-ENDLIST\n",
        ]
        for text in playlists:
            (tmp_path / "clip.mp4").write_text(text)
            with pytest.raises(UserError, match="cannot be read as a video"):
                VideoReader(tmp_path / "clip.mp4")

    def test_damage_midway_is_a_fault_or_fewer_frames_but_never_an_exception(
        self, tmp_path: Path
    ) -> None:
        path = self.written(tmp_path / "clip.mkv")
        content = bytearray(path.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 200] = bytes(200)
        path.write_bytes(content)
        result = list(VideoReader(path).frames())
        whole = [frame for frame in result if not isinstance(frame, Fault)]
        assert 0 < len(whole) <= 5

    @pytest.mark.parametrize(("wanted", "bits"), [(8, 8), (9, 10), (10, 10), (12, 12), (16, 16)])
    def test_matroska_round_trips_deep_frames(self, tmp_path: Path, wanted: int, bits: int) -> None:
        random = np.random.default_rng(3)
        kind = np.uint8 if bits == 8 else np.uint16
        frames = [random.integers(0, 2**bits, (16, 18, 3)).astype(kind) for _ in range(3)]
        with VideoWriter(tmp_path / "a.MKV", RATE, bits=wanted) as video:
            assert video.bits == bits
            for frame in frames:
                video.write(frame)
        reader = VideoReader(tmp_path / "a.MKV")
        assert (reader.bits, reader.peak, reader.lost) == (bits, 2**bits - 1, ())
        for result, frame in zip(reader.frames(), frames, strict=True):
            assert np.array_equal(result, frame)
        reader.close()

    def test_grey_frames_are_written_as_colour(self, tmp_path: Path) -> None:
        grey = [frame[..., 0] for frame in FRAMES]
        for result, frame in zip(
            VideoReader(self.written(tmp_path / "a.mkv", grey)).frames(), grey, strict=True
        ):
            assert np.array_equal(result, np.repeat(frame[..., None], 3, axis=2))

    @pytest.mark.parametrize(
        ("sides", "bits", "kind"),
        [
            ((32, 48), 8, "yuv420p"),
            ((31, 48), 8, "yuv444p"),
            ((32, 47), 8, "yuv444p"),
            ((32, 48), 10, "yuv420p10le"),
        ],
    )
    def test_mp4_subsamples_chroma_if_the_sides_are_even(
        self, tmp_path: Path, sides: tuple[int, int], bits: int, kind: str
    ) -> None:
        av = pytest.importorskip("av")
        pixels = scene(*sides).astype(np.uint16 if bits > 8 else np.uint8) << (bits - 8)
        with VideoWriter(tmp_path / "a.mp4", RATE, bits=bits) as video:
            video.write(pixels)
        with av.open(str(tmp_path / "a.mp4")) as container:
            stream = container.streams.video[0]
            assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", kind)
            assert (stream.height, stream.width) == sides
        reader = VideoReader(tmp_path / "a.mp4")
        assert (reader.bits, reader.peak) == ((8, 255) if bits == 8 else (10, 65535))
        (result,) = reader.frames()
        assert isinstance(result, np.ndarray)
        assert np.abs(result / reader.peak - pixels / (2**bits - 1)).mean() < 0.04

    def test_frame_size_mismatch_names_both_sizes(self, tmp_path: Path) -> None:
        with pytest.raises(UserError) as caught:
            self.written(tmp_path / "a.mkv", [FRAMES[0], scene(10, 11)])
        assert (caught.value.what, caught.value.where) == (
            "a frame of 11 x 10 pixels does not fit into a video of 48 x 32",
            str(tmp_path / "a.mkv"),
        )
        for pixels in (scene(32, 47), scene(31, 48)):
            with pytest.raises(UserError, match="does not fit"):
                self.written(tmp_path / "a.mkv", [FRAMES[0], pixels])

    def test_video_without_frames_leaves_no_file(self, tmp_path: Path) -> None:
        self.written(tmp_path / "new" / "a.mkv", [])
        assert list((tmp_path / "new").iterdir()) == []
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(UserError, match="cannot be written: ") as caught:
            VideoWriter(tmp_path / "file" / "a.mkv", RATE)
        assert caught.value.where == str(tmp_path / "file" / "a.mkv")
        (tmp_path / "b.mkv").mkdir()
        with pytest.raises(UserError, match="cannot be written: "):
            self.written(tmp_path / "b.mkv")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["b.mkv", "file", "new"]

    @pytest.mark.parametrize("count", [17, 18, 20])
    def test_file_ends_early_below_95_percent_of_its_announced_frames(
        self, tmp_path: Path, count: int
    ) -> None:
        with VideoWriter(tmp_path / "a.mkv", Fraction(25)) as video:
            for number in range(count):
                video.write(FRAMES[number % 5])
        content = bytearray((tmp_path / "a.mkv").read_bytes())
        place = content.index(b"\x44\x89\x88") + 3  # Matroska's duration, a double
        assert struct.unpack_from(">d", content, place)[0] == pytest.approx(40 * count)
        struct.pack_into(">d", content, place, 800.0)  # 20 frames of 40 ms
        (tmp_path / "a.mkv").write_bytes(content)
        reader = VideoReader(tmp_path / "a.mkv")
        assert (reader.rate, reader.count) == (25, 0)
        *result, last = reader.frames()
        if count < 18:
            assert last == Fault(
                origin=f"{tmp_path / 'a.mkv'}, frame 18",
                reason="the file ends here, but should have 20 frames",
            )
        else:
            assert isinstance(last, np.ndarray)
        assert len(result) == (17 if count < 18 else count - 1)

    def test_streams_of_a_file_that_are_dropped_are_named(self, tmp_path: Path) -> None:
        av = pytest.importorskip("av")
        with av.open(str(tmp_path / "a.mkv"), "w") as container:
            video = container.add_stream("ffv1", rate=25)
            video.width, video.height, video.pix_fmt = 48, 32, "bgra"
            video.codec_context.color_trc = 16
            audio = container.add_stream("pcm_s16le", rate=16000, layout="mono")
            frame = av.VideoFrame.from_ndarray(np.zeros((32, 48, 4), np.uint8), format="bgra")
            container.mux(video.encode(frame))
            sound = av.AudioFrame.from_ndarray(
                np.zeros((1, 640), np.int16), format="s16", layout="mono"
            )
            sound.sample_rate = 16000
            for stream, part in ((audio, sound), (video, None), (audio, None)):
                container.mux(stream.encode(part))
        reader = VideoReader(tmp_path / "a.mkv")
        assert reader.lost == ("sound", "transparency", "the HDR colour information")
        assert (reader.bits, reader.peak) == (8, 255)
        with av.open(str(tmp_path / "b.mkv"), "w") as container:
            audio = container.add_stream("pcm_s16le", rate=16000, layout="mono")
            container.mux(audio.encode(sound))
            container.mux(audio.encode(None))
        with pytest.raises(UserError, match="it has no video stream"):
            VideoReader(tmp_path / "b.mkv")

    def test_unsupported_suffixes_are_refused_with_the_supported_ones(self, tmp_path: Path) -> None:
        check_written_video(tmp_path / "a.MOV")
        with pytest.raises(UserError) as caught:
            check_written_video(tmp_path / "a.webm")
        assert (caught.value.what, caught.value.todo) == (
            "videos cannot be written as '.webm'",
            "Known: .mkv, .mp4, .mov; or specify a folder for single images.",
        )


@pytest.mark.parametrize(
    ("ending", "bits"),
    [(".mkv", [8, 8, 10, 10, 12, 12, 16, 16, 16]), (".MP4", [8, 8, 10, 10, 10, 10, 10, 10, 10])],
)
def test_level_has_the_requested_bits_or_the_next_higher_depth(
    ending: str, bits: list[int]
) -> None:
    wanted = (1, 8, 9, 10, 11, 12, 13, 16, 17)
    assert [written_bits(Path(f"a{ending}"), each) for each in wanted] == bits


def test_videos_are_recognised_by_suffix() -> None:
    assert [is_video(name) for name in ("a.MP4", "b.y4m", "a.jpg", "mp4")] == [
        *(True, True, False, False),
    ]


def test_video_without_a_rate_has_25_frames_per_second(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    # MPEG's streams have no rate but the distance of their frames, and here is only one.
    with av.open(str(tmp_path / "one.mpg"), "w") as container:
        video = container.add_stream("mpeg1video", rate=30)
        video.width, video.height, video.pix_fmt = 48, 32, "yuv420p"
        container.mux(video.encode(av.VideoFrame.from_ndarray(FRAMES[0], format="rgb24")))
        container.mux(video.encode(None))
    with av.open(str(tmp_path / "one.mpg")) as container:
        assert container.streams.video[0].average_rate is None
    assert VideoReader(tmp_path / "one.mpg").rate == 25
