#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""make.py [FOLDER]: what npy_test and npz_test read, written by NumPy; and NumPy reads written_*, which they write.

NumPy 1.24.2 made the files that are here. They differ between its versions and with the time, so the tests
read them and do not make them.
"""
import pathlib
import sys

import numpy

here = pathlib.Path(__file__).resolve().parent
folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
f4 = numpy.arange(6, dtype="<f4").reshape(2, 3) / 2
i8 = numpy.arange(6, dtype="<i8").reshape(2, 3)
numpy.save(folder / "f4.npy", f4)
numpy.save(folder / "i8_fortran.npy", numpy.asfortranarray(i8))
numpy.save(folder / "f2_scalar.npy", numpy.array(1.5, "<f2"))
numpy.save(folder / "u1_empty.npy", numpy.zeros((0, 4), "u1"))
arrays = {"weight": f4, "block/ids": i8, "zeros": numpy.zeros((40, 50), "<f4"), "double": numpy.ones(3)}
numpy.savez(folder / "stored.npz", **arrays)
numpy.savez_compressed(folder / "deflated.npz", **arrays)

written = numpy.load(here / "written_f4.npy")
assert written.dtype == "<f4" and (written == numpy.arange(6).reshape(2, 3)).all(), written
with numpy.load(here / "written.npz") as archive:
    assert sorted(archive.files) == ["a", "block/b", "none", "step"], archive.files
    assert (archive["a"] == numpy.arange(6, dtype="<f4").reshape(2, 3)).all()
    assert (archive["block/b"] == numpy.array([7, 8, 9], "<i4")).all() and archive["block/b"].dtype == "<i4"
    assert archive["none"].shape == (4, 0) and archive["none"].dtype == "u1"
    assert archive["step"].shape == () and archive["step"] == -1
