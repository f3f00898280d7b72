"""Trajectories as animated pictures (GIF, MP4) and as moving scenes (glTF)."""

from __future__ import annotations

import contextlib
import itertools
import math
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .._extras import needed
from ..errors import InputError
from ..physics.body import Body
from ..physics.shapes import Shape
from ..physics.triangles import meshes, reach
from ..physics.validate import file_path, flag, positive
from ..results.formats.formats import MOVING
from ..results.observables import matrices
from ..results.store.atomic import place_for, replacing, write_whole
from ..results.trajectory import Trajectory
from . import COLOURS, FRAMES, check_body, several_of
from .data import WIDE, drawn, label, labels, largest_turn, principal, shown_indices, speed_of, upwards
from .gltf import glb
from .looks import energy_ellipsoid
from .motion import attitudes_at
from .painter import AXIS, FAINT, GROUND, HOLE, INK, OMEGA, PAPER, PULL, TRAIL, Camera, Canvas, circle, finer

SECONDS, RATE, SIZE = 12.0, 25, (640, 480)
"""Longest film by default, its pictures per second, and their width and height in pixels."""
MOST_PICTURES = 5000
KEY_TURN, MOST_KEYS = math.radians(15), 20_000
"""Largest rotation between two keys of a glTF animation, which players interpolate at a constant rate; most keys."""
LINES = (PAPER, INK, OMEGA, AXIS, TRAIL, PULL, FAINT, GROUND)
"""Colours of what covers few pixels."""
FINEST = 0.25
"""Longest edge of a drawn triangle, in units of the extent of the body."""
DRAWN_REACH, SPHERE = 1.25, 1.6
"""Extent of a drawn body, and the sphere on which the axis of a top leaves its path."""


def animate(
    sols: Trajectory | Sequence[Trajectory],
    path: str | Path,
    *,
    speed: float | None = None,
    seconds: float | None = None,
    fps: int = RATE,
    size: tuple[int, int] = SIZE,
    body: Body | None = None,
    overwrite: bool = False,
) -> Path:
    """Write trajectories as a film (``.gif``, ``.mp4``) or as a moving scene (``.glb``, binary glTF); return the path.

    Parameters
    ----------
    speed : units of the problem's time per second (default: so that the rotation is visible)
    seconds : longest duration (default: 12 s for a film, the whole run for a scene); later states are omitted
    fps, size : frames per second, and width and height of a film in pixels
    body : the body whose shapes are drawn (default: that of the run)

    MP4 needs the extra ``polhode[film]``. Scenes are for Blender, slides and viewers of glTF.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> sol = ph.exact(ph.problems.t_handle(), [0.1 * i for i in range(50)])
    >>> film = ph.animate(sol, Path(tempfile.mkdtemp()) / "handle.gif", seconds=0.4, fps=10, size=(160, 120))
    >>> film.suffix
    '.gif'
    """
    several = several_of(sols)
    path = _checked(path, overwrite)
    check_body(body)
    scene = Scene(several, None if body is None else body.looks)
    rate = scene.speed if speed is None else positive("speed", speed)
    longest = (math.inf if path.suffix == ".glb" else SECONDS) if seconds is None else positive("seconds", seconds)
    end = min(scene.end, scene.start + rate * longest)
    if path.suffix == ".glb":
        write_whole(path, scene.glb(end, rate), durable=False)
        return path
    count = max(1, round((end - scene.start) / rate * _checked_rate(fps)))
    if count > MOST_PICTURES:
        raise InputError(
            f"a film may have at most {MOST_PICTURES} frames, not {count}; reduce seconds or fps", "seconds"
        )
    times = np.minimum(scene.start + rate * np.arange(count) / fps, end)
    pictures = scene.pictures(times, _checked_size(size))
    with replacing(path) as new:
        if path.suffix == ".gif":
            _write_gif(new, pictures, fps, next(scene.pictures(times[[-1]], size)))
        else:
            _write_mp4(new, pictures, fps)
    return path


def _checked(path: str | Path, overwrite: bool) -> Path:
    path = file_path(path, "path must be the name of a film or scene such as 'spin.gif'")
    if path.suffix.lower() not in MOVING:
        raise InputError(f"the name must end in {', '.join(MOVING[:-1])} or {MOVING[-1]}; got {path}")
    if not path.parent.exists():
        raise InputError(f"the folder {path.parent} does not exist; create it first")
    if path.exists() and not flag("overwrite", overwrite):
        raise InputError(f"{path} exists; give another name, or overwrite=True (--overwrite)")
    return place_for(path.with_suffix(path.suffix.lower()))


