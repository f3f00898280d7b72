"""Numba's simulator of a GPU, for tests: arrays that say that they are on one, and a process that uses it."""

import os
import subprocess
import sys

import numpy as np


class OnCard(np.ndarray):
    """An array that says that it is on a GPU."""

    @property
    def __cuda_array_interface__(self):
        return self.__array_interface__


def on_card(array):
    return array.view(OnCard)


def share_memory():
    """Let the simulator see such arrays: it cannot share memory by its address."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    from polhode.run.batch_stepper.gpu_arrays import Views

    shared = Views.shared

    def view(views, name, array):
        return FakeCUDAArray(array.view(np.ndarray)) if isinstance(array, OnCard) else shared(views, name, array)

    Views.shared = view
    FakeCUDAArray.__cuda_array_interface__ = property(lambda self: self._ary.__array_interface__)


def computed(script, path):
    """Run a script with the simulator; return the arrays that it saves."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, script, str(path)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(path) as found:
        return dict(found)
