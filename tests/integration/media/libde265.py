"""The second HEVC decoder: libde265, which lies in the wheel of pillow-heif and has no Python face of its own."""

import ctypes
from importlib.metadata import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_OK, _WAITING_FOR_INPUT = 0, 13


def decode_luma(stream: bytes) -> list[NDArray[np.uint16]]:
    """The brightness of every frame of a stream with start codes, in the order in which they are shown."""
    library = _loaded()
    decoder = library.de265_new_decoder()
    try:
        # without a thread it hands out a frame half done where one stream follows another, whoever wrote them
        library.de265_start_worker_threads(decoder, 1)
        library.de265_push_data(decoder, stream, len(stream), 0, None)
        library.de265_flush_data(decoder)
        pictures, more = list[NDArray[np.uint16]](), ctypes.c_int(1)
        while more.value:
            state = library.de265_decode(decoder, ctypes.byref(more))
            assert state in {_OK, _WAITING_FOR_INPUT}, f"libde265 error {state}"
            assert library.de265_get_warning(decoder) == _OK
            while picture := library.de265_get_next_picture(decoder):
                pictures.append(_luma(library, picture))
        return pictures
    finally:
        library.de265_free_decoder(decoder)


def _luma(library: ctypes.CDLL, picture: int) -> NDArray[np.uint16]:
    stride = ctypes.c_int()
    width, height = (call(picture, 0) for call in (library.de265_get_image_width, library.de265_get_image_height))
    is_wide = library.de265_get_bits_per_pixel(picture, 0) > 8
    plane = library.de265_get_image_plane(picture, 0, ctypes.byref(stride))
    rows = np.frombuffer(ctypes.string_at(plane, stride.value * height), np.uint8).reshape(height, stride.value)
    return (rows.view(np.uint16) if is_wide else rows.astype(np.uint16))[:, :width].copy()


def _loaded() -> ctypes.CDLL:
    found = [file.locate() for file in files("pillow-heif") or () if "libde265" in file.name]
    library = ctypes.CDLL(str(Path(str(found[0]))))
    library.de265_new_decoder.restype = ctypes.c_void_p
    library.de265_free_decoder.argtypes = [ctypes.c_void_p]
    library.de265_push_data.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p]
    library.de265_start_worker_threads.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.de265_flush_data.argtypes = [ctypes.c_void_p]
    library.de265_decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.de265_get_warning.argtypes = [ctypes.c_void_p]
    library.de265_get_next_picture.argtypes = [ctypes.c_void_p]
    library.de265_get_next_picture.restype = ctypes.c_void_p
    for call in (library.de265_get_image_width, library.de265_get_image_height, library.de265_get_bits_per_pixel):
        call.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.de265_get_image_plane.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    library.de265_get_image_plane.restype = ctypes.c_void_p
    return library