def _checked_rate(fps: Any) -> int:
    if not isinstance(fps, int) or isinstance(fps, bool) or not 1 <= fps <= 100:
        raise InputError(f"fps must be a whole number of frames per second from 1 to 100; got {fps!r}", "fps")
    return fps


def _checked_size(size: Any) -> tuple[int, int]:
    fine = (
        isinstance(size, tuple | list) and len(size) == 2 and all(isinstance(x, int) and 64 <= x <= 4096 for x in size)
    )
    if not fine or any(x % 2 for x in size):
        raise InputError(f"size must be an even width and height from 64 to 4096 pixels; got {size!r}", "size")
    return size[0], size[1]


class Scene:
    """Trajectories as they are drawn."""

    def __init__(self, sols: Sequence[Trajectory], shapes: Sequence[Shape] | None) -> None:
        self.sols = sols
        self.words = [[name, *filter(None, [how])] for name, how in labels(sols)]
        self.kept = [shown_indices(sol, FRAMES) for sol in sols]
        empty = [label(sol) for sol, of in zip(sols, self.kept, strict=True) if not len(of)]
        if empty:
            raise InputError(f"there is nothing to show: {empty[0]} has no finite state")
        wide = [label(sol) for sol, of in zip(sols, self.kept, strict=True) if largest_turn(sol, of) > WIDE]
        if wide:
            raise InputError(
                f"the states of {wide[0]} are more than half a turn apart, so the motion between them is not known; "
                "record more states (every=, times= or max_turn=)"
            )
        looks = [drawn(sol, shapes) for sol in sols]
        self.pulls = [pull for _, pull in looks]
        self.parts = [
            meshes(look or [energy_ellipsoid(*principal(s))]) for s, (look, _) in zip(sols, looks, strict=True)
        ]
        self.start = min(float(s.t[of[0]]) for s, of in zip(sols, self.kept, strict=True))
        self.end = max(float(s.t[of[-1]]) for s, of in zip(sols, self.kept, strict=True))
        self.up = np.array(upwards(sols[0], self.kept[0], self.pulls[0]))

    @property
    def speed(self) -> float:
        """The playback speed of the page."""
        return speed_of(self.sols, self.kept, self.pulls)

    def glb(self, end: float, speed: float) -> bytes:
        """The scene as a glTF file."""
        turned = max(
            float((np.linalg.norm(s.omega[of], axis=1)).max()) * (end - self.start)
            for s, of in zip(self.sols, self.kept, strict=True)
        )
        number = max(2, math.ceil(turned / KEY_TURN) + 1) if end > self.start else 1
        if number > MOST_KEYS:
            turns, most = turned / (2 * math.pi), MOST_KEYS * KEY_TURN / (2 * math.pi)
            raise InputError(
                f"the bodies make {turns:.0f} turns, but a scene holds at most {most:.0f}; reduce seconds", "seconds"
            )
        times = np.linspace(self.start, end, number)
        wide = 2.5 * max(map(reach, self.parts))
        right = np.cross(self.up, np.eye(3)[np.abs(self.up).argmin()])
        places = np.outer((np.arange(len(self.sols)) - (len(self.sols) - 1) / 2) * wide, right / np.linalg.norm(right))
        bodies = [
            (label(sol), parts, attitudes_at(sol, of, times))
            for sol, parts, of in zip(self.sols, self.parts, self.kept, strict=True)
        ]
        about = {"problem": self.sols[0].info.problem, "start": self.start, "speed": speed}
        colours = [COLOURS[i % len(COLOURS)] for i in range(len(bodies))]
        return glb(bodies, (times - self.start) / speed, self.up.tolist(), colours, places, about)

    def pictures(self, times: np.ndarray, size: tuple[int, int]) -> Iterator[Image.Image]:
        """One picture for each time, the trajectories side by side."""
        width, height = size
        columns = len(self.sols)
        cells = [_Cell(self, number, (width // columns, height), times) for number in range(columns)]
        for k in range(len(times)):
            whole = Image.new("RGB", size)
            for number, cell in enumerate(cells):
                whole.paste(cell.picture(k), (number * (width // columns), 0))
            yield whole


class _Cell:
    """One trajectory in a film."""

    def __init__(self, scene: Scene, number: int, size: tuple[int, int], times: np.ndarray) -> None:
        sol, kept = scene.sols[number], scene.kept[number]
        self.words, self.pull, self.times = scene.words[number], scene.pulls[number], times
        extent = reach(scene.parts[number])
        self.parts = [finer(part, FINEST * extent) for part in scene.parts[number]]
        self.scale = DRAWN_REACH / extent
        self.colour = tuple(int(COLOURS[number % len(COLOURS)][i : i + 2], 16) for i in (1, 3, 5))
        self.turns = matrices(attitudes_at(sol, kept, times))
        momentum = np.stack([np.interp(times, sol.t[kept], x) for x in sol.spatial_momentum[kept].T], -1)
        inverse = np.linalg.pinv(np.array(sol.info.inertia), hermitian=True)
        omega = np.einsum("nij,jk,nlk,nl->ni", self.turns, inverse, self.turns, momentum)
        self.L = 1.9 * momentum / np.maximum(np.linalg.norm(momentum, axis=1, keepdims=True), 1e-300)
        self.omega = omega * (1.6 / max(float(np.linalg.norm(omega, axis=1).max()), 1e-300))
        heavy = self.pull is not None and self.pull.is_weight
        self.trace = self.omega if self.pull is None else SPHERE * self.turns @ self.pull.arm
        self.stands = heavy and float((self.trace @ scene.up).min()) > 0.1 * SPHERE
        middle = 0.75 if self.stands else -0.35 if heavy else 0.0
        self.camera = Camera(scene.up, middle * scene.up, size)

    def picture(self, k: int) -> Image.Image:
        """The picture at one time."""
        canvas, up = Canvas(self.camera), self.camera.up
        if self.pull is not None:
            self._add_surroundings(canvas, up)
        for part in self.parts:
            canvas.mesh(part, self.turns[k], self.scale, HOLE if part.hole else self.colour)
        zero = np.zeros(3)
        canvas.line(self.trace[: k + 1], TRAIL if self.pull is None else AXIS, 2.0)
        canvas.arrow(zero, self.L[k], INK, "L")
        canvas.arrow(zero, self.omega[k], OMEGA, "ω", beside=True)  # it is often near to L
        return canvas.picture([*self.words, f"t = {self.times[k]:.4g}"])

    def _add_surroundings(self, canvas: Canvas, up: np.ndarray) -> None:
        """The sphere of the axis, the ground and the arrow of the pull."""
        assert self.pull is not None
        for height in (30, 60) if self.stands else (-60, -30, 0, 30, 60):
            angle = math.radians(height)
            canvas.line(SPHERE * (math.sin(angle) * up + math.cos(angle) * circle(up)), FAINT, 1.0)
        if self.pull.is_weight:
            canvas.disc((0.0 if self.stands else -1.75) * up, 1.9, GROUND)
        start = -1.75 * self.camera.axes[0] + 1.6 * up
        canvas.arrow(start, start + 0.8 * self.pull.down, PULL, self.pull.name)


def _write_gif(path: Path, pictures: Iterator[Image.Image], fps: int, last: Image.Image) -> None:
    """A GIF with one palette, which repeats for ever; thin lines have their own entries in the palette."""
    common = last.quantize(256 - len(LINES), dither=Image.Dither.NONE).getpalette()
    assert common is not None
    palette = Image.new("P", (1, 1))
    palette.putpalette([*itertools.chain(*LINES), *common[: 3 * (256 - len(LINES))]])

    def reduced(picture: Image.Image) -> Image.Image:
        return picture.quantize(palette=palette, dither=Image.Dither.NONE)

    first = reduced(next(pictures))
    rest = (reduced(picture) for picture in pictures)
    first.save(path, save_all=True, append_images=rest, duration=round(1000 / fps), loop=0, disposal=1)


def _write_mp4(path: Path, pictures: Iterator[Image.Image], fps: int) -> None:
    """H.264 in the pixel format that all players know."""
    imageio_ffmpeg = needed("imageio_ffmpeg")
    first = next(pictures)
    width, height = first.size
    read = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(fps), "-i", "-"]
    written = ["-an", "-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(path)]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", *read, *written]
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said) as encoder:
            assert encoder.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # its message says why
                for picture in itertools.chain([first], pictures):
                    encoder.stdin.write(picture.tobytes())
                encoder.stdin.close()
        if encoder.returncode:
            said.seek(0)
            raise OSError(f"{path} was not written; ffmpeg says: {said.read().decode(errors='replace').strip()}")
