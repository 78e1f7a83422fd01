"""Video files, where PyAV is installed; and what is said where it is not."""

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from jumar.data.pixels.video import VideoReader, VideoWriter
from jumar.data.samples import Fault
from jumar.ground.errors import UserError
from tests.data.photographs import scene

RATE = Fraction(30000, 1001)
FRAMES = [scene(32, 48, seed) for seed in range(5)]


def test_without_pyav_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def test_matroska_gives_the_frames_back(self, tmp_path: Path) -> None:
        reader = VideoReader(self.written(tmp_path / "clip.mkv"))
        found = list(reader.frames())
        assert reader.rate == RATE
        assert [np.array_equal(*pair) for pair in zip(found, FRAMES, strict=True)] == [True] * 5
        assert [path.name for path in tmp_path.iterdir()] == ["clip.mkv"]

    @pytest.mark.parametrize("size", [(32, 48), (31, 47)])
    def test_mp4_gives_them_back_nearly_whatever_their_size(
        self, tmp_path: Path, size: tuple[int, int]
    ) -> None:
        frames = [scene(*size, seed) for seed in range(5)]
        reader = VideoReader(self.written(tmp_path / "clip.mp4", frames))
        assert reader.count == 5
        for found, frame in zip(reader.frames(), frames, strict=True):
            assert isinstance(found, np.ndarray)
            assert np.abs(found.astype(int) - frame).mean() < 8

    def test_a_cut_file_ends_with_a_fault(self, tmp_path: Path) -> None:
        whole = self.written(tmp_path / "clip.mkv", FRAMES * 4).read_bytes()
        (tmp_path / "cut.mkv").write_bytes(whole[: len(whole) // 3])
        *found, last = VideoReader(tmp_path / "cut.mkv").frames()
        assert 0 < len(found) < 10
        assert isinstance(last, Fault)
        assert "announces 20 frames" in last.reason

    def test_sound_that_lasts_longer_than_the_pictures_is_no_fault(self, tmp_path: Path) -> None:
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
        found = list(VideoReader(tmp_path / "clip.mkv").frames())
        assert [np.array_equal(*pair) for pair in zip(found, FRAMES, strict=True)] == [True] * 5

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

    def test_what_is_no_video_is_an_error(self, tmp_path: Path) -> None:
        for content in (b"", b"no video at all" * 100):
            (tmp_path / "clip.mp4").write_bytes(content)
            with pytest.raises(UserError, match="cannot be read as a video"):
                VideoReader(tmp_path / "clip.mp4")
        with pytest.raises(UserError, match=r"\.webm"):
            VideoWriter(tmp_path / "clip.webm", RATE)

    def test_a_playlist_that_names_other_files_is_not_followed(self, tmp_path: Path) -> None:
        secret = self.written(tmp_path / "secret.mkv")
        playlists = [
            f"ffconcat version 1.0\nfile '{secret.name}'\n",
            f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{secret.name}\n#EXT-X-ENDLIST\n",
        ]
        for text in playlists:
            (tmp_path / "clip.mp4").write_text(text)
            with pytest.raises(UserError, match="cannot be read as a video"):
                VideoReader(tmp_path / "clip.mp4")

    def test_damage_in_the_middle_is_a_fault_or_fewer_frames_never_an_exception(
        self, tmp_path: Path
    ) -> None:
        path = self.written(tmp_path / "clip.mkv")
        content = bytearray(path.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 200] = bytes(200)
        path.write_bytes(content)
        found = list(VideoReader(path).frames())
        whole = [frame for frame in found if not isinstance(frame, Fault)]
        assert 0 < len(whole) <= 5
